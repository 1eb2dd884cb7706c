// The stream that a kernel launches into.
#pragma once
#include <cuda_runtime.h>

#include "ebb/core/kernels/kernel.h"

namespace ebb::cuda {

// Base of the runtime's streams (runtime/stream.h).
class DeviceStream : public Stream {
 public:
  cudaStream_t get() const noexcept { return stream_; }

 protected:
  cudaStream_t stream_ = nullptr;
};

inline cudaStream_t stream_of(const KernelContext& context) noexcept {
  return static_cast<const DeviceStream*>(context.stream)->get();
}

}  // namespace ebb::cuda
