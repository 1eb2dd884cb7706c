// Handles of the libraries, opened when they are first asked for.
#pragma once
#include <cuda_runtime.h>

#include <mutex>

#include "ebb/kernels/cuda/runtime/libraries.h"

namespace ebb::cuda {

#if EBB_HAS_CUBLASLT
// A device's handle of cuBLASLt, which takes a stream with each call: all streams have it in
// common.
class CublasLtHandle {
 public:
  CublasLtHandle() = default;
  ~CublasLtHandle();
  CublasLtHandle(const CublasLtHandle&) = delete;
  CublasLtHandle& operator=(const CublasLtHandle&) = delete;

  // The device is current. Null, and `problem`, static text, where there is none. From any thread.
  cublasLtHandle_t get(const char*& problem) noexcept;

 private:
  std::mutex mutex_;  // of the handle, until it is there
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

  // As above; its work goes into `stream`, always the same.
  cudnnHandle_t get(cudaStream_t stream, const char*& problem) noexcept;
  void close() noexcept;

 private:
  cudnnHandle_t handle_ = nullptr;
};
#endif

}  // namespace ebb::cuda
