#include "ebb/kernels/cuda/runtime/graph_capture.h"

#include "ebb/allocator/cuda/current_device.h"

namespace ebb::cuda {

GraphCapture::~GraphCapture() {
  if (!graph_) return;
  static_cast<void>(memory::cuda::make_current(device_));
  if (cudaGraphExecDestroy(graph_) != cudaSuccess) static_cast<void>(cudaGetLastError());
}

cudaError_t GraphCapture::begin(cudaStream_t stream) noexcept {
  return cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
}

cudaError_t GraphCapture::end(cudaStream_t stream, bool keeps) noexcept {
  cudaGraph_t recorded = nullptr;
  cudaError_t error = cudaStreamEndCapture(stream, &recorded);
  if (error == cudaSuccess && keeps) error = cudaGraphInstantiate(&graph_, recorded, 0);
  if (error != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    graph_ = nullptr;
  }
  if (recorded) static_cast<void>(cudaGraphDestroy(recorded));
  return error;
}

}  // namespace ebb::cuda
