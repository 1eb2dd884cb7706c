#pragma once
#include "ebb/kernels/cuda/for_each.h"
#include "ebb/kernels/cuda/walk.h"
#include "ebb/kernels/cuda/words.h"

namespace ebb::cuda {

// A tensor seen as [outer, whole] bytes, of which `count` from `first` on are meant in each row.
struct RowSlice {
  std::int64_t outer, whole, first, count;
};

// Of rows of `whole` words, those of the slice.
template <class W, class Index>
struct Take {
  const W* in;
  W* out;
  Divider<Index> count;
  std::int64_t whole, first;

  template <int N>
  __device__ void at(std::int64_t i) const {
    const auto at = static_cast<Index>(i), row = count.quotient(at);
    const auto column = static_cast<std::int64_t>(at - row * count.divisor);
    out[i] = in[static_cast<std::int64_t>(row) * whole + first + column];
  }
};

// The transpose: zeros around the words of the slice.
template <class W, class Index>
struct Put {
  const W* in;
  W* out;
  Divider<Index> whole;
  std::int64_t first, count;

  template <int N>
  __device__ void at(std::int64_t i) const {
    const auto at = static_cast<Index>(i), row = whole.quotient(at);
    const std::int64_t column = static_cast<std::int64_t>(at - row * whole.divisor) - first;
    const bool inside = column >= 0 && column < count;
    out[i] = inside ? in[static_cast<std::int64_t>(row) * count + column] : W{};
  }
};

// Calls f(word, index type, slice in words) for the widest words that all of it consists of.
template <class F>
Status with_slice(const RowSlice& bytes, const void* in, const void* out, const F& f) noexcept {
  const auto unit = static_cast<std::size_t>(bytes.whole | bytes.first | bytes.count);
  return with_words(unit, {in, out}, [&](auto word) {
    constexpr auto kSize = static_cast<std::int64_t>(sizeof(word));
    const RowSlice words{bytes.outer, bytes.whole / kSize, bytes.first / kSize,
                         bytes.count / kSize};
    return is_short(words.outer * words.whole) ? f(word, std::uint32_t{}, words)
                                               : f(word, std::uint64_t{}, words);
  });
}

inline Status take(cudaStream_t stream, const RowSlice& bytes, const void* in, void* out) noexcept {
  return with_slice(bytes, in, out, [&]<class W, class Index>(W, Index, const RowSlice& slice) {
    const Take<W, Index> body{static_cast<const W*>(in), static_cast<W*>(out),
                              Divider<Index>(slice.count), slice.whole, slice.first};
    return for_each<1>(stream, body, slice.outer * slice.count, true);
  });
}

inline Status put(cudaStream_t stream, const RowSlice& bytes, const void* in, void* out) noexcept {
  return with_slice(bytes, in, out, [&]<class W, class Index>(W, Index, const RowSlice& slice) {
    const Put<W, Index> body{static_cast<const W*>(in), static_cast<W*>(out),
                             Divider<Index>(slice.whole), slice.first, slice.count};
    return for_each<1>(stream, body, slice.outer * slice.whole, true);
  });
}

}  // namespace ebb::cuda
