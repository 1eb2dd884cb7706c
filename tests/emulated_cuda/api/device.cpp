// Errors, versions and devices.
#include <utility>

#include "ebb/tests/emulated_cuda/api/call.h"

using namespace ebb::emulated;

namespace {

// Runs body() if the device exists. Returns `error` if it does not.
template <class Body>
cudaError_t of_device(int device, const Body& body) {
  auto lock = machine().lock();
  cudaError_t error = check_driver(machine());
  if (error == cudaSuccess && device != 0) error = cudaErrorInvalidDevice;
  if (error == cudaSuccess) body();
  return answer(error);
}

}  // namespace

// Clears the thread's last error, as CUDA does. The error of a lost device stays.
cudaError_t cudaGetLastError() {
  auto lock = machine().lock();
  const cudaError_t last = std::exchange(last_error, cudaSuccess);
  return machine().lost.ok() ? last : machine().lost.code;
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
#define EMULATED_NAME(name, number) \
  case name:                        \
    return #name;
      EMULATED_ERRORS(EMULATED_NAME)
#undef EMULATED_NAME
  }
  return "unrecognized error code";
}
const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }

cudaError_t cudaDriverGetVersion(int* version) {
  if (!version) return answer(cudaErrorInvalidValue);
  auto lock = machine().lock();
  *version = machine().driver;
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
  if (const cudaError_t error = of_device(device, [] {}); error != cudaSuccess) return error;
  auto lock = machine().lock();
  return answer(machine().lost.code);
}
cudaError_t cudaGetDevice(int* device) {
  if (!device) return answer(cudaErrorInvalidValue);
  return of_device(0, [&] { *device = 0; });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
  if (!value) return answer(cudaErrorInvalidValue);
  return of_device(device, [&] {
    *value = which == cudaDevAttrComputeCapabilityMajor   ? machine().capability / 10
             : which == cudaDevAttrComputeCapabilityMinor ? machine().capability % 10
                                                          : 132;  // multiprocessors
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return of_device(device, [&] { *properties = {"Emulated CUDA device"}; });
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* status) {
  if (!symbol || !function || !status) return answer(cudaErrorInvalidValue);
  auto lock = machine().lock();
  if (machine().driver == 0) return answer(cudaErrorInsufficientDriver);
  *function = static_cast<int>(version) <= machine().driver ? driver_function(symbol) : nullptr;
  *status = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  if (!attributes || !kernel) return answer(cudaErrorInvalidValue);
  *attributes = {1024};
  return cudaSuccess;
}
