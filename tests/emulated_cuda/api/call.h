// The frame of a call to the runtime.
#pragma once
#include "ebb/tests/emulated_cuda/queues/machine.h"

namespace ebb::emulated {

// What the calling thread has told the runtime, and what it was told last.
struct ThreadState {
  int device = 0;
  cudaError_t last_error = cudaSuccess;
};
ThreadState& thread_state();

// Notes the error for cudaGetLastError.
cudaError_t answer(cudaError_t error);
// Whether there is a driver and a device at all.
cudaError_t check_driver(const Machine& machine);

// Runs body(machine, lock) where driver and device are there, and notes what it answers.
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
