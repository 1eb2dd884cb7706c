#include "ebb/tests/emulated_cuda/api/call.h"

namespace ebb::emulated {

ThreadState& thread_state() {
  thread_local ThreadState state;
  return state;
}

cudaError_t answer(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) thread_state().last_error = error;
  return error;
}

cudaError_t check_driver(const Machine& machine) {
  if (machine.driver < CUDART_VERSION / 1000 * 1000) return cudaErrorInsufficientDriver;
  return machine.lost.empty() ? cudaErrorNoDevice : cudaSuccess;
}

}  // namespace ebb::emulated
