// The frame of a call to the runtime.
#pragma once
#include <cuda_runtime.h>
#include "ebb/tests/emulated_cuda/queues/machine.h"

namespace ebb::emulated {

// What the calling thread has told the runtime, and what it was told last.
struct ThreadState {
  int device = 0;
  cudaError_t last_error = cudaSuccess;
  cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
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
  if (error == cudaSuccess) error = own.lost[static_cast<std::size_t>(thread_state().device)].code;
  if (error == cudaSuccess) error = body(own, lock);
  return answer(error);
}

// A call that a capture must not see: where one is open that it counts for, it ends that.
// (https://docs.nvidia.com/cuda: cudaThreadExchangeStreamCaptureMode)
cudaError_t refuse_while_capturing(Machine& machine);
// One that waits for the device, which nobody may while any of its streams is captured.
cudaError_t refuse_wait_for_device(Machine& machine, int device);

}  // namespace ebb::emulated
