// Common frame of all calls to the emulated runtime.
#pragma once
#include "ebb/tests/emulated_cuda/queues/machine.h"

namespace ebb::emulated {

inline thread_local cudaError_t last_error = cudaSuccess;

// Notes the error for cudaGetLastError() and returns it.
inline cudaError_t answer(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}
// cudaSuccess where there is a driver that is new enough, and a device.
inline cudaError_t check_driver(const Machine& machine) {
  if (machine.driver < CUDART_VERSION / 1000 * 1000) return cudaErrorInsufficientDriver;
  return options().devices == 0 ? cudaErrorNoDevice : cudaSuccess;
}

// Runs body(machine, lock) unless driver or device is missing or the device is lost. Notes the
// resulting error.
template <class Body>
cudaError_t call(const Body& body) {
  Machine& own = machine();
  auto lock = own.lock();
  cudaError_t error = check_driver(own);
  if (error == cudaSuccess) error = own.lost.code;
  if (error == cudaSuccess) error = body(own, lock);
  return answer(error);
}

// A function of the driver that the emulation has; null for others.
void* driver_function(const char* name);

}  // namespace ebb::emulated
