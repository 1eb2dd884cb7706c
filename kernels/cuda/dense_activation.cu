#include "ebb/kernels/cuda/dense_activation.h"

#include <algorithm>
#include <utility>

#include "ebb/core/kernels/functors/activations.h"
#include "ebb/core/kernels/functors/elementary.h"
#include "ebb/kernels/cuda/custom.h"

namespace ebb::cuda {
namespace {

// Neighbouring threads take neighbouring columns; each thread keeps its column's bias for many
// rows.
constexpr int kColumns = kWarp, kRows = kThreads / kWarp;

template <class F, class T>
__global__ void activate(T* y, const T* bias, std::int64_t rows, std::int64_t columns) {
  const F f;
  const std::int64_t step = std::int64_t{gridDim.x} * kColumns;
  for (std::int64_t j = std::int64_t{blockIdx.x} * kColumns + threadIdx.x; j < columns; j += step) {
    const auto shift = bias == nullptr ? Accumulate<T>(0) : static_cast<Accumulate<T>>(bias[j]);
    for (std::int64_t i = std::int64_t{blockIdx.y} * kRows + threadIdx.y; i < rows;
         i += std::int64_t{gridDim.y} * kRows) {
      T& value = y[i * columns + j];
      value = static_cast<T>(f(static_cast<Accumulate<T>>(value) + shift));
    }
  }
}

}  // namespace

template <class T>
Status add_bias_and_activate(cudaStream_t stream, Activation activation, T* y, const T* bias,
                             std::int64_t rows, std::int64_t columns) noexcept {
  if (rows == 0 || columns == 0) return {};
  constexpr std::int64_t kMostWide = 1 << 20, kMostHigh = 1 << 12;
  const dim3 blocks(static_cast<unsigned>(std::min(kMostWide, (columns + kColumns - 1) / kColumns)),
                    static_cast<unsigned>(std::min(kMostHigh, (rows + kRows - 1) / kRows)));
  const auto run = [&](auto f) {
    return launch(stream, activate<decltype(f), T>, blocks, dim3(kColumns, kRows), y, bias, rows,
                  columns);
  };
  switch (activation) {
    case Activation::none:
      if (bias == nullptr) return {};
      return run(functors::Identity{});
    case Activation::relu:
      return run(functors::Relu{});
    case Activation::tanh:
      return run(functors::Tanh{});
    case Activation::sigmoid:
      return run(functors::Sigmoid{});
    default:
      break;
  }
  return {};
}

#define EBB_ADD_BIAS_AND_ACTIVATE(T)                                                          \
  template Status add_bias_and_activate(cudaStream_t, Activation, T*, const T*, std::int64_t, \
                                        std::int64_t) noexcept;
EBB_ADD_BIAS_AND_ACTIVATE(float)
EBB_ADD_BIAS_AND_ACTIVATE(double)
EBB_ADD_BIAS_AND_ACTIVATE(Float16)
EBB_ADD_BIAS_AND_ACTIVATE(BFloat16)
#undef EBB_ADD_BIAS_AND_ACTIVATE

Status activation_backward(const KernelContext& context) {
  constexpr std::make_integer_sequence<int, 2> kDyAndY;
  switch (context.attribute<ActivationAttributes>().activation) {
    case Activation::relu:
      return pointwise<false>(context, functors::ReluGradient(), kDyAndY);
    case Activation::tanh:
      return pointwise<false>(context, functors::TanhGradient(), kDyAndY);
    case Activation::sigmoid:
      return pointwise<false>(context, functors::SigmoidGradient(), kDyAndY);
    default:
      break;
  }
  return Status::refuse("activation_backward is of an activation");
}

}  // namespace ebb::cuda
