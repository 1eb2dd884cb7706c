#include "ebb/kernels/cpu/dense_activation.h"

#include "ebb/core/kernels/functors/activations.h"
#include "ebb/core/kernels/functors/elementary.h"
#include "ebb/kernels/cpu/elementary.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/vector_half.h"

namespace ebb::cpu {
namespace {

template <class F, class T>
void activate(T* y, const T* bias, std::int64_t count) noexcept {
  const F f;
  std::int64_t i = 0;
  if (bias != nullptr) {
    for (; i + kBlock<T> <= count; i += kBlock<T>) {
      const Block<T> sum = load(y + i) + load(bias + i);
      store<T>(y + i, evaluate<F, T>(f, sum));
    }
    if (i < count) {
      const Block<T> sum = load_tail(y + i, count - i) + load_tail(bias + i, count - i);
      store_tail<T>(y + i, evaluate<F, T>(f, sum), count - i);
    }
  } else {
    for (; i + kBlock<T> <= count; i += kBlock<T>) store<T>(y + i, evaluate<F, T>(f, load(y + i)));
    if (i < count) store_tail<T>(y + i, evaluate<F, T>(f, load_tail(y + i, count - i)), count - i);
  }
}

template <class F, class S>
void differentiate(const S* y, const S* dy, S* out, std::int64_t count) {
  using T = Computed<S>;
  for_pieces(count, kPieceElements, [=](std::int64_t begin, std::int64_t end) {
    const F f;
    std::int64_t i = begin;
    for (; i + kBlock<T> <= end; i += kBlock<T>) {
      const Block<T> a = load(dy + i), b = load(y + i);
      store(out + i, evaluate<F, T>(f, a, b));
    }
    if (i < end) {
      const Block<T> a = load_tail(dy + i, end - i), b = load_tail(y + i, end - i);
      store_tail(out + i, evaluate<F, T>(f, a, b), end - i);
    }
  });
}

}  // namespace

template <class T>
void add_bias_and_activate(Activation activation, T* y, const T* bias,
                           std::int64_t count) noexcept {
  switch (activation) {
    case Activation::none:
      if (bias != nullptr) activate<functors::Identity>(y, bias, count);
      return;
    case Activation::relu:
      return activate<functors::Relu>(y, bias, count);
    case Activation::tanh:
      return activate<functors::Tanh>(y, bias, count);
    case Activation::sigmoid:
      return activate<functors::Sigmoid>(y, bias, count);
    default:
      return;
  }
}

template <class T>
void multiply_by_derivative(Activation activation, const T* y, const T* dy, T* out,
                            std::int64_t count) {
  switch (activation) {
    case Activation::relu:
      return differentiate<functors::ReluGradient>(y, dy, out, count);
    case Activation::tanh:
      return differentiate<functors::TanhGradient>(y, dy, out, count);
    case Activation::sigmoid:
      return differentiate<functors::SigmoidGradient>(y, dy, out, count);
    default:
      return;
  }
}

template void add_bias_and_activate(Activation, float*, const float*, std::int64_t) noexcept;
template void add_bias_and_activate(Activation, double*, const double*, std::int64_t) noexcept;
template void multiply_by_derivative(Activation, const float*, const float*, float*, std::int64_t);
template void multiply_by_derivative(Activation, const double*, const double*, double*,
                                     std::int64_t);
template void multiply_by_derivative(Activation, const Float16*, const Float16*, Float16*,
                                     std::int64_t);
template void multiply_by_derivative(Activation, const BFloat16*, const BFloat16*, BFloat16*,
                                     std::int64_t);

}  // namespace ebb::cpu
