#pragma once
#include "ebb/core/device/runtime.h"
#include "ebb/core/tensor/op_def.h"

namespace ebb {

namespace detail {
[[noreturn]] void throw_no_kernel(const OpDef& op, const Runtime& runtime, CallSite site);
// What the kernel's prepare rule makes. The log tells (debug) which way was found, where there are
// several.
Ref<Prepared> prepare(const OpDef& op, const DeviceKernel& kernel, const MemoryQuery& query);
}  // namespace detail

// The kernel and rules of an operator on a device, or on the one that a simulated device is the
// twin of. Throws Error, with the line that applies it, where it has none.
inline const DeviceKernel& kernel_of(const OpDef& op, const Runtime& runtime, CallSite site = {}) {
  const DeviceKernel& kernel =
      runtime.profile().kernels == memory::Kernels::cuda ? op.cuda : op.cpu;
  // Where the rules are known without the kernel, as those of an operator of the user's that nvcc
  // has not compiled, a twin can tell what it takes.
  if (!kernel.run && !(kernel.memory && runtime.is_simulated()))
    detail::throw_no_kernel(op, runtime, site);
  return kernel;
}

}  // namespace ebb
