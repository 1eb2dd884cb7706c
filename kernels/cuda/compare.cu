#include "ebb/core/kernels/compare.h"

#include <type_traits>

#include "ebb/core/kernels/convert.h"
#include "ebb/kernels/cuda/broadcast.h"

namespace ebb::cuda {
namespace {

// A bool, stored as 0 or 1.
using Flag = std::uint8_t;

template <class A>
__device__ bool compared(Comparison operation, A x, A y) {
  switch (operation) {
    case Comparison::equal:
      return x == y;
    case Comparison::not_equal:
      return x != y;
    case Comparison::less:
      return x < y;
    case Comparison::less_equal:
      return x <= y;
    case Comparison::greater:
      return x > y;
    case Comparison::greater_equal:
      return x >= y;
    default:
      break;
  }
  if constexpr (std::is_floating_point_v<A>) {
    if (operation == Comparison::is_nan) return x != x;
    const A size = x < A{} ? -x : x;
    constexpr A kInfinity = std::numeric_limits<A>::infinity();
    return operation == Comparison::is_inf ? size == kInfinity : size < kInfinity;
  } else {
    return operation == Comparison::both ? (x & y) != 0 : (x | y) != 0;
  }
}

// out[i] = a[..] operation b[..], with the offsets of the walk.
template <class T, class Offsets>
struct Compare {
  Operand<T> a, b;
  Flag* out;
  Offsets walk;
  Comparison operation;

  template <int N>
  __device__ void at(std::int64_t i) const {
    std::int64_t from[2];
    walk.offsets(i, from);
    const auto x = a.template at<N>(from[0]), y = b.template at<N>(from[1]);
    Pack<Flag, N> result;
    for (int j = 0; j < N; ++j) result[j] = compared(operation, x[j], y[j]) ? 1 : 0;
    store(out + i, result);
  }
};

template <class T>
Status compare_as(const KernelContext& context) noexcept {
  constexpr int N = kPack<T>;
  const auto& told = context.attribute<NumberAndOperation>();
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  Flag* to = out.as<Flag>();
  const std::int64_t count = out.elements();
  Operand<T> a{in.as<const T>()}, b;
  auto operation = static_cast<Comparison>(told.operation);
  const auto run = [&](const auto& offsets, bool rows_take_packs) {
    const bool packed = rows_take_packs && takes_packs<N>(to) && a.template takes_packs<N>() &&
                        b.template takes_packs<N>();
    using Body = Compare<T, std::remove_cvref_t<decltype(offsets)>>;
    return for_each<N>(stream_of(context), Body{a, b, to, offsets, operation}, count, packed);
  };
  if (count == 0) return {};
  if (context.inputs.size() == 2) {
    const Buffer& other = context.inputs[1];
    const BroadcastWalk walk(out.spec.shape, in.spec.shape, other.spec.shape);
    b.data = other.as<const T>();
    a.one = walk.one(0);
    b.one = walk.one(1);
    return with_offsets<N>(walk, count, run);
  }
  if (told.number.position == NumberOperand::left) operation = exchanged(operation);
  b.one = true;
  if constexpr (std::is_integral_v<T>) {
    const AgainstNumber<T> against = against_integer<T>(operation, told.number.value);
    operation = against.operation;
    b.number = against.number;
  } else {
    b.number = static_cast<Accumulate<T>>(convert<T>(told.number.value));
  }
  return run(FlatWalk<2>{{false, true}}, true);
}

}  // namespace

Status compare(const KernelContext& context) {
  switch (context.inputs[0].spec.dtype) {
    case DType::f32:
      return compare_as<float>(context);
    case DType::f64:
      return compare_as<double>(context);
    case DType::f16:
      return compare_as<Float16>(context);
    case DType::bf16:
      return compare_as<BFloat16>(context);
    case DType::i32:
      return compare_as<std::int32_t>(context);
    case DType::i64:
      return compare_as<std::int64_t>(context);
    default:  // u8 and bool
      return compare_as<std::uint8_t>(context);
  }
}

}  // namespace ebb::cuda
