#include "ebb/kernels/cpu/column_sum.h"

#include <algorithm>

#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/reduce_loops.h"

namespace ebb::cpu {
namespace {

// A tall, narrow matrix is cut by rows too; each block's sums lie in the scratch until all are
// done.
constexpr std::int64_t kNarrow = 256;

std::int64_t row_block(std::int64_t rows, std::int64_t columns) noexcept {
  const std::int64_t block = round_up(rows_per_piece(columns), 64);
  return columns < kNarrow && rows > 2 * block ? block : std::max<std::int64_t>(1, rows);
}

}  // namespace

std::size_t column_sum_bytes(std::int64_t rows, std::int64_t columns) noexcept {
  const std::int64_t blocks = divide_up(rows, row_block(rows, columns));
  return blocks <= 1 ? 0 : static_cast<std::size_t>(blocks * columns) * sizeof(double);
}

template <class T>
void column_sum(const T* in, std::int64_t rows, std::int64_t columns, T* out, void* scratch,
                bool accumulate) {
  const auto finish = [=](std::int64_t column, const double* totals, std::int64_t count) {
    for (std::int64_t j = 0; j < count; ++j) {
      T& target = out[column + j];
      target = static_cast<T>(accumulate ? static_cast<double>(target) + totals[j] : totals[j]);
    }
  };
  const std::int64_t block = row_block(rows, columns), blocks = divide_up(rows, block);
  if (blocks <= 1) {
    const std::int64_t strips =
        std::max<std::int64_t>(1, kPieceElements / std::max<std::int64_t>(1, rows * kStrip<T>));
    for_items(divide_up(columns, kStrip<T>), strips, [&](std::int64_t strip) {
      const std::int64_t column = strip * kStrip<T>, count = std::min(kStrip<T>, columns - column);
      double totals[kStrip<T>] = {};
      add_rows(
          in + column, rows, count, [=](std::int64_t row) { return row * columns; }, totals);
      finish(column, totals, count);
    });
    return;
  }
  double* partial = static_cast<double*>(scratch);
  Workers::instance().run(blocks, [&](std::int64_t piece) {
    const std::int64_t first = piece * block, count = std::min(block, rows - first);
    double* totals = partial + piece * columns;
    std::fill_n(totals, columns, 0.0);
    for (std::int64_t column = 0; column < columns; column += kStrip<T>)
      add_rows(
          in + first * columns + column, count, std::min(kStrip<T>, columns - column),
          [=](std::int64_t row) { return row * columns; }, totals + column);
  });
  for (std::int64_t piece = 1; piece < blocks; ++piece)
    for (std::int64_t j = 0; j < columns; ++j) partial[j] += partial[piece * columns + j];
  finish(0, partial, columns);
}

template void column_sum(const float*, std::int64_t, std::int64_t, float*, void*, bool);
template void column_sum(const double*, std::int64_t, std::int64_t, double*, void*, bool);

}  // namespace ebb::cpu
