// Devices made for tests.
#pragma once
#include "ebb/allocator/host_source.h"
#include "ebb/core/device/runtime.h"

namespace ebb::tests {

// Differences of a device of host memory from the CPU.
struct SecondDevice {
  bool captures_programs = false;  // feeds and fetches have slots in the arena
  bool grows = true;               // there are addresses to reserve
  std::size_t capacity_bytes = 0;  // 0: the machine's memory
  bool has_large_blocks = false;   // each of whole pages
};

// Makes a device of host memory beside Device::cpu(), to test copies between devices and settings
// of a profile.
inline Device make_second_device(const SecondDevice& how = {},
                                 std::unique_ptr<memory::MemorySource> source = nullptr) {
  Runtime::Parts parts;
  parts.name = "second";
  const memory::Profile& tested = Device::cpu().runtime().profile();
  if (tested.kernels == memory::Kernels::cpu) parts.profile = tested;
  parts.profile.captures_programs = how.captures_programs;
  parts.profile.grows = how.grows;
  if (how.has_large_blocks) parts.profile.rounding = parts.profile.page_bytes;
  parts.source = source               ? std::move(source)
                 : how.capacity_bytes ? std::make_unique<memory::HostSource>(how.capacity_bytes)
                                      : std::make_unique<memory::HostSource>();
  parts.backend = ebb::detail::make_cpu_backend();
  return Runtime::make(std::move(parts));
}

}  // namespace ebb::tests
