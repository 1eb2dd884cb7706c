// Errors, versions and devices.
#include <cstdio>
#include <cstring>
#include <limits>

#include "ebb/tests/emulated_cuda/api/call.h"
#include "ebb/tests/emulated_cuda/api/driver.h"
#include "ebb/tests/emulated_cuda/memory/address_space.h"

using namespace ebb::emulated;

namespace {

constexpr int kMultiprocessors = 132;

int attribute(cudaDeviceAttr attribute) {
  const int major = machine().capability / 10, minor = machine().capability % 10;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
      return 1024;
    case cudaDevAttrMaxBlockDimZ:
      return 64;
    case cudaDevAttrMaxGridDimX:
      return std::numeric_limits<int>::max();
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      return 65535;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return 48 << 10;
    case cudaDevAttrTotalConstantMemory:
      return 64 << 10;
    case cudaDevAttrWarpSize:
      return 32;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      return 64 << 10;
    case cudaDevAttrClockRate:
      return 1'980'000;
    case cudaDevAttrMemoryClockRate:
      return 2'619'000;
    case cudaDevAttrGlobalMemoryBusWidth:
      return 5120;
    case cudaDevAttrMultiProcessorCount:
      return kMultiprocessors;
    case cudaDevAttrL2CacheSize:
      return 50 << 20;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return 2048;
    case cudaDevAttrAsyncEngineCount:
      return 3;
    case cudaDevAttrUnifiedAddressing:
      return 1;
    case cudaDevAttrPciBusId:
      return 1;
    case cudaDevAttrComputeCapabilityMajor:
      return major;
    case cudaDevAttrComputeCapabilityMinor:
      return minor;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return 228 << 10;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return 227 << 10;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      return 32;
    case cudaDevAttrSingleToDoublePrecisionPerfRatio:
      return 2;
    default:
      return 0;
  }
}

bool is_device(int device) { return device >= 0 && device < options().devices; }

// What the runtime answers for a device that is there; `error` where it is not.
template <class Body>
cudaError_t of_device(int device, const Body& body) {
  auto lock = machine().lock();
  cudaError_t error = check_driver(machine());
  if (error == cudaSuccess && !is_device(device)) error = cudaErrorInvalidDevice;
  if (error == cudaSuccess) body();
  return answer(error);
}

}  // namespace

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  thread_state().last_error = cudaSuccess;
  return error;
}
// One that lost the device stays.
cudaError_t cudaPeekAtLastError() {
  auto lock = machine().lock();
  if (!machine().lost.empty())
    if (const auto& why = machine().lost[static_cast<std::size_t>(thread_state().device)];
        !why.ok())
      return why.code;
  return thread_state().last_error;
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
#define EMULATED_ERROR(name, number) \
  case name:                         \
    return #name;
#include "ebb/tests/emulated_cuda/shim/errors.inc"
#undef EMULATED_ERROR
  }
  return "unrecognized error code";
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    default:
      return cudaGetErrorName(error);
  }
}

cudaError_t cudaDriverGetVersion(int* version) {
  if (!version) return answer(cudaErrorInvalidValue);
  auto lock = machine().lock();
  *version = machine().driver;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  if (!version) return answer(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  if (!count) return answer(cudaErrorInvalidValue);
  auto lock = machine().lock();
  *count = 0;
  if (const cudaError_t error = check_driver(machine()); error != cudaSuccess) return answer(error);
  *count = options().devices;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  const cudaError_t error = of_device(device, [&] { thread_state().device = device; });
  if (error != cudaSuccess) return error;
  auto lock = machine().lock();
  return answer(machine().lost[static_cast<std::size_t>(device)].code);
}
cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return of_device(device, [] {});
}
cudaError_t cudaGetDevice(int* device) {
  if (!device) return answer(cudaErrorInvalidValue);
  return of_device(0, [&] { *device = thread_state().device; });
}
cudaError_t cudaSetDeviceFlags(unsigned) {
  return of_device(0, [] {});
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
  if (!value) return answer(cudaErrorInvalidValue);
  return of_device(device, [&] { *value = attribute(which); });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!properties) return answer(cudaErrorInvalidValue);
  return of_device(device, [&] {
    *properties = {};
    std::snprintf(properties->name, sizeof(properties->name), "Emulated CUDA device");
    std::memcpy(properties->uuid.bytes, "ebb emulated", 12);
    properties->uuid.bytes[15] = static_cast<char>(device);
    properties->totalGlobalMem = address_space().capacity(device);
    properties->sharedMemPerBlock = 48 << 10;
    properties->sharedMemPerBlockOptin = 227 << 10;
    properties->sharedMemPerMultiprocessor = 228 << 10;
    properties->regsPerBlock = properties->regsPerMultiprocessor = 64 << 10;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = 1024;
    properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = 1024;
    properties->maxThreadsDim[2] = 64;
    properties->maxGridSize[0] = std::numeric_limits<int>::max();
    properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
    properties->major = machine().capability / 10;
    properties->minor = machine().capability % 10;
    properties->multiProcessorCount = kMultiprocessors;
    properties->pciBusID = device + 1;
    properties->asyncEngineCount = 3;
    properties->unifiedAddressing = 1;
    properties->memoryBusWidth = 5120;
    properties->l2CacheSize = 50 << 20;
    properties->maxThreadsPerMultiProcessor = 2048;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  if (!text || length < 13) return answer(cudaErrorInvalidValue);
  return of_device(device, [&] {
    std::snprintf(text, static_cast<std::size_t>(length), "0000:%02X:00.0", device + 1);
  });
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return of_device(0, [&] {
    if (least) *least = 0;
    if (greatest) *greatest = -5;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return call([](Machine& own, Machine::Lock& lock) {
    const int device = thread_state().device;
    if (const cudaError_t error = refuse_wait_for_device(own, device); error != cudaSuccess)
      return error;
    ++own.statistics.synchronisations;
    own.run_all(lock, device);
    return own.lost[static_cast<std::size_t>(device)].code;
  });
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* status) {
  if (!symbol || !function) return answer(cudaErrorInvalidValue);
  auto lock = machine().lock();
  if (machine().driver == 0) return answer(cudaErrorInsufficientDriver);
  *function = static_cast<int>(version) <= machine().driver ? driver_function(symbol) : nullptr;
  if (status)
    *status = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  if (!attributes || !kernel) return answer(cudaErrorInvalidValue);
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  attributes->ptxVersion = attributes->binaryVersion = machine().capability;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute, int) {
  return answer(kernel ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int threads,
                                                          size_t) {
  if (!blocks || threads <= 0 || threads > 1024) return answer(cudaErrorInvalidValue);
  *blocks = 2048 / ((threads + 31) / 32 * 32);
  return cudaSuccess;
}
