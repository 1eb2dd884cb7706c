#include <utility>

#include "ebb/core/kernels/functors/activations.h"
#include "ebb/core/kernels/functors/elementary.h"
#include "ebb/kernels/cuda/custom.h"
#include "ebb/kernels/cuda/epilogue.h"

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

Status add_bias_and_activate(cudaStream_t stream, DType dtype, Activation activation, void* y,
                             const void* bias, std::int64_t rows, std::int64_t columns) noexcept {
  const Shape shape{rows, columns}, of_bias = bias == nullptr ? Shape() : Shape{columns};
  const BroadcastWalk walk(shape, shape, of_bias);
  const auto run = [&]<class F>(F) {
    return for_floating(dtype, [&]<class T>(T) {
      T* const out = static_cast<T*>(y);
      return broadcast(OfSum<F>(), stream,
                       {Operand<T>{out}, Operand<T>{static_cast<const T*>(bias)}}, out, walk,
                       rows * columns);
    });
  };
  switch (activation) {
    case Activation::relu:
      return run(functors::Relu{});
    case Activation::tanh:
      return run(functors::Tanh{});
    case Activation::sigmoid:
      return run(functors::Sigmoid{});
    default:
      return bias == nullptr ? Status() : run(functors::Identity{});
  }
}

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
