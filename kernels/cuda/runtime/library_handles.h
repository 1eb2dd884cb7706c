// Handles of the libraries, opened when they are first asked for.
#pragma once
#include <cuda_runtime.h>

#include <mutex>

#include "ebb/kernels/cuda/runtime/libraries.h"

namespace ebb::cuda {

#if EBB_HAS_CUBLASLT
// A device's handle of cuBLASLt, shared by all streams: each call takes its stream.
class CublasLtHandle {
 public:
  CublasLtHandle() = default;
  ~CublasLtHandle();
  CublasLtHandle(const CublasLtHandle&) = delete;
  CublasLtHandle& operator=(const CublasLtHandle&) = delete;

  // The device must be current. Returns null and sets `problem`, static text, where there is no
  // handle. Callable from any thread.
  cublasLtHandle_t get(const char*& problem) noexcept;

 private:
  std::mutex mutex_;  // guards making the handle
  cublasLtHandle_t handle_ = nullptr;
};
#endif

#if EBB_HAS_CUDNN
// A stream's handle of cuDNN. For one thread at a time.
class CudnnHandle {
 public:
  CudnnHandle() = default;
  ~CudnnHandle() { close(); }
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;

  // Like CublasLtHandle::get(). The handle works in `stream`, which must always be the same.
  cudnnHandle_t get(cudaStream_t stream, const char*& problem) noexcept;
  void close() noexcept;

 private:
  cudnnHandle_t handle_ = nullptr;
};
#endif

}  // namespace ebb::cuda
