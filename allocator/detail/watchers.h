// Who watches an allocator.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "ebb/allocator/watch.h"

namespace ebb::memory::detail {

// Several threads may call it at once: to let one wait for another, which has locks of its own,
// would be a deadlock.
struct Watcher {
  WatchFunction call;                    // goes once the watch has ended and nobody calls it
  std::optional<std::size_t> threshold;  // of allocated bytes; none: told when a request is refused
  bool armed = true;                     // guarded by the allocator's lock
  std::atomic<std::uint32_t> calls = 0;  // that run, or are about to find out that it has ended
  std::atomic<bool> ended = false;
  std::atomic<bool> emptied = false;
  std::shared_ptr<std::atomic<std::size_t>> all_ended;  // counts it, then

  // What it owns goes, without a lock.
  void empty_if_over() noexcept;
};

class Watchers {
 public:
  // All under the allocator's lock but the last.
  void add(std::shared_ptr<Watcher> watcher);
  bool any() const noexcept { return !watchers_.empty(); }
  // Whether there are some that have ended, and forgets them.
  bool sweep() noexcept;
  // Whether so many allocated bytes pass a threshold that was not passed before.
  bool passes(std::size_t allocated) const noexcept { return allocated > alarm_; }
  // Those whose thresholds they pass, which are armed again once they are no longer passed. None
  // while a call runs on this thread.
  std::vector<std::shared_ptr<Watcher>> take_passed(std::size_t allocated);
  std::vector<std::shared_ptr<Watcher>> of_refusals() const;
  void sink_to(std::size_t allocated) noexcept {
    if (allocated <= rearm_) rearm(allocated);
  }

  // Whether anybody was told: not while a call runs on this thread.
  static bool tell(const std::vector<std::shared_ptr<Watcher>>& watchers, const Pressure& pressure);

 private:
  void rearm(std::size_t allocated) noexcept;
  void set_marks() noexcept;

  std::vector<std::shared_ptr<Watcher>> watchers_;
  std::shared_ptr<std::atomic<std::size_t>> ended_ = std::make_shared<std::atomic<std::size_t>>(0);
  std::size_t swept_ = 0;
  std::size_t alarm_ = std::numeric_limits<std::size_t>::max();  // the lowest armed threshold
  std::size_t rearm_ = 0;  // the highest that is not armed; 0 without one
};

}  // namespace ebb::memory::detail
