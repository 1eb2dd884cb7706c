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

cudaError_t refuse_while_capturing(Machine& machine) {
  const cudaStreamCaptureMode own = thread_state().capture_mode;
  if (own == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  cudaError_t error = cudaSuccess;
  for (const CUstream_st* stream : machine.streams) {
    Capture* const capture = stream->capture.get();
    if (!capture || capture->mode == cudaStreamCaptureModeRelaxed) continue;
    const bool by_this_thread = capture->thread == std::this_thread::get_id();
    const bool everybodys =
        own == cudaStreamCaptureModeGlobal && capture->mode == cudaStreamCaptureModeGlobal;
    if (!by_this_thread && !everybodys) continue;
    machine.invalidate(*capture);
    error = cudaErrorStreamCaptureUnsupported;
  }
  return error;
}

cudaError_t refuse_wait_for_device(Machine& machine, int device) {
  cudaError_t error = cudaSuccess;
  for (const CUstream_st* stream : machine.streams) {
    if (stream->device != device || !stream->capture) continue;
    machine.invalidate(*stream->capture);
    error = cudaErrorStreamCaptureUnsupported;
  }
  return error;
}

}  // namespace ebb::emulated
