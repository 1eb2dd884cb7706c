// An allocator on a simulated device whose source can be told to fail.
#pragma once

#include <memory>
#include <utility>

#include "ebb/allocator/caching_allocator.h"
#include "ebb/allocator/simulated_source.h"
#include "ebb/tests/allocator/mib.h"
#include "ebb/tests/fault_source.h"

namespace ebb::tests {

struct Faulty {
  FaultInjectingSource* source;
  memory::CachingAllocator allocator;

  explicit Faulty(memory::Profile profile = {})
      : Faulty(std::make_unique<FaultInjectingSource>(
                   std::make_unique<memory::SimulatedSource>(1024 * kMiB, 4096)),
               std::move(profile)) {}

 private:
  Faulty(std::unique_ptr<FaultInjectingSource> faults, memory::Profile profile)
      : source(faults.get()), allocator(std::move(faults), std::move(profile)) {}
};

}  // namespace ebb::tests
