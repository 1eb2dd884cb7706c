// The stream that a kernel launches into, and CUDA's answer to a call.
#pragma once
#include <cuda_runtime.h>

#include "ebb/core/kernels/kernel.h"
#include "ebb/core/kernels/status.h"

// Returns the status of `expression` if it failed, which skips the rest of the function.
#define EBB_TRY(expression)                               \
  if (const Status status = (expression); !status.ok()) { \
    return status;                                        \
  }

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

inline Status answer(cudaError_t error, const char* problem) noexcept {
  if (error == cudaSuccess) [[likely]]
    return {};
  static_cast<void>(cudaGetLastError());  // clear it, or the next call would report it too
  return Status::fail(problem, static_cast<int>(error));
}

}  // namespace ebb::cuda
