// Maps the index of an element to its offset in arrays of other strides.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <limits>

#include "ebb/core/kernels/status.h"

namespace ebb::cuda {

// Division by a number known at launch; 0, the size of an axis without elements, counts as 1. For
// numbers below 2^31 it is a multiplication (after Granlund and Montgomery, "Division by invariant
// integers using multiplication", PLDI 1994).
template <class Index>
struct Divider;

template <>
struct Divider<std::uint32_t> {
  std::uint32_t divisor = 1, multiplier = 1, shift = 0;

  Divider() = default;
  explicit Divider(std::int64_t number) noexcept
      : divisor(static_cast<std::uint32_t>(number == 0 ? 1 : number)) {
    while ((std::uint64_t{1} << shift) < divisor) ++shift;
    const std::uint64_t rest = (std::uint64_t{1} << shift) - divisor;
    multiplier = static_cast<std::uint32_t>((rest << 32) / divisor + 1);
  }
  __device__ std::uint32_t quotient(std::uint32_t n) const {
    const auto high = static_cast<std::uint32_t>(std::uint64_t{n} * multiplier >> 32);
    return (high + n) >> shift;
  }
};

// The same for numbers below 2^63. A 64-bit division takes registers that kernels of many sums do
// not have.
template <>
struct Divider<std::uint64_t> {
  std::uint64_t divisor = 1, multiplier = 1;
  unsigned shift = 0;

  Divider() = default;
  explicit Divider(std::int64_t number) noexcept
      : divisor(static_cast<std::uint64_t>(number == 0 ? 1 : number)) {
    while (shift < 63 && (std::uint64_t{1} << shift) < divisor) ++shift;
    const std::uint64_t rest = (std::uint64_t{1} << shift) - divisor;
    __extension__ typedef unsigned __int128 Wide;
    multiplier = static_cast<std::uint64_t>((Wide{rest} << 64) / divisor + 1);
  }
  __device__ std::uint64_t quotient(std::uint64_t n) const {
    return (__umul64hi(n, multiplier) + n) >> shift;
  }
  // Returns the quotient; n becomes the remainder.
  __device__ std::int64_t divide(std::int64_t& n) const {
    const auto number = static_cast<std::uint64_t>(n);
    const std::uint64_t result = quotient(number);
    n = static_cast<std::int64_t>(number - result * divisor);
    return static_cast<std::int64_t>(result);
  }
};
using AnyDivider = Divider<std::uint64_t>;

// Calls f with the type of index for which Divider is quickest among those for indices below
// `count`.
template <class F>
Status with_index(std::int64_t count, const F& f) noexcept {
  const bool is_short = count <= std::numeric_limits<std::int32_t>::max();
  return is_short ? f(std::uint32_t{}) : f(std::uint64_t{});
}

// Offsets of an element in kArrays arrays. Its index counts through up to kAxes axes, innermost
// first. An index beyond the last axis goes on with that axis's stride.
template <class Index, int kAxes, int kArrays = 1>
class Walk {
 public:
  void add(std::int64_t size, const std::int64_t (&strides)[kArrays]) noexcept {
    if (axes_ > 0) sizes_[axes_ - 1] = Divider<Index>(last_size_);
    for (int k = 0; k < kArrays; ++k) {
      if (axes_ > 0) strides_[axes_ - 1][k] = last_[k];
      last_[k] = strides[k];
    }
    last_size_ = size;
    ++axes_;
  }

  __device__ void offsets(std::int64_t index, std::int64_t (&at)[kArrays]) const {
    auto rest = static_cast<Index>(index);
    for (int k = 0; k < kArrays; ++k) at[k] = 0;
    for (int axis = 0; axis + 1 < kAxes; ++axis) {
      if (axis + 1 >= axes_) break;
      const Index next = sizes_[axis].quotient(rest);
      const auto i = static_cast<std::int64_t>(rest - next * sizes_[axis].divisor);
      for (int k = 0; k < kArrays; ++k) at[k] += i * strides_[axis][k];
      rest = next;
    }
    for (int k = 0; k < kArrays; ++k) at[k] += static_cast<std::int64_t>(rest) * last_[k];
  }
  __device__ std::int64_t offset(std::int64_t index) const {
    std::int64_t at[kArrays];
    offsets(index, at);
    return at[0];
  }

 private:
  Divider<Index> sizes_[kAxes - 1] = {};
  std::int64_t strides_[kAxes - 1][kArrays] = {}, last_[kArrays] = {};
  std::int64_t last_size_ = 1;
  int axes_ = 0;
};

}  // namespace ebb::cuda
