// Recurrent layers as products and a cell kernel for each step (plans/recurrent_layout.h), for
// every shape, dtype and device.
#pragma once
#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/recurrent.h"
#include "ebb/kernels/cuda/product.h"

namespace ebb::cuda {

Status composed_recurrent(const KernelContext& context, const PreparedProducts& prepared) noexcept;
Status composed_recurrent_backward(const KernelContext& context,
                                   const PreparedProducts& prepared) noexcept;
detail::Ref<PreparedProducts> prepare_composed_recurrent(const MemoryQuery& query);
detail::Ref<PreparedProducts> prepare_composed_recurrent_backward(const MemoryQuery& query);

}  // namespace ebb::cuda
