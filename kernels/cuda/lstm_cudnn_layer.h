// cuDNN's description of the LSTM layers of one call.
#pragma once
#include <span>
#include <vector>

#include "ebb/kernels/cuda/plans/lstm_cudnn_layout.h"
#include "ebb/kernels/cuda/runtime/libraries.h"

#if EBB_HAS_CUDNN

namespace ebb::cuda {

// A descriptor of cuDNN, created and destroyed with this object.
template <class Handle, auto kCreate, auto kDestroy>
class CudnnDescriptor {
 public:
  CudnnDescriptor() noexcept {
    if (!done((cudnn()->*kCreate)(&handle_))) handle_ = nullptr;
  }
  CudnnDescriptor(const CudnnDescriptor&) = delete;
  CudnnDescriptor& operator=(const CudnnDescriptor&) = delete;
  ~CudnnDescriptor() {
    if (handle_ != nullptr) (cudnn()->*kDestroy)(handle_);
  }
  Handle get() const noexcept { return handle_; }

 private:
  Handle handle_ = nullptr;
};
using TensorDescriptor =
    CudnnDescriptor<cudnnTensorDescriptor_t, &Cudnn::cudnnCreateTensorDescriptor,
                    &Cudnn::cudnnDestroyTensorDescriptor>;
using DropoutDescriptor =
    CudnnDescriptor<cudnnDropoutDescriptor_t, &Cudnn::cudnnCreateDropoutDescriptor,
                    &Cudnn::cudnnDestroyDropoutDescriptor>;
using RnnDescriptor = CudnnDescriptor<cudnnRNNDescriptor_t, &Cudnn::cudnnCreateRNNDescriptor,
                                      &Cudnn::cudnnDestroyRNNDescriptor>;
using RnnDataDescriptor =
    CudnnDescriptor<cudnnRNNDataDescriptor_t, &Cudnn::cudnnCreateRNNDataDescriptor,
                    &Cudnn::cudnnDestroyRNNDataDescriptor>;

// Offsets of a layer's weights in cuDNN's space, in elements: W and R as [4, hidden, width], the
// transposes of ebb's, gates in the order i, f, g, o, and two biases [4, hidden].
struct CudnnWeights {
  std::int64_t w = 0, r = 0, b = 0, second_b = 0;
};

class CudnnLayers {
 public:
  CudnnLayers(const RecurrentSizes& size, std::int64_t call)
      : size_(size),
        in_(size.input(call)),
        weights_(static_cast<std::size_t>(size.layers / cudnn_calls(size))) {}

  // Whether cuDNN supports the layers, with no more memory than allowed.
  bool describe(cudnnHandle_t handle, cudnnForwardMode_t mode, const CudnnCallBytes& allowed);

  // Places of each layer's weights.
  std::span<const CudnnWeights> weights() const noexcept { return weights_; }
  std::size_t weight_bytes() const noexcept { return needs_.weights; }
  // Bytes that cuDNN asked for in describe(), whether within the bounds or not.
  const CudnnCallBytes& needs() const noexcept { return needs_; }
  // Whether one kernel makes all steps of a layer.
  bool is_persistent() const noexcept { return is_persistent_; }

  // Arrays are time-major. A null input state counts as zeros, a null output state is not wanted.
  Status forward(cudnnHandle_t handle, const void* x, void* y, const void* h0, void* h,
                 const void* c0, void* c, const void* weights, void* work,
                 void* reserve) const noexcept;
  Status backward_data(cudnnHandle_t handle, const void* y, const void* dy, void* dx,
                       const void* h0, const void* dh, void* dh0, const void* c0, const void* dc,
                       void* dc0, const void* weights, void* work, void* reserve) const noexcept;
  // Adds to d_weights. Must follow backward_data().
  Status backward_weights(cudnnHandle_t handle, const void* x, const void* h0, const void* y,
                          void* d_weights, void* work, void* reserve) const noexcept;

 private:
  bool describe_shapes(cudnnHandle_t handle, cudnnRNNAlgo_t algorithm);
  bool fits(cudnnHandle_t handle, cudnnRNNAlgo_t algorithm, const CudnnCallBytes& allowed);
  bool find_weights(cudnnHandle_t handle, int layer) noexcept;
  int layers() const noexcept { return static_cast<int>(weights_.size()); }

  const RecurrentSizes size_;
  const std::int64_t in_;
  cudnnForwardMode_t mode_ = CUDNN_FWD_MODE_INFERENCE;
  CudnnCallBytes needs_{size_, 0, false};
  std::vector<CudnnWeights> weights_;
  bool is_persistent_ = false;
  DropoutDescriptor dropout_;
  RnnDescriptor rnn_;
  RnnDataDescriptor x_, y_;
  TensorDescriptor state_;
};

}  // namespace ebb::cuda

#endif
