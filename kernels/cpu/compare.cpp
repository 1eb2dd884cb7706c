#include "ebb/core/kernels/compare.h"

#include "ebb/core/kernels/for_dtype.h"
#include "ebb/kernels/cpu/chunks.h"

namespace ebb::cpu {
namespace {

// A stored bool: 0 or 1.
using Flag = std::uint8_t;

template <class T, class F>
void each(const T* a, const T* b, Flag* out, std::int64_t count, F f) noexcept {
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<Flag>(f(a[i], b[i]));
}

// out[i] = a[i] operation b[i]; of one operand b is a.
template <class T>
void compare_run(Comparison operation, const T* a, const T* b, Flag* out,
                 std::int64_t count) noexcept {
  switch (operation) {
    case Comparison::equal:
      return each(a, b, out, count, [](T x, T y) { return x == y; });
    case Comparison::not_equal:
      return each(a, b, out, count, [](T x, T y) { return x != y; });
    case Comparison::less:
      return each(a, b, out, count, [](T x, T y) { return x < y; });
    case Comparison::less_equal:
      return each(a, b, out, count, [](T x, T y) { return x <= y; });
    case Comparison::greater:
      return each(b, a, out, count, [](T x, T y) { return x < y; });
    case Comparison::greater_equal:
      return each(b, a, out, count, [](T x, T y) { return x <= y; });
    default:
      break;
  }
  if constexpr (std::is_same_v<T, Flag>) {
    if (operation == Comparison::both)
      return each(a, b, out, count, [](T x, T y) { return x & y; });
    if (operation == Comparison::either)
      return each(a, b, out, count, [](T x, T y) { return x | y; });
  } else if constexpr (std::is_floating_point_v<T>) {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    if (operation == Comparison::is_nan)
      return each(a, a, out, count, [](T x, T) { return x != x; });
    if (operation == Comparison::is_inf)
      return each(a, a, out, count, [](T x, T) { return std::abs(x) == kInfinity; });
    if (operation == Comparison::is_finite)
      return each(a, a, out, count, [](T x, T) { return std::abs(x) < kInfinity; });
  }
}

template <class T>
void compare_rows(Comparison operation, const T* a, const T* b, Flag* out,
                  const BroadcastWalk<2>& walk) {
  for_rows(walk, [&](const std::int64_t(&from)[2], std::int64_t first, std::int64_t count) {
    Chunks<T> of_a(a + from[0], walk.one(0), count), of_b(b + from[1], walk.one(1), count);
    for (std::int64_t i = 0; i < count; i += kChunk) {
      const std::int64_t some = std::min(kChunk, count - i);
      compare_run(operation, of_a.at(i, some), of_b.at(i, some), out + first + i, some);
    }
  });
}

// Compares a tensor with another or with a number, or asks for NaN and infinity in one.
template <class T>
void compare_as(const KernelContext& context) {
  const auto& [number, told] = context.attribute<NumberAndOperation>();
  auto operation = static_cast<Comparison>(told);
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const Shape& shape = out.spec.shape;
  const T* a = in.as<const T>();
  if (context.inputs.size() == 2) {
    const Buffer& other = context.inputs[1];
    return compare_rows(operation, a, other.as<const T>(), out.as<Flag>(),
                        BroadcastWalk(shape, in.spec.shape, other.spec.shape));
  }
  T value = T();
  if (number.position == NumberOperand::left) operation = exchanged(operation);
  if constexpr (std::is_integral_v<T>) {
    const AgainstNumber<T> against = against_integer<T>(operation, number.value);
    operation = against.operation;
    value = against.number;
  } else {
    value = convert<T>(number.value);
  }
  compare_rows(operation, a, &value, out.as<Flag>(), BroadcastWalk(shape, shape, Shape()));
}

}  // namespace

Status compare(const KernelContext& context) {
  return for_stored(context.inputs[0].spec.dtype,
                    [&](auto type) { compare_as<decltype(type)>(context); });
}

}  // namespace ebb::cpu
