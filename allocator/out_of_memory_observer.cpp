#include "ebb/allocator/out_of_memory_observer.h"

#include <atomic>
#include <mutex>
#include <utility>

namespace ebb::memory::detail {

namespace {
struct Observed {
  std::mutex mutex;
  std::shared_ptr<const OutOfMemoryObserver> observer;  // guarded by the mutex
  std::atomic<bool> any = false;
};
Observed& observed() noexcept {
  static Observed observed;
  return observed;
}
}  // namespace

void set_out_of_memory_observer(OutOfMemoryObserver observer) {
  const bool any = static_cast<bool>(observer);
  auto next = any ? std::make_shared<const OutOfMemoryObserver>(std::move(observer)) : nullptr;
  const std::lock_guard lock(observed().mutex);
  observed().observer.swap(next);
  observed().any = any;
}

bool observes_out_of_memory() noexcept { return observed().any; }

void observe_out_of_memory(const OutOfMemoryReport& report) noexcept {
  std::shared_ptr<const OutOfMemoryObserver> observer;
  {
    const std::lock_guard lock(observed().mutex);
    observer = observed().observer;
  }
  if (observer) (*observer)(report);
}

}  // namespace ebb::memory::detail
