#include "ebb/kernels/cuda/lstm_cudnn_layer.h"

#if EBB_HAS_CUDNN

namespace ebb::cuda {
namespace {

cudnnDataType_t math_precision(DType dtype) noexcept {
  return dtype == DType::f64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}
// 16 bits use tensor cores, whose sums are f32. cuDNN's default for f32 is TF32 where the GPU has
// it.
cudnnMathType_t math_type(DType dtype) noexcept {
  if (is_half(dtype)) return CUDNN_TENSOR_OP_MATH;
  return dtype == DType::f64 || is_tf32_allowed() ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
}

Status status_of(cudnnStatus_t status) noexcept {
  if (done(status)) return {};
  return Status::fail("cuDNN could not compute an LSTM", static_cast<int>(status));
}

}  // namespace

// The persistent algorithm for few hidden units is taken where PyTorch takes it. Its kernels differ
// forward and backward, so that a training step, whose two passes share a reserve, has the lower
// bound for both.
bool CudnnLayers::describe(cudnnHandle_t handle, cudnnForwardMode_t mode,
                           const CudnnCallBytes& allowed) {
  mode_ = mode;
  is_persistent_ = size_.dtype != DType::f64 &&
                   size_.hidden <= (mode == CUDNN_FWD_MODE_TRAINING ? 128 : 192) &&
                   fits(handle, CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H, allowed);
  if (!is_persistent_ && !fits(handle, CUDNN_RNN_ALGO_STANDARD, allowed)) return false;
  for (int layer = 0; layer < layers(); ++layer)
    if (!find_weights(handle, layer)) return false;
  return true;
}

bool CudnnLayers::fits(cudnnHandle_t handle, cudnnRNNAlgo_t algorithm,
                       const CudnnCallBytes& allowed) {
  return describe_shapes(handle, algorithm) &&
         done(cudnn()->cudnnGetRNNWeightSpaceSize(handle, rnn_.get(), &needs_.weights)) &&
         done(cudnn()->cudnnGetRNNTempSpaceSizes(handle, rnn_.get(), mode_, x_.get(),
                                                 &needs_.workspace, &needs_.reserve)) &&
         needs_.weights <= allowed.weights && needs_.workspace <= allowed.workspace &&
         needs_.reserve <= allowed.reserve;
}

bool CudnnLayers::describe_shapes(cudnnHandle_t handle, cudnnRNNAlgo_t algorithm) {
  const cudnnDataType_t type = cudnn_type(size_.dtype);
  const int batch = static_cast<int>(size_.batch), time = static_cast<int>(size_.time);
  const int in = static_cast<int>(in_), hidden = static_cast<int>(size_.hidden);
  const std::vector<int> lengths(static_cast<std::size_t>(batch), time);
  const int state_shape[] = {layers(), batch, hidden},
            state_strides[] = {batch * hidden, hidden, 1};
  const auto describe_data = [&](const RnnDataDescriptor& data, int width) {
    return data.get() != nullptr && done(cudnn()->cudnnSetRNNDataDescriptor(
                                        data.get(), type, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED,
                                        time, batch, width, lengths.data(), nullptr));
  };
  return dropout_.get() != nullptr && rnn_.get() != nullptr && state_.get() != nullptr &&
         done(cudnn()->cudnnSetDropoutDescriptor(dropout_.get(), handle, 0, nullptr, 0, 0)) &&
         done(cudnn()->cudnnSetRNNDescriptor_v8(
             rnn_.get(), algorithm, CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS, CUDNN_UNIDIRECTIONAL,
             CUDNN_LINEAR_INPUT, type, math_precision(size_.dtype), math_type(size_.dtype), in,
             hidden, hidden, layers(), dropout_.get(), CUDNN_RNN_PADDED_IO_DISABLED)) &&
         describe_data(x_, in) && describe_data(y_, hidden) &&
         done(cudnn()->cudnnSetTensorNdDescriptor(state_.get(), type, 3, state_shape,
                                                  state_strides));
}

// Finds the offsets of the weights, which depend on the descriptor alone, so any address stands in
// for the space. Fails unless the four gates follow one another.
bool CudnnLayers::find_weights(cudnnHandle_t handle, int layer) noexcept {
  const TensorDescriptor matrix, bias;
  if (matrix.get() == nullptr || bias.get() == nullptr) return false;
  const std::int64_t item = static_cast<std::int64_t>(size_of(size_.dtype));
  std::byte* const space = reinterpret_cast<std::byte*>(kCudnnAlignment);
  CudnnWeights& found = weights_[static_cast<std::size_t>(layer)];
  for (int gate = 0; gate < 8; ++gate) {
    void *matrix_at = nullptr, *bias_at = nullptr;
    if (!done(cudnn()->cudnnGetRNNWeightParams(handle, rnn_.get(), layer, needs_.weights, space,
                                               gate, matrix.get(), &matrix_at, bias.get(),
                                               &bias_at)) ||
        matrix_at == nullptr || bias_at == nullptr)
      return false;
    const std::int64_t before = gate % 4;
    const std::int64_t width = gate < 4 && layer == 0 ? in_ : size_.hidden;
    const auto offset_of = [&](void* at) {
      return (reinterpret_cast<std::intptr_t>(at) - reinterpret_cast<std::intptr_t>(space)) / item;
    };
    const std::int64_t matrices = offset_of(matrix_at) - before * size_.hidden * width;
    const std::int64_t biases = offset_of(bias_at) - before * size_.hidden;
    std::int64_t& first_matrix = gate < 4 ? found.w : found.r;
    std::int64_t& first_bias = gate < 4 ? found.b : found.second_b;
    if (before == 0) {
      first_matrix = matrices;
      first_bias = biases;
    } else if (matrices != first_matrix || biases != first_bias) {
      return false;
    }
  }
  return true;
}

Status CudnnLayers::forward(cudnnHandle_t handle, const void* x, void* y, const void* h0, void* h,
                            const void* c0, void* c, const void* weights, void* work,
                            void* reserve) const noexcept {
  return status_of(cudnn()->cudnnRNNForward(handle, rnn_.get(), mode_, nullptr, x_.get(), x,
                                            y_.get(), y, state_.get(), h0, h, state_.get(), c0, c,
                                            needs_.weights, weights, needs_.workspace, work,
                                            needs_.reserve, reserve));
}

Status CudnnLayers::backward_data(cudnnHandle_t handle, const void* y, const void* dy, void* dx,
                                  const void* h0, const void* dh, void* dh0, const void* c0,
                                  const void* dc, void* dc0, const void* weights, void* work,
                                  void* reserve) const noexcept {
  return status_of(cudnn()->cudnnRNNBackwardData_v8(
      handle, rnn_.get(), nullptr, y_.get(), y, dy, x_.get(), dx, state_.get(), h0, dh, dh0,
      state_.get(), c0, dc, dc0, needs_.weights, weights, needs_.workspace, work, needs_.reserve,
      reserve));
}

Status CudnnLayers::backward_weights(cudnnHandle_t handle, const void* x, const void* h0,
                                     const void* y, void* d_weights, void* work,
                                     void* reserve) const noexcept {
  return status_of(cudnn()->cudnnRNNBackwardWeights_v8(
      handle, rnn_.get(), CUDNN_WGRAD_MODE_ADD, nullptr, x_.get(), x, state_.get(), h0, y_.get(), y,
      needs_.weights, d_weights, needs_.workspace, work, needs_.reserve, reserve));
}

}  // namespace ebb::cuda

#endif
