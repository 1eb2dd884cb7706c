// An LSTM as products and a cell kernel for each step (host/lstm_layout.h): for every shape, dtype
// and device.
#pragma once
#include "ebb/core/kernels/lstm.h"
#include "ebb/kernels/cuda/product.h"

namespace ebb::cuda {

Status composed_lstm(const KernelContext& context, const PreparedProducts& prepared) noexcept;
Status composed_lstm_backward(const KernelContext& context,
                              const PreparedProducts& prepared) noexcept;
detail::Ref<PreparedProducts> prepare_composed_lstm(const MemoryQuery& query);
detail::Ref<PreparedProducts> prepare_composed_lstm_backward(const MemoryQuery& query);

}  // namespace ebb::cuda
