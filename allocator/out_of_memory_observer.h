// Reports an OutOfMemory to an observer before it is thrown.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "ebb/allocator/error.h"
#include "ebb/allocator/event_log.h"

namespace ebb::memory::detail {

/// State at the moment of the refusal.
struct OutOfMemoryReport {
  const OutOfMemory::Facts& facts;
  std::vector<Holder> holders;               ///< of the device: all of them, largest first
  std::shared_ptr<const EventLog> recorder;  ///< of the device; null without one
};
using OutOfMemoryObserver = std::function<void(const OutOfMemoryReport&)>;

/// Sets the process's only observer; an empty one ends it. It is called on the thread whose request
/// was refused, outside every lock, and must not throw.
void set_out_of_memory_observer(OutOfMemoryObserver observer);
/// Null without one.
std::shared_ptr<const OutOfMemoryObserver> out_of_memory_observer() noexcept;

}  // namespace ebb::memory::detail
