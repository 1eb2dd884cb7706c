// Maps the index of an element to its offset in arrays of other strides.
#pragma once
#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "ebb/core/kernels/status.h"

namespace ebb::cuda {

// Division by a number known at launch; 0, the size of an axis without elements, counts as 1. For
// numbers below 2^31, or 2^63 by 64 bits, it is a multiplication (after Granlund and Montgomery,
// "Division by invariant integers using multiplication", PLDI 1994). A 64-bit division would take
// registers that kernels of many sums do not have.
template <class Index>
struct Divider {
  __extension__ typedef unsigned __int128 Widest;
  using Wide = std::conditional_t<sizeof(Index) == 8, Widest, std::uint64_t>;
  static constexpr unsigned kBits = 8 * sizeof(Index);

  Index divisor = 1, multiplier = 1;
  unsigned shift = 0;

  Divider() = default;
  explicit Divider(std::int64_t number) noexcept
      : divisor(static_cast<Index>(number == 0 ? 1 : number)) {
    while (shift < kBits - 1 && (Index{1} << shift) < divisor) ++shift;
    const Index rest = (Index{1} << shift) - divisor;
    multiplier = static_cast<Index>((Wide{rest} << kBits) / divisor + 1);
  }
  __device__ Index quotient(Index n) const {
    return (static_cast<Index>(Wide{n} * multiplier >> kBits) + n) >> shift;
  }
  // Returns the quotient; n becomes the remainder.
  __device__ std::int64_t divide(std::int64_t& n) const {
    const auto number = static_cast<Index>(n);
    const Index result = quotient(number);
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

// Splits the index of an element into its indices along kAxes axes.
template <class Index, int kAxes>
class Split {
 public:
  // `sizes`: of the axes after the first.
  explicit Split(const std::int64_t (&sizes)[kAxes - 1]) noexcept {
    for (int axis = 1; axis < kAxes; ++axis) by_[axis - 1] = Divider<Index>(sizes[axis - 1]);
  }
  __device__ std::array<std::int64_t, kAxes> operator()(std::int64_t index) const {
    std::array<std::int64_t, kAxes> at;
    for (std::size_t axis = kAxes - 1; axis > 0; --axis) {
      at[axis] = index;
      index = by_[axis - 1].divide(at[axis]);
    }
    at[0] = index;
    return at;
  }

 private:
  Divider<Index> by_[kAxes - 1];
};

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
