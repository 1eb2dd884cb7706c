// An LSTM computed by a library.
#pragma once
#include <memory>

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/kernel.h"

namespace ebb::cuda {

class LibraryLstm {
 public:
  virtual ~LibraryLstm() = default;
  virtual std::size_t bytes() const noexcept = 0;  // of host memory
  virtual Status forward(const KernelContext& context) const noexcept = 0;
  virtual Status backward(const KernelContext& context) const noexcept = 0;
};

// Prepares cuDNN's LSTM, if that suits the sizes (suits_cudnn()) and needs no more memory than the
// memory rules declare. Otherwise null; forward and backward of the same sizes get the same answer.
// keep: whether there is a reserve. Throws Error where cuDNN has been used on the device and does
// not start on this stream.
std::unique_ptr<LibraryLstm> find_lstm(const MemoryQuery& query, const Spec& x, bool keep);

}  // namespace ebb::cuda
