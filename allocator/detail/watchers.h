// The watches on an allocator.
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

// A registered callback. Several threads may call it at once: making one wait for another, which
// may hold locks of its own, could deadlock.
struct Watcher {
  WatchFunction call;                    // freed once the watch has ended and no call runs
  std::optional<std::size_t> threshold;  // in allocated bytes; without one it is called when a
                                         // request is refused
  bool armed = true;                     // guarded by the allocator's lock
  std::atomic<std::uint32_t> calls = 0;  // running calls, or callers about to check `ended`
  std::atomic<bool> ended = false;
  std::atomic<bool> emptied = false;
  std::shared_ptr<std::atomic<std::size_t>> all_ended;  // counter shared by all watchers, raised
                                                        // when one ends

  // Frees the callback if the watch has ended and no call runs. Takes no lock.
  void empty_if_over() noexcept;
};

class Watchers {
 public:
  // All under the allocator's lock but tell().
  void add(std::shared_ptr<Watcher> watcher);
  bool any() const noexcept { return !watchers_.empty(); }
  // Removes ended watchers; returns whether there were any.
  bool sweep() noexcept;
  // Whether these allocated bytes pass an armed threshold.
  bool exceeded_by(std::size_t allocated) const noexcept { return allocated > alarm_; }
  // Disarms and returns the watchers whose thresholds are passed. They are armed again once the
  // bytes sink below. Returns none while a call runs on this thread.
  std::vector<std::shared_ptr<Watcher>> take_passed(std::size_t allocated);
  std::vector<std::shared_ptr<Watcher>> of_refusals() const;
  void sink_to(std::size_t allocated) noexcept {
    if (allocated <= rearm_) rearm(allocated);
  }

  // Calls the watchers; returns whether any was called. Calls none while a call runs on this
  // thread.
  static bool tell(const std::vector<std::shared_ptr<Watcher>>& watchers, const Pressure& pressure);

 private:
  void rearm(std::size_t allocated) noexcept;
  void set_marks() noexcept;

  std::vector<std::shared_ptr<Watcher>> watchers_;
  std::shared_ptr<std::atomic<std::size_t>> ended_ = std::make_shared<std::atomic<std::size_t>>(0);
  std::size_t swept_ = 0;
  std::size_t alarm_ = std::numeric_limits<std::size_t>::max();  // the lowest armed threshold
  std::size_t rearm_ = 0;  // the highest disarmed threshold; 0 without one
};

}  // namespace ebb::memory::detail
