// To be told when memory runs short.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace ebb::memory {

namespace detail {
struct Watcher;
}  // namespace detail

/// Why a watch is told.
struct Pressure {
  std::size_t requested_bytes =
      0;                          ///< by whoever is about to be refused, or has passed a threshold
  std::size_t missing_bytes = 0;  ///< would have to come back for it; 0 for a threshold
  std::size_t allocated_bytes = 0;  ///< on the device
  std::size_t reserved_bytes = 0;
};

/// Called without any lock, on the thread that asks for memory, in the middle of what it does: an
/// operator, a session's run. It may free tensors, release caches, change limits, allocate, plan
/// and close other sessions; it is not told of pressure that it makes itself. Where it throws, the
/// request fails with what it throws, and nothing else has changed. Calls may run on several
/// threads at once: guard what they share.
using WatchFunction = std::function<void(const Pressure&)>;

/// Ends the watch with its scope, having waited for a call on another thread.
class [[nodiscard]] Watch {
 public:
  Watch() noexcept = default;
  explicit Watch(std::shared_ptr<detail::Watcher> watcher) noexcept;
  Watch(Watch&&) noexcept = default;
  Watch& operator=(Watch&& other) noexcept;
  ~Watch();
  void end() noexcept;

 private:
  std::shared_ptr<detail::Watcher> watcher_;
};

}  // namespace ebb::memory
