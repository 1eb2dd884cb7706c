#include "ebb/core/kernels/compare.h"

#include "ebb/core/kernels/for_dtype.h"
#include "ebb/kernels/cpu/chunks.h"

namespace ebb::cpu {
namespace {

// A stored bool: 0 or 1.
using Flag = std::uint8_t;

template <class T, class F>
void each(const T* a, const T* b, Flag* out, std::int64_t count, F f) noexcept {
  EBB_INDEPENDENT_ITERATIONS
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

// Compares a tensor with another or with a number, or asks for NaN and infinity in one.
template <class T>
void compare_as(const KernelContext& context) {
  const auto& [number, told] = context.attribute<NumberAndOperation>();
  auto operation = static_cast<Comparison>(told);
  const Buffer &in = context.inputs[0], &other = context.inputs.back(), &out = context.outputs[0];
  const bool has_number = context.inputs.size() == 1;
  T value = T();
  if (has_number) {
    if (number.position == NumberOperand::left) operation = exchanged(operation);
    if constexpr (std::is_integral_v<T>) {
      const AgainstNumber<T> against = against_integer<T>(operation, number.value);
      operation = against.operation;
      value = against.number;
    } else {
      value = convert<T>(number.value);
    }
  }
  const auto loop = [operation](const auto* a, const auto* b, Flag* to, std::int64_t count) {
    compare_run(operation, a, b, to, count);
  };
  for_chunks(BroadcastWalk(out.spec.shape, in.spec.shape, has_number ? Shape() : other.spec.shape),
             loop, out.as<Flag>(), in.as<const T>(), has_number ? &value : other.as<const T>());
}

}  // namespace

Status compare(const KernelContext& context) {
  return for_stored(context.inputs[0].spec.dtype, [&]<class T>(T) { compare_as<T>(context); });
}

}  // namespace ebb::cpu
