#pragma once
#include "ebb/core/base/host_device.h"
#include "ebb/core/kernels/kernel.h"

namespace ebb {

// Running sums along an axis, from the front, or running products.
struct ScanAttributes {
  std::int32_t axis = 0;
  std::uint8_t exclusive = 0;  // without the element itself
  std::uint8_t reverse = 0;    // from the end
  std::uint8_t product = 0;
  std::uint8_t reserved = 0;
};

// A linear recurrence along an axis: c_0 = 0, c_k+1 = a_k c_k + b_k, y_k = w_k c_k. Without b, c is
// the product of the elements before: c_0 = 1, c_k+1 = a_k c_k. Without w, y_k = c_k.
struct RecurrenceAttributes {
  std::int32_t axis = 0;
  std::uint8_t reverse = 0;     // from the end
  std::uint8_t has_sum = 0;     // b is input 1
  std::uint8_t has_weight = 0;  // w is the last input
  std::uint8_t reserved = 0;
};

// Multiplies, with 0 for 0 times infinity: a product that has a factor 0 does not overflow.
EBB_HOST_DEVICE inline double multiply_finite(double a, double b) noexcept {
  const double product = a * b;
  return product != product && a == a && b == b ? 0 : product;
}

namespace cpu {
// out = the running sums or products of in; floating, in double and rounded once each, or i32 and
// i64, which wrap around.
Status scan(const KernelContext&);
// Inputs a, b?, w?, each f64 and of out's shape; out may be one of them.
Status recurrence(const KernelContext&);
}  // namespace cpu
}  // namespace ebb
