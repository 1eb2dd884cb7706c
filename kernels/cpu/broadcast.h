#pragma once
#include "ebb/core/kernels/broadcast_walk.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/vector_half.h"

// Stands before a loop over arrays that are the same or apart, never shifted.
#if defined(__clang__)
#define EBB_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define EBB_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

// All that the function calls is compiled into it: blocks that are passed would go through memory.
#define EBB_FLATTEN [[gnu::flatten]]

namespace ebb::cpu {

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

template <bool kOneA, bool kOneB, class F, class A, class B, class Out>
EBB_FLATTEN void zip_blocks(F f, const A* a, const B* b, Out* out, std::int64_t count) noexcept {
  using T = Computed<Out>;
  const auto at = [](const auto* x, bool one, std::int64_t i, std::int64_t rest) -> Block<T> {
    if (one) return Block<T>(convert<T>(*x));
    return rest >= kBlock<T> ? load(x + i) : load_tail(x + i, rest);
  };
  for (std::int64_t i = 0; i < count; i += kBlock<T>) {
    const std::int64_t rest = count - i;
    store_some(out + i, evaluate<F, T>(f, at(a, kOneA, i, rest), at(b, kOneB, i, rest)), rest);
  }
}

// out[i] = f(a[i], b[i]) for count elements; a or b may be one element, repeated. All of one type,
// or 16 bits beside float.
template <bool kOneA, bool kOneB, class F, class A, class B, class Out>
inline void zip_run(F f, const A* a, const B* b, Out* out, std::int64_t count) noexcept {
  using T = Computed<Out>;
  if constexpr (kExact<F> && kIsHalf<Out>) {
    float x[kChunk], y[kChunk];
    for (std::int64_t i = 0; i < count; i += kChunk) {
      const std::int64_t n = std::min(kChunk, count - i);
      widen_run(a + (kOneA ? 0 : i), x, kOneA ? 1 : n);
      widen_run(b + (kOneB ? 0 : i), y, kOneB ? 1 : n);
      zip_run<kOneA, kOneB>(f, x, y, x, n);
      convert_run(x, out + i, n);
    }
  } else if constexpr (kExact<F>) {
    const T first_a = *a, first_b = *b;
    EBB_INDEPENDENT_ITERATIONS
    for (std::int64_t i = 0; i < count; ++i)
      out[i] = f(kOneA ? first_a : a[i], kOneB ? first_b : b[i]);
  } else {
    zip_blocks<kOneA, kOneB>(f, a, b, out, count);
  }
}

template <class F, class A, class B, class Out>
inline void zip_run(F f, const A* a, bool one_a, const B* b, bool one_b, Out* out,
                    std::int64_t count) noexcept {
  if (count <= 0) return;
  if (!one_a && !one_b) return zip_run<false, false>(f, a, b, out, count);
  if (!one_a) return zip_run<false, true>(f, a, b, out, count);
  if (!one_b) return zip_run<true, false>(f, a, b, out, count);
  zip_run<true, true>(f, a, b, out, count);
}

template <class F, class A, class B, class Out>
inline void zip_flat(F f, const A* a, bool one_a, const B* b, bool one_b, Out* out,
                     std::int64_t count) {
  for_pieces(count, kPieceElements, [=](std::int64_t begin, std::int64_t end) {
    zip_run(f, a + (one_a ? 0 : begin), one_a, b + (one_b ? 0 : begin), one_b, out + begin,
            end - begin);
  });
}

// out = f(a, b) with NumPy's broadcasting; out may be an input of out's own shape.
template <class F, class A, class B, class Out>
inline void broadcast(F f, const A* a, const Shape& shape_a, const B* b, const Shape& shape_b,
                      Out* out, const Shape& shape) {
  const BroadcastWalk walk(shape, shape_a, shape_b);
  for_rows(walk, [&](const std::int64_t* from, std::int64_t first, std::int64_t count) {
    zip_run(f, a + from[0], walk.one(0), b + from[1], walk.one(1), out + first, count);
  });
}

}  // namespace ebb::cpu
