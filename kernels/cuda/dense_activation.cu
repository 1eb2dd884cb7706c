#include "ebb/kernels/cuda/dense_activation.h"

#include <utility>

#include "ebb/core/kernels/functors/activations.h"
#include "ebb/core/kernels/functors/elementary.h"
#include "ebb/kernels/cuda/custom.h"

namespace ebb::cuda {
namespace {

template <class F>
struct OfSum {
  template <class A>
  __device__ A operator()(A x, A bias) const {
    return F()(x + bias);
  }
};

}  // namespace

template <class T>
Status add_bias_and_activate(cudaStream_t stream, Activation activation, T* y, const T* bias,
                             std::int64_t rows, std::int64_t columns) noexcept {
  const Shape shape{rows, columns}, of_bias = bias == nullptr ? Shape() : Shape{columns};
  const BroadcastWalk walk(shape, shape, of_bias);
  const auto run = [&]<class F>(F) {
    return broadcast(OfSum<F>(), stream, {Operand<T>{y}, Operand<T>{bias}}, y, walk,
                     rows * columns);
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
