// Stacks of recurrent layers, by cuDNN or composed of products.
#pragma once
#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/recurrent.h"

namespace ebb::cuda {

// A stack prepared for one direction.
class RecurrentForm : public Prepared {
 public:
  virtual Status run(const KernelContext& context) const noexcept = 0;
};

// Prepares cuDNN's LSTM, if that suits the sizes (suits_cudnn()) and needs no more memory than the
// memory rules declare. Otherwise null; forward and backward of the same sizes get the same answer.
// Throws Error where cuDNN has been used on the device and does not start on this stream.
detail::Ref<RecurrentForm> find_lstm(const MemoryQuery& query, bool backward);

// Products and a cell kernel for each step (plans/recurrent_layout.h), for every shape, dtype and
// device.
detail::Ref<RecurrentForm> compose_recurrent(const MemoryQuery& query);
detail::Ref<RecurrentForm> compose_recurrent_backward(const MemoryQuery& query);

}  // namespace ebb::cuda
