// Common frame of all calls to the emulated runtime.
#pragma once
#include "ebb/tests/emulated_cuda/queues/machine.h"

namespace ebb::emulated {

// The calling thread's current device and last error.
struct ThreadState {
  int device = 0;
  cudaError_t last_error = cudaSuccess;
};
ThreadState& thread_state();

// Notes the error for cudaGetLastError() and returns it.
cudaError_t answer(cudaError_t error);
// cudaSuccess where there is a driver that is new enough, and a device.
cudaError_t check_driver(const Machine& machine);

// Runs body(machine, lock) unless driver or device is missing or the device is lost. Notes the
// resulting error.
template <class Body>
cudaError_t call(const Body& body) {
  Machine& own = machine();
  auto lock = own.lock();
  cudaError_t error = check_driver(own);
  if (error == cudaSuccess) error = own.lost_code(thread_state().device);
  if (error == cudaSuccess) error = body(own, lock);
  return answer(error);
}

// A function of the driver that the emulation has; null for others.
void* driver_function(const char* name);

}  // namespace ebb::emulated
