// A simulated source with a test's own behaviour in front.
#pragma once

#include "ebb/allocator/simulated_source.h"

namespace ebb::tests {

/// Forwards every call. A test overrides the calls that it is about.
class SimulatedWith : public memory::MemorySource {
 public:
  explicit SimulatedWith(memory::SimulatedSource& upstream) noexcept : upstream_(upstream) {}

  void* reserve(std::size_t bytes) noexcept override { return upstream_.reserve(bytes); }
  void unreserve(void* base, std::size_t bytes) noexcept override {
    upstream_.unreserve(base, bytes);
  }
  bool commit(void* at, std::size_t bytes) noexcept override { return upstream_.commit(at, bytes); }
  bool decommit(void* at, std::size_t bytes) noexcept override {
    return upstream_.decommit(at, bytes);
  }
  bool overdraw(std::size_t bytes) noexcept override { return upstream_.overdraw(bytes); }
  std::size_t page_bytes() const noexcept override { return upstream_.page_bytes(); }
  std::size_t capacity_bytes() const noexcept override { return upstream_.capacity_bytes(); }
  memory::DeviceMemory device_memory() const noexcept override { return upstream_.device_memory(); }

 private:
  memory::SimulatedSource& upstream_;
};

}  // namespace ebb::tests
