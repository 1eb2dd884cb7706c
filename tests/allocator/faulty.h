// Allocators on a simulated device of 1 GiB.
#pragma once

#include <memory>
#include <stdexcept>
#include <utility>

#include "ebb/allocator/caching_allocator.h"
#include "ebb/allocator/error.h"
#include "ebb/allocator/simulated_source.h"
#include "ebb/tests/allocator/mib.h"
#include "ebb/tests/fault_source.h"

namespace ebb::tests {

inline std::unique_ptr<memory::CachingAllocator> simulated(memory::Profile profile = {}) {
  return std::make_unique<memory::CachingAllocator>(
      std::make_unique<memory::SimulatedSource>(1024 * kMiB, 4096), std::move(profile));
}

/// Makes a call that has to be refused. Returns the error.
template <class Call>
OutOfMemory refusal_of(const Call& call) {
  try {
    call();
  } catch (const OutOfMemory& error) {
    return error;
  }
  throw std::logic_error("nothing was refused");
}

/// An allocator whose source can be told to fail.
struct Faulty {
  FaultInjectingSource* source;
  memory::CachingAllocator allocator;

  explicit Faulty(memory::Profile profile = {})
      : Faulty(std::make_unique<FaultInjectingSource>(
                   std::make_unique<memory::SimulatedSource>(1024 * kMiB, 4096)),
               std::move(profile)) {}
  /// Bounds what can be reserved, by the allocator's limit or as a smaller device would.
  void bound(bool by_limit, std::size_t bytes) {
    if (by_limit)
      allocator.set_limit(bytes);
    else
      source->bound(bytes);
  }

 private:
  Faulty(std::unique_ptr<FaultInjectingSource> faults, memory::Profile profile)
      : source(faults.get()), allocator(std::move(faults), std::move(profile)) {}
};

}  // namespace ebb::tests
