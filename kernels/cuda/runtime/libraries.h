// cuBLASLt, cuDNN, NVRTC and NCCL, loaded when they are first used: linking with them would add
// some 50 ms to a program's start, and they may be missing. Handles are opened when they are first
// asked for.
#pragma once
#include <cuda_runtime.h>

#include <atomic>
#include <string>

#include "ebb/core/base/dtype.h"
#include "ebb/core/kernels/tf32.h"

#if __has_include(<cublasLt.h>)
#define EBB_HAS_CUBLASLT 1
#include <cublasLt.h>
#else
#define EBB_HAS_CUBLASLT 0
#endif

#if __has_include(<cudnn.h>)
#define EBB_HAS_CUDNN 1
#include <cudnn.h>
#else
#define EBB_HAS_CUDNN 0
#endif

#if __has_include(<nccl.h>)
#define EBB_HAS_NCCL 1
#include <nccl.h>
#else
#define EBB_HAS_NCCL 0
#endif

// The runtime loads what NVRTC has made from CUDA 12.8 on.
#if __has_include(<nvrtc.h>) && CUDART_VERSION >= 12080
#define EBB_HAS_NVRTC 1
#include <nvrtc.h>
#else
#define EBB_HAS_NVRTC 0
#endif

namespace ebb::cuda {

// The functions called of each library: a table with a member for each, of the function's own name.
#define EBB_LIBRARY_MEMBER(name) decltype(&::name) name = nullptr;

#if EBB_HAS_CUBLASLT
#define EBB_CUBLASLT_FUNCTIONS(FUNCTION)         \
  FUNCTION(cublasLtCreate)                       \
  FUNCTION(cublasLtDestroy)                      \
  FUNCTION(cublasLtGetVersion)                   \
  FUNCTION(cublasLtMatmulDescCreate)             \
  FUNCTION(cublasLtMatmulDescDestroy)            \
  FUNCTION(cublasLtMatmulDescSetAttribute)       \
  FUNCTION(cublasLtMatrixLayoutCreate)           \
  FUNCTION(cublasLtMatrixLayoutDestroy)          \
  FUNCTION(cublasLtMatrixLayoutSetAttribute)     \
  FUNCTION(cublasLtMatmulPreferenceCreate)       \
  FUNCTION(cublasLtMatmulPreferenceDestroy)      \
  FUNCTION(cublasLtMatmulPreferenceSetAttribute) \
  FUNCTION(cublasLtMatmulAlgoGetHeuristic)       \
  FUNCTION(cublasLtMatmulAlgoConfigGetAttribute) \
  FUNCTION(cublasLtMatmul)

struct CublasLt {
  EBB_CUBLASLT_FUNCTIONS(EBB_LIBRARY_MEMBER)
};

// The loaded functions; null where the library is missing or lacks one of them. The environment's
// EBB_CUBLASLT_LIBRARY names the file; without it the loader searches, first for the version of the
// toolkit that ebb was built with.
const CublasLt* cublas_lt() noexcept;

// A device's handle of cuBLASLt, shared by all streams: each call takes its stream.
class CublasLtHandle {
 public:
  CublasLtHandle() = default;
  ~CublasLtHandle();
  CublasLtHandle(const CublasLtHandle&) = delete;
  CublasLtHandle& operator=(const CublasLtHandle&) = delete;

  // The device must be current. Returns null and sets `problem`, static text, where no version
  // starts. Callable from any thread.
  cublasLtHandle_t get(const char*& problem) noexcept;

