// Callbacks for memory that runs short.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace ebb::memory {

namespace detail {
struct Watcher;
}  // namespace detail

/// Argument of a watch's callback.
struct Pressure {
  std::size_t requested_bytes =
      0;  ///< of the request about to be refused, or of the one that passed a threshold
  std::size_t missing_bytes = 0;    ///< would have to come back for the request; 0 for a threshold
  std::size_t allocated_bytes = 0;  ///< on the device
  std::size_t reserved_bytes = 0;
};

/// Called without any lock, on the thread that asks for memory, in the middle of its work: an
/// operator, a session's run. It may free tensors, release caches, change limits, allocate, plan
/// and close other sessions. It is not told of pressure that it causes itself. If it throws, the
/// request fails with that exception and nothing else has changed. Calls may run on several threads
/// at once: guard shared data.
using WatchFunction = std::function<void(const Pressure&)>;

/// Ends the watch with its scope, and waits for calls on other threads.
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

/// Whether a WatchFunction runs on this thread. Waiting there for another thread may deadlock,
/// since that thread may be waiting for the call to end.
bool is_in_watch_call() noexcept;

}  // namespace ebb::memory
