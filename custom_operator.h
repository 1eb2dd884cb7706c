// Operators of your own, outside the library.
//
// An operator that works element by element is a struct, from which both kernels are made:
//
//   struct Swish {
//     static constexpr const char* name = "swish";
//     using Derivatives = ebb::Derivatives<SwishSlope>;  // by each input: functors as well
//     double beta = 1;                                   // parameters, if it has any
//     template <class X>
//     EBB_HOST_DEVICE X operator()(X x) const {
//       using std::exp;
//       return x / (1 + exp(static_cast<X>(-beta) * x));
//     }
//   };
//   Tensor swish(const Operand& x, double beta) { return custom_operator(Swish{beta}, x); }
//
// X is float (for f16 and bf16 as well) or double. A file compiled by g++ or clang++ contains the
// CPU kernel; one compiled by nvcc contains the CUDA kernel too. In CMake,
// ebb_add_custom_operators(target swish.cpp) chooses nvcc where there is a toolkit. So put the
// struct and the function that applies it into such a file, and only the function's declaration
// into a header.
//
// Any other operator is an OpDef with kernels of your own (core/tensor/op_def.h), applied by
// apply_one(). In a file that nvcc compiles, cuda::stream_of(context) is the stream that its CUDA
// kernel works on, and cuda::launch() launches into it. docs/guide/own.md has an example of either.
#pragma once
#include <cmath>
#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "ebb/core/base/host_device.h"
#include "ebb/core/kernels/custom.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/core/tensor/gradient_context.h"

// 1 where this file makes kernels for CUDA.
#if !defined(EBB_CUDA_KERNELS)
#if defined(__CUDACC__)
#define EBB_CUDA_KERNELS 1
#else
#define EBB_CUDA_KERNELS 0
#endif
#endif
#if EBB_CUDA_KERNELS
#include "ebb/kernels/cuda/custom.h"
#endif

