#pragma once
#include <cstdint>
#include <type_traits>

#include "ebb/core/base/host_device.h"

namespace ebb {

// The operations of the kernel `integers`, of two operands and of one. Sums, differences and
// products wrap around, and so do negating the least number and dividing it by -1. A division by 0
// gives 0, and so does its remainder, on every device, as in NumPy.
enum class IntegerOperation : std::int64_t {
  add,
  subtract,
  multiply,
  floor_divide,
  remainder,
  maximum,
  minimum,
  negate,  // of one operand, like the next ones
  abs,
  sign
};

// An operation on integers T, in unsigned numbers, which wrap around.
template <class T>
struct OnIntegers {
  IntegerOperation operation;

  EBB_HOST_DEVICE T operator()(T x, T y) const {
    const auto a = static_cast<U>(x), b = static_cast<U>(y);
    switch (operation) {
      case IntegerOperation::add:
        return static_cast<T>(a + b);
      case IntegerOperation::subtract:
        return static_cast<T>(a - b);
      case IntegerOperation::multiply:
        return static_cast<T>(a * b);
      case IntegerOperation::floor_divide:
        return divide(x, y).quotient;
      case IntegerOperation::remainder:
        return divide(x, y).rest;
      case IntegerOperation::maximum:
        return x > y ? x : y;
      case IntegerOperation::minimum:
        return x < y ? x : y;
      case IntegerOperation::negate:
        return negative(x);
      case IntegerOperation::abs:
        return is_negative(x) ? negative(x) : x;
      default:
        return static_cast<T>((x > T{} ? 1 : 0) - (is_negative(x) ? 1 : 0));
    }
  }

 private:
  // At least int, so that nothing is promoted to a signed type on the way.
  using U = std::conditional_t<sizeof(T) < sizeof(unsigned), unsigned, std::make_unsigned_t<T>>;
  struct Division {
    T quotient, rest;
  };
  EBB_HOST_DEVICE static Division divide(T x, T y) {
    if (y == T{}) return {};
    if constexpr (std::is_signed_v<T>)
      if (y == T{-1}) return {negative(x), T{}};  // the least overflows
    const T rest = static_cast<T>(x % y);
    const bool between = rest != T{} && is_negative(rest) != is_negative(y);
    return {static_cast<T>(x / y - (between ? 1 : 0)), static_cast<T>(between ? rest + y : rest)};
  }
  EBB_HOST_DEVICE static T negative(T x) { return static_cast<T>(U{} - static_cast<U>(x)); }
  EBB_HOST_DEVICE static bool is_negative([[maybe_unused]] T x) {
    if constexpr (std::is_signed_v<T>)
      return x < T{};
    else
      return false;
  }
};

}  // namespace ebb