 private:
  std::atomic<cublasLtHandle_t> handle_ = nullptr;
};
#endif

#if EBB_HAS_CUDNN
#define EBB_CUDNN_FUNCTIONS(FUNCTION)     \
  FUNCTION(cudnnCreate)                   \
  FUNCTION(cudnnDestroy)                  \
  FUNCTION(cudnnSetStream)                \
  FUNCTION(cudnnGetVersion)               \
  FUNCTION(cudnnCreateTensorDescriptor)   \
  FUNCTION(cudnnDestroyTensorDescriptor)  \
  FUNCTION(cudnnSetTensorNdDescriptor)    \
  FUNCTION(cudnnCreateDropoutDescriptor)  \
  FUNCTION(cudnnDestroyDropoutDescriptor) \
  FUNCTION(cudnnSetDropoutDescriptor)     \
  FUNCTION(cudnnCreateRNNDescriptor)      \
  FUNCTION(cudnnDestroyRNNDescriptor)     \
  FUNCTION(cudnnSetRNNDescriptor_v8)      \
  FUNCTION(cudnnCreateRNNDataDescriptor)  \
  FUNCTION(cudnnDestroyRNNDataDescriptor) \
  FUNCTION(cudnnSetRNNDataDescriptor)     \
  FUNCTION(cudnnGetRNNTempSpaceSizes)     \
  FUNCTION(cudnnGetRNNWeightSpaceSize)    \
  FUNCTION(cudnnGetRNNWeightParams)       \
  FUNCTION(cudnnRNNForward)               \
  FUNCTION(cudnnRNNBackwardData_v8)       \
  FUNCTION(cudnnRNNBackwardWeights_v8)    \
  FUNCTION(cudnnBackendCreateDescriptor)  \
  FUNCTION(cudnnBackendDestroyDescriptor) \
  FUNCTION(cudnnBackendSetAttribute)      \
  FUNCTION(cudnnBackendGetAttribute)      \
  FUNCTION(cudnnBackendFinalize)          \
  FUNCTION(cudnnBackendExecute)

struct Cudnn {
  EBB_CUDNN_FUNCTIONS(EBB_LIBRARY_MEMBER)
};

// cuDNN's functions, likewise; the variable is EBB_CUDNN_LIBRARY.
const Cudnn* cudnn() noexcept;
inline bool done(cudnnStatus_t status) noexcept { return status == CUDNN_STATUS_SUCCESS; }
// Of a floating type.
cudnnDataType_t cudnn_type(DType dtype) noexcept;

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

#if EBB_HAS_NVRTC
#define EBB_NVRTC_FUNCTIONS(FUNCTION) \
  FUNCTION(nvrtcVersion)              \
  FUNCTION(nvrtcGetNumSupportedArchs) \
  FUNCTION(nvrtcGetSupportedArchs)    \
  FUNCTION(nvrtcCreateProgram)        \
  FUNCTION(nvrtcDestroyProgram)       \
  FUNCTION(nvrtcCompileProgram)       \
  FUNCTION(nvrtcGetCUBINSize)         \
  FUNCTION(nvrtcGetCUBIN)             \
  FUNCTION(nvrtcGetProgramLogSize)    \
  FUNCTION(nvrtcGetProgramLog)

struct Nvrtc {
  EBB_NVRTC_FUNCTIONS(EBB_LIBRARY_MEMBER)
};

// NVRTC's functions, likewise; the variable is EBB_NVRTC_LIBRARY.
const Nvrtc* nvrtc() noexcept;
#endif

#if EBB_HAS_NCCL
#define EBB_NCCL_FUNCTIONS(FUNCTION) \
  FUNCTION(ncclGetErrorString)       \
  FUNCTION(ncclGetUniqueId)          \
  FUNCTION(ncclCommInitRankConfig)   \
  FUNCTION(ncclCommDestroy)          \
  FUNCTION(ncclCommAbort)            \
  FUNCTION(ncclCommGetAsyncError)    \
  FUNCTION(ncclGroupStart)           \
  FUNCTION(ncclGroupEnd)             \
  FUNCTION(ncclAllReduce)            \
  FUNCTION(ncclReduceScatter)        \
  FUNCTION(ncclAllGather)            \
  FUNCTION(ncclBroadcast)            \
  FUNCTION(ncclSend)                 \
  FUNCTION(ncclRecv)

struct Nccl {
  EBB_NCCL_FUNCTIONS(EBB_LIBRARY_MEMBER)
};

// NCCL's functions, likewise; the variable is EBB_NCCL_LIBRARY.
const Nccl* nccl() noexcept;
#endif
#undef EBB_LIBRARY_MEMBER

// Whether NVRTC compiles for such a GPU. Another release than the one that ebb is built with does
// not: its code might give other bits than the kernels of single operators.
bool has_nvrtc(int compute_capability) noexcept;

bool has_cudnn() noexcept;
// Whether cuDNN's LSTMs take bf16 on such a GPU: since 9.13, on GPUs that multiply bf16.
bool has_cudnn_bf16(int compute_capability) noexcept;

// Sets the function that warnings go to. Called before anything is prepared.
void warn_by(void (*log_warning)(const std::string& text)) noexcept;
// Warns, once in a process, that products do without cuBLASLt.
void warn_of_slow_products(const char* problem);

// Empty, or why a file that one of the variables names cannot be used.
std::string library_problem();

}  // namespace ebb::cuda
