// What a kernel is told of the stream that its work goes into.
#pragma once
#include <cuda_runtime.h>

#include "ebb/core/kernels/kernel.h"

namespace ebb::cuda {

// The runtime's streams derive from it (runtime/stream.h).
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