namespace ebb {

// The derivatives of a functor by its first input, second input and so on: functors of the same
// inputs. A derivative with parameters is made from the functor: it holds it as its only member, or
// has a constructor that takes it. Derivatives may have derivatives in turn.
template <class... Functors>
struct Derivatives {};

// Separate namespaces, since one functor makes different operators in files compiled by nvcc and in
// all others.
#if EBB_CUDA_KERNELS
inline namespace with_cuda {
#else
inline namespace without_cuda {
#endif

namespace custom {

template <class F, class... X>
inline constexpr bool kTakes = std::is_invocable_v<const F&, X...>;

template <class F>
consteval int count_inputs() {
  if constexpr (requires { F::inputs; }) {
    return F::inputs;
  } else {
    constexpr bool kOne = kTakes<F, float>, kTwo = kTakes<F, float, float>,
                   kThree = kTakes<F, float, float, float>;
    static_assert(kOne + kTwo + kThree == 1,
                  "a functor's operator() const takes one, two or three numbers X; one that takes "
                  "any of these says which: static constexpr int inputs = 2;");
    return kOne ? 1 : kTwo ? 2 : 3;
  }
}
template <class F>
inline constexpr int kInputs = count_inputs<F>();

// Whether f64 stays f64: a functor of float alone would lose precision silently.
template <class F>
consteval bool keeps_double() {
  const auto is_kept = []<class... X>(X...) {
    if constexpr (kTakes<F, X...>)
      return !std::is_same_v<std::invoke_result_t<const F&, X...>, float>;
    else
      return true;  // kInputs has reported the error
  };
  if constexpr (kInputs<F> == 1)
    return is_kept(0.);
  else if constexpr (kInputs<F> == 2)
    return is_kept(0., 0.);
  else
    return is_kept(0., 0., 0.);
}

// Whether the functor fits into an operator's attributes.
template <class F>
inline constexpr bool kCanBeHeld = std::is_trivially_copyable_v<F> &&
                                   sizeof(F) <= Attributes::kCapacity;

// Requirements on a functor, each with a message of its own.
template <class F>
constexpr bool check_functor() noexcept {
  static_assert(
      requires { F::name; },
      "a functor has a name, which errors and memory reports tell: "
      "static constexpr const char* name = \"swish\";");
  static_assert(std::is_trivially_copyable_v<F>, "parameters are numbers: doubles, std::int64_t");
  static_assert(sizeof(F) <= Attributes::kCapacity,
                "a functor's parameters take 96 bytes at most: twelve doubles or std::int64_t");
  static_assert(kInputs<F> < kMostPointwiseInputs, "a functor takes three numbers at most");
  static_assert(keeps_double<F>(), "a functor gives double for double: template <class X>");
  return true;
}
template <class F>
constexpr const char* name_of() noexcept {
  if constexpr (requires { F::name; })
    return F::name;
  else
    return "";  // check_functor has reported the error
}

template <class F>
F functor_of(const Attributes& attributes) noexcept {
  if constexpr (std::is_empty_v<F> || !kCanBeHeld<F>)
    return {};
  else
    return attributes.get<F>();
}
template <class F>
Attributes attributes_of([[maybe_unused]] const F& functor) noexcept {
  if constexpr (std::is_empty_v<F> || !kCanBeHeld<F>)
    return {};
  else
    return functor;
}

template <class F, class T, int... K>
void loop_over(const Attributes& attributes, const T* const* in, T* out, std::int64_t count,
               std::integer_sequence<int, K...>) noexcept {
  const F f = functor_of<F>(attributes);
  const T* const x[] = {in[K]...};
  // Input and output are equal or disjoint, never shifted, so iterations are independent.
#if defined(__CUDACC__)
#elif defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(f(x[K][i]...));
}
template <class F, class T>
void pointwise_loop(const Attributes& attributes, const T* const* in, T* out,
                    std::int64_t count) noexcept {
  loop_over<F>(attributes, in, out, count, std::make_integer_sequence<int, kInputs<F>>());
}

template <class F>
Status run_on_cpu(const KernelContext& context) {
  return cpu::pointwise(context, {pointwise_loop<F, float>, pointwise_loop<F, double>});
}
// Whether inputs of the functor may have different shapes. Not with one input; nor in the gradient
// of such a functor, where dy has the shape of x. That halves the CUDA kernels there.
template <class F>
inline constexpr bool kBroadcasts = kInputs<F> > 1;

// The kernel for CUDA. Without nvcc only its memory rule, which is all that a simulated device
// needs.
// A memory rule: nothing beside the output.
inline MemoryNeeds no_memory(const MemoryQuery& /*query*/) noexcept { return {}; }

template <class F>
constexpr DeviceKernel kernel_for_cuda() noexcept {
#if EBB_CUDA_KERNELS
  return {.run =
              [](const KernelContext& context) {
                return cuda::pointwise<kBroadcasts<F>>(
                    context, functor_of<F>(*context.attributes),
                    std::make_integer_sequence<int, kInputs<F>>());
              },
          .memory = no_memory};
#else
  return {.memory = no_memory};
#endif
}

// dy times a derivative, so that a gradient is one pass.
template <class D>
struct Chained : D {
  static constexpr int inputs = 1 + kInputs<D>;
  template <class X, std::same_as<X>... Xs>
  EBB_HOST_DEVICE X operator()(X dy, Xs... x) const {
    return dy * static_cast<X>(static_cast<const D&>(*this)(x...));
  }
};
template <class D>
inline constexpr bool kBroadcasts<Chained<D>> = kInputs<D> > 1;
template <class D>
Tensors compose_chained(std::span<const Tensor> inputs, const Attributes& attributes,
                        const IndexSet& unwanted);
template <class F>
Tensors gradient_of(const GradientContext& g);

template <class F>
consteval OpDef make_pointwise() {
  static_assert(check_functor<F>());
  OpDef op{.name = name_of<F>(),
           .infer = detail::infer_pointwise,
           .takes_over = kAll,
           .cpu = {run_on_cpu<F>, no_memory},
           .cuda = kernel_for_cuda<F>()};
  if constexpr (requires { typename F::Derivatives; }) {
    static_assert(
        !requires { &F::gradient; }, "a functor has derivatives or a gradient rule");
    op.gradient = gradient_of<F>;
    op.keeps = {kAll};
  } else if constexpr (requires { &F::gradient; }) {
    op.gradient = F::gradient;
    if constexpr (requires { F::keeps; }) op.keeps = F::keeps;
  }
  return op;
}
template <class D>
consteval OpDef make_chained() {
  static_assert(check_functor<D>());
  OpDef op{.name = name_of<D>(),
           .infer = detail::infer_pointwise,
           .compose = compose_chained<D>,
           .takes_over = kAll,
           .cpu = {run_on_cpu<Chained<D>>, no_memory},
           .cuda = kernel_for_cuda<Chained<D>>()};
  return op;
}

template <class D>
inline constexpr OpDef chained_op = make_chained<D>();

}  // namespace custom

// The operator made from a functor.
template <class F>
inline constexpr OpDef custom_op = custom::make_pointwise<F>();

// Applies the functor element by element to tensors of one floating dtype that broadcast by NumPy's
// rules; the result has their dtype. f16 and bf16 are computed in float. Its kernels take no memory
// but the result's, and work in place of an input that nobody else needs. Works in both modes.
//
// The gradient comes from `Derivatives`: one pass over the inputs for each of them, all of which
// are kept. Or write it as a static function of public operators, and name what it reads again:
//
//   static Tensors gradient(const GradientContext& g) {
//     return {g.take_dy() * (1 - square(g.y()))};
//   }
//   static constexpr Keeps keeps = output(0);
//
// With neither, the operator is not differentiable. Throws ShapeError for shapes that do not
// broadcast and for other dtypes, Error for numbers in place of tensors, and on a GPU where nvcc
// has not compiled it.
template <class F>
Tensor custom_operator(const F& functor, const Operand& x) {
  static_assert(custom::kInputs<F> == 1, "this functor has another number of inputs");
  return detail::apply_to(custom_op<F>, x, custom::attributes_of(functor));
}
template <class F>
Tensor custom_operator(const F& functor, const Operand& a, const Operand& b) {
  static_assert(custom::kInputs<F> == 2, "this functor has another number of inputs");
  return detail::apply_to(custom_op<F>, {a, b}, custom::attributes_of(functor));
}
template <class F>
Tensor custom_operator(const F& functor, const Operand& a, const Operand& b, const Operand& c) {
  static_assert(custom::kInputs<F> == 3, "this functor has another number of inputs");
  return detail::apply_to(custom_op<F>, {a, b, c}, custom::attributes_of(functor));
}

namespace custom {

template <class D, class F>
D derivative_of([[maybe_unused]] const F& functor) {
  if constexpr (std::is_empty_v<D>) {
    return {};
  } else if constexpr (requires { D{functor}; }) {
    return D{functor};
  } else {
    static_assert(!sizeof(D),
                  "a derivative with parameters has the functor as its only member, or a "
                  "constructor that takes it");
  }
}

template <class D>
Tensors compose_chained(std::span<const Tensor> inputs, const Attributes& attributes,
                        const IndexSet& /*unwanted*/) {
  return [&]<int... K>(std::integer_sequence<int, K...>)->Tensors {
    return {inputs[0] * custom_operator(functor_of<D>(attributes), inputs[K + 1]...)};
  }
  (std::make_integer_sequence<int, kInputs<D>>());
}

// dy D(x..), summed over the axes that x[k] was broadcast along.
template <class D, int... K>
Tensor gradient_by(const GradientContext& g, int k, bool is_last, const Attributes& attributes,
                   std::integer_sequence<int, K...>) {
  if constexpr (sizeof...(K) == 1) {
    return detail::apply_to(chained_op<D>, {g.take_dy(), g.take_x(0)}, attributes);
  } else {
    Tensor all = is_last ? detail::apply_to(chained_op<D>, {g.take_dy(), g.x(K)...}, attributes)
                         : detail::apply_to(chained_op<D>, {g.dy(), g.x(K)...}, attributes);
    return sum_like(std::move(all), g.x(k));
  }
}
template <class F, class... D>
Tensors gradients_by(const GradientContext& g, Derivatives<D...>) {
  static_assert(sizeof...(D) == kInputs<F>, "a functor has one derivative for each of its inputs");
  static_assert(((kInputs<D> == kInputs<F>)&&...), "derivatives take all inputs");
  const F functor = functor_of<F>(g.node().attributes);
  int last = g.inputs() - 1;
  while (last > 0 && !g.wants(last)) --last;
  Tensors dx(static_cast<std::size_t>(g.inputs()));
  int k = 0;
  const auto add = [&](const auto& derivative) {
    if (g.wants(k))
      dx[static_cast<std::size_t>(k)] = gradient_by<std::remove_cvref_t<decltype(derivative)>>(
          g, k, k == last, attributes_of(derivative),
          std::make_integer_sequence<int, kInputs<F>>());
    ++k;
  };
  (add(derivative_of<D>(functor)), ...);
  return dx;
}
template <class F>
Tensors gradient_of(const GradientContext& g) {
  return gradients_by<F>(g, typename F::Derivatives());
}

}  // namespace custom
}  // inline namespace
}  // namespace ebb
