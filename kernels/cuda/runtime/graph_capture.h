// A row of launches as a CUDA graph.
#pragma once
#include <cuda_runtime.h>

#include "ebb/core/device/backend.h"

namespace ebb::cuda {

class GraphCapture final : public Capture {
 public:
  explicit GraphCapture(int device) noexcept : device_(device) {}
  ~GraphCapture() override;

  // Starts recording: work put into the stream until end() is recorded, not run. The stream's
  // device must be current, and the caller holds the stream (LiveStreams) from begin() to end().
  // end() must follow in any case.
  static cudaError_t begin(cudaStream_t stream) noexcept;
  // Ends recording. Without `keeps` drops the recorded work. A failure leaves nothing behind.
  cudaError_t end(cudaStream_t stream, bool keeps) noexcept;

  cudaGraphExec_t get() const noexcept { return graph_; }

 private:
  const int device_;
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace ebb::cuda
