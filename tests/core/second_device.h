// A second device of host memory, for tests of what happens between devices.
#pragma once
#include "ebb/allocator/host_source.h"
#include "ebb/core/device/runtime.h"

namespace ebb::tests {

inline Device make_second_device(bool captures_programs = false) {
  Runtime::Parts parts;
  parts.name = "second";
  const memory::Profile& tested = Device::cpu().runtime().profile();
  if (tested.kernels == memory::Kernels::cpu) parts.profile = tested;
  parts.profile.captures_programs = captures_programs;
  parts.source = std::make_unique<memory::HostSource>();
  parts.backend = ebb::detail::make_cpu_backend();
  return Runtime::make(std::move(parts));
}

}  // namespace ebb::tests
