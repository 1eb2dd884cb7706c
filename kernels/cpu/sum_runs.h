#pragma once
#include <cstddef>

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/merged_axes.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/reduce_loops.h"

namespace ebb::cpu {

// Elements of a sum that are asked for at once: whole runs of add_contiguous().
inline constexpr std::int64_t kSumChunk = 4 * kRun * kBlock<float>;

// out = the sums over all elements, or over the innermost axes, divided. A thread takes a reader
// from make_reader(), which gives up to kSumChunk elements: reader(begin, count) points to
// elements [begin, begin + count), in their order. The sums do not depend on how they are made.
template <class T, class MakeReader>
void sum_runs(const MergedAxes& merged, T* out, double divisor, const MakeReader& make_reader) {
  const auto result = [=](double total) { return static_cast<T>(total / divisor); };
  const auto sum = [](auto& reader, std::int64_t begin, std::int64_t end) {
    double total = 0;
    for (; begin < end; begin += kSumChunk) {
      const std::int64_t count = std::min(kSumChunk, end - begin);
      total = add_contiguous(reader(begin, count), count, Identity(), total);
    }
    return total;
  };
  const std::int64_t n = merged.inner;
  if (merged.reduces_all()) {
    constexpr std::int64_t kPieces = 64, kLeast = 64 * 1024;
    const std::int64_t piece = round_up(std::max(kLeast, divide_up(n, kPieces)), kSumChunk);
    double partial[kPieces];
    for_pieces(n, piece, [&](std::int64_t begin, std::int64_t end) {
      auto reader = make_reader();
      partial[begin / piece] = sum(reader, begin, end);
    });
    double total = 0;
    for (std::int64_t i = 0; i < divide_up(n, piece); ++i) total += partial[i];
    *out = result(total);
    return;
  }
  const std::int64_t together = kSumChunk / n;  // rows
  for_pieces(merged.outer_kept, rows_per_piece(n), [&](std::int64_t row, std::int64_t end) {
    auto reader = make_reader();
    if (together == 0) {
      for (; row < end; ++row) out[row] = result(sum(reader, row * n, (row + 1) * n));
      return;
    }
    for (; row < end; row += together) {
      const std::int64_t rows = std::min(together, end - row);
      const T* const in = reader(row * n, rows * n);
      std::int64_t r = 0;
      if (n < kBlock<T>) {
        for (; r + 8 <= rows; r += 8) add_short_rows<8>(in + r * n, n, out + row + r, result);
        for (; r < rows; ++r) add_short_rows<1>(in + r * n, n, out + row + r, result);
      } else {
        for (; r < rows; ++r) out[row + r] = result(add_contiguous(in + r * n, n));
      }
    }
  });
}

}  // namespace ebb::cpu
