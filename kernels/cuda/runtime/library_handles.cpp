#include "ebb/kernels/cuda/runtime/library_handles.h"

namespace ebb::cuda {

// get() tries again after a failure: the device may just have been short of memory.

#if EBB_HAS_CUBLASLT
CublasLtHandle::~CublasLtHandle() {
  if (handle_) static_cast<void>(cublas_lt()->cublasLtDestroy(handle_));
}

cublasLtHandle_t CublasLtHandle::get(const char*& problem) noexcept {
  const std::lock_guard lock(mutex_);
  if (handle_) return handle_;
  const CublasLt* const library = cublas_lt();
  if (!library) {
    problem = "cuBLASLt was not found (EBB_CUBLASLT_LIBRARY may name its file)";
    return nullptr;
  }
  if (library->cublasLtCreate(&handle_) == CUBLAS_STATUS_SUCCESS) return handle_;
  static_cast<void>(cudaGetLastError());
  problem = "cuBLASLt does not start on this device";
  return handle_ = nullptr;
}
#endif

#if EBB_HAS_CUDNN
void CudnnHandle::close() noexcept {
  if (handle_) static_cast<void>(cudnn()->cudnnDestroy(handle_));
  handle_ = nullptr;
}

cudnnHandle_t CudnnHandle::get(cudaStream_t stream, const char*& problem) noexcept {
  if (handle_) return handle_;
  const Cudnn* const library = cudnn();
  if (!library) {
    problem = "cuDNN was not found (EBB_CUDNN_LIBRARY may name its file)";
    return nullptr;
  }
  if (library->cudnnCreate(&handle_) == CUDNN_STATUS_SUCCESS) {
    if (library->cudnnSetStream(handle_, stream) == CUDNN_STATUS_SUCCESS) return handle_;
  } else {
    handle_ = nullptr;
  }
  close();
  static_cast<void>(cudaGetLastError());
  problem = "cuDNN does not start on this device";
  return nullptr;
}
#endif

}  // namespace ebb::cuda
