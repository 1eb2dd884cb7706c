// The types and functions of the runtime that the emulation has, with CUDA's numbers.
#pragma once
#include <cstddef>

#define CUDART_VERSION 13000

struct uint3 {
  unsigned x, y, z;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct dim3 {
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  unsigned x, y, z;
};

#define EMULATED_ERRORS(ERROR)                  \
  ERROR(cudaErrorInvalidValue, 1)               \
  ERROR(cudaErrorMemoryAllocation, 2)           \
  ERROR(cudaErrorInvalidConfiguration, 9)       \
  ERROR(cudaErrorInvalidMemcpyDirection, 21)    \
  ERROR(cudaErrorInsufficientDriver, 35)        \
  ERROR(cudaErrorDevicesUnavailable, 46)        \
  ERROR(cudaErrorInvalidDeviceFunction, 98)     \
  ERROR(cudaErrorNoDevice, 100)                 \
  ERROR(cudaErrorInvalidDevice, 101)            \
  ERROR(cudaErrorNoKernelImageForDevice, 209)   \
  ERROR(cudaErrorInvalidKernelImage, 200)       \
  ERROR(cudaErrorInvalidResourceHandle, 400)    \
  ERROR(cudaErrorIllegalState, 401)             \
  ERROR(cudaErrorNotReady, 600)                 \
  ERROR(cudaErrorIllegalAddress, 700)           \
  ERROR(cudaErrorLaunchOutOfResources, 701)     \
  ERROR(cudaErrorLaunchFailure, 719)            \
  ERROR(cudaErrorStreamCaptureUnsupported, 900) \
  ERROR(cudaErrorStreamCaptureInvalidated, 901) \
  ERROR(cudaErrorStreamCaptureMerge, 902)       \
  ERROR(cudaErrorStreamCaptureUnmatched, 903)   \
  ERROR(cudaErrorStreamCaptureUnjoined, 904)    \
  ERROR(cudaErrorStreamCaptureIsolation, 905)   \
  ERROR(cudaErrorCapturedEvent, 907)
enum cudaError_t {
  cudaSuccess = 0,
#define EMULATED_ENUMERATOR(name, number) name = number,
  EMULATED_ERRORS(EMULATED_ENUMERATOR)
#undef EMULATED_ENUMERATOR
};

typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
typedef struct CUgraph_st* cudaGraph_t;
typedef struct CUgraphExec_st* cudaGraphExec_t;
typedef struct CUlib_st* cudaLibrary_t;
typedef struct CUkern_st* cudaKernel_t;

#define cudaStreamNonBlocking 0x01
#define cudaEventDisableTiming 0x02
#define cudaHostAllocPortable 0x01
#define cudaEnableDefault 0x0

enum cudaMemcpyKind {
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4,
};

enum cudaStreamCaptureMode { cudaStreamCaptureModeRelaxed = 2 };

enum cudaJitOption {};
enum cudaLibraryOption {};

enum cudaDriverEntryPointQueryResult {
  cudaDriverEntryPointSuccess = 0,
  cudaDriverEntryPointSymbolNotFound = 1,
};

enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
};

struct cudaDeviceProp {
  char name[256];
};

struct cudaFuncAttributes {
  int maxThreadsPerBlock;
};

struct cudaLaunchConfig_t {
  dim3 gridDim;
  dim3 blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
};

extern "C" {
cudaError_t cudaGetLastError();
const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);

cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* status);

cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
cudaError_t cudaMalloc(void** address, size_t bytes);
cudaError_t cudaFree(void* address);
cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* address);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption* options,
                                void** values, unsigned count, cudaLibraryOption* library_options,
                                void** library_values, unsigned library_count);
cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name);
cudaError_t cudaLibraryUnload(cudaLibrary_t library);
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel,
                                void** arguments);

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel);
}
