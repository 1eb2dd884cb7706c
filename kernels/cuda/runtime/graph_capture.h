// A row of launches as a CUDA graph.
#pragma once
#include <cuda_runtime.h>

#include "ebb/core/device/backend.h"

namespace ebb::cuda {

class GraphCapture final : public Capture {
 public:
  explicit GraphCapture(int device) noexcept : device_(device) {}
  ~GraphCapture() override;

  // The stream's device is current, and the caller holds the stream (LiveStreams) from begin() to
  // end(), which has to follow whatever happens. What is put into the stream meanwhile is recorded
  // and not done.
  static cudaError_t begin(cudaStream_t stream) noexcept;
  // Without `keeps` what was recorded is dropped. A failure leaves nothing behind.
  cudaError_t end(cudaStream_t stream, bool keeps) noexcept;

  cudaGraphExec_t get() const noexcept { return graph_; }

 private:
  const int device_;
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace ebb::cuda
