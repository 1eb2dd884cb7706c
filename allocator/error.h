// The root of ebb's exceptions, and OutOfMemory.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "ebb/allocator/block.h"
#include "ebb/allocator/statistics.h"

namespace ebb {

namespace detail {
/// Beginning of the message of this thread's last Error; empty: it has made none. Has no
/// destructor, since errors are made until the process ends.
inline thread_local constinit std::array<char, 192> last_error{};
}  // namespace detail

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {
    std::array<char, 192>& last = detail::last_error;
    last[message.copy(last.data(), last.size() - 1)] = '\0';
  }
};

/// A request that could not be served. Nothing has changed when it is thrown, except that unused
/// memory may have gone back to the device.
class OutOfMemory : public Error {
 public:
  enum class Reason {
    device_refused,
    addresses,  ///< the process has none left to map memory at: ulimit -v
    device_limit,
    pool_limit,
    injected
  };

  struct Facts {
    Reason reason = Reason::device_refused;
    memory::Request request;
    std::size_t reserve_bytes = 0;  ///< least that would have had to be reserved
    std::string device;             ///< name of the profile
    std::string pool;               ///< empty: the device's shared cache
    memory::Stats stats;            ///< of the device, its pools included
    std::optional<memory::Stats> pool_stats;
    memory::Fragmentation fragmentation;  ///< of the device
    std::size_t room_bytes = 0;           ///< largest request that would have been served
    std::vector<memory::Holder> holders;  ///< of the device, largest first, a few
    std::vector<std::string> hints;       ///< further ways out that the caller knows
    bool fits_no_batch = false;           ///< the caller knows that no smaller batch would help
  };

  explicit OutOfMemory(Facts facts);

  const Facts& facts() const noexcept { return *facts_; }
  Reason reason() const noexcept { return facts_->reason; }
  std::size_t requested_bytes() const noexcept { return facts_->request.bytes; }
  /// The limit that refused the request, otherwise the device's limit; memory::kNoLimit if there is
  /// none.
  std::size_t limit_bytes() const noexcept;
  std::size_t device_free_bytes() const noexcept { return facts_->stats.device_free; }
  const memory::Stats& stats() const noexcept { return facts_->stats; }

 private:
  std::shared_ptr<const Facts> facts_;  // shared, so that copying the exception cannot throw
};

}  // namespace ebb
