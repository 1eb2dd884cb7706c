#pragma once
#include "ebb/core/device/runtime.h"
#include "ebb/core/tensor/op_def.h"

namespace ebb {

namespace detail {
[[noreturn]] void throw_no_kernel(const OpDef& op, const Runtime& runtime, CallSite site);
// Calls the kernel's prepare rule. The debug log tells the chosen way, if there are several.
Ref<Prepared> prepare(const OpDef& op, const DeviceKernel& kernel, const MemoryQuery& query);
}  // namespace detail

// Kernel and rules of an operator on a device; a simulated device uses its original's.
// Throws Error, with the line of the application, if there is no kernel.
inline const DeviceKernel& kernel_of(const OpDef& op, const Runtime& runtime, CallSite site = {}) {
  const DeviceKernel& kernel =
      runtime.profile().kernels == memory::Kernels::cuda ? op.cuda : op.cpu;
  // A twin needs only the memory rule, for example of a user's operator that nvcc has not compiled.
  if (!kernel.run && !(kernel.memory && runtime.is_simulated()))
    detail::throw_no_kernel(op, runtime, site);
  return kernel;
}

}  // namespace ebb
