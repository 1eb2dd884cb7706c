#pragma once
#include "ebb/core/kernels/broadcast_walk.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/vector_half.h"

namespace ebb::cpu {

// Reads an operand of a row in chunks of the type to compute in: 16 bits as floats, and a repeated
// element as copies. So a loop over two or three operands is written once, not once for each of
// them repeated.
template <class T>
class Chunks {
 public:
  using Value = Computed<T>;

  // `count` elements at data; `one`: a single value for all of them.
  Chunks(const T* data, bool one, std::int64_t count) noexcept : data_(data), one_(one) {
    if (one) std::fill_n(values_, std::min(count, kChunk), convert<Value>(*data));
  }
  // `count` of them from element i on, no more than kChunk.
  const Value* at(std::int64_t i, [[maybe_unused]] std::int64_t count) noexcept {
    if (one_) return values_;
    if constexpr (kIsHalf<T>) {
      convert_run(data_ + i, values_, count);
      return values_;
    } else {
      return data_ + i;
    }
  }

 private:
  const T* data_;
  bool one_;
  Value values_[kChunk];
};

// Calls body(from, first, count) for the rows of a walk, or parts of a single row: the offsets in
// inputs and output, and the number of elements.
template <int kInputs, class Body>
void for_rows(const BroadcastWalk<kInputs>& walk, const Body& body) {
  const std::int64_t n = walk.row_elements();
  if (n == 0) return;
  if (walk.rows() == 1)
    return for_pieces(n, kPieceElements, [&](std::int64_t begin, std::int64_t end) {
      std::int64_t from[kInputs];
      for (int k = 0; k < kInputs; ++k) from[k] = walk.one(k) ? 0 : begin;
      body(from, begin, end - begin);
    });
  for_items(walk.rows(), rows_per_piece(n), [&](std::int64_t row) {
    std::int64_t from[kInputs];
    walk.row(row, from);
    body(from, row * n, n);
  });
}

}  // namespace ebb::cpu
