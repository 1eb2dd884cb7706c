// Who wants to know of an OutOfMemory before it is thrown.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "ebb/allocator/error.h"
#include "ebb/allocator/event_log.h"

namespace ebb::memory::detail {

/// What an observer is told, of the same moment.
struct OutOfMemoryReport {
  const OutOfMemory::Facts& facts;
  std::vector<Holder> holders;               ///< of the device: all, largest first
  std::shared_ptr<const EventLog> recorder;  ///< of the device; null where there is none
};
using OutOfMemoryObserver = std::function<void(const OutOfMemoryReport&)>;

/// One for the process, called by the thread whose request was refused, outside every lock. It
/// must not throw. An empty one ends it.
void set_out_of_memory_observer(OutOfMemoryObserver observer);
bool observes_out_of_memory() noexcept;
void observe_out_of_memory(const OutOfMemoryReport& report) noexcept;

}  // namespace ebb::memory::detail
