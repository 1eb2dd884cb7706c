#include <algorithm>

#include "ebb/core/kernels/for_dtype.h"
#include "ebb/core/kernels/order.h"
#include "ebb/kernels/cpu/merged_walk.h"
#include "ebb/kernels/cpu/vector_block.h"

namespace ebb::cpu {
namespace {

// Elements of an extreme over everything that are worth a piece, and the columns of a strip.
constexpr std::int64_t kPiece = 64 * 1024;
constexpr std::int64_t kColumns = 256;

// The larger (or smaller) of numbers or vectors; `best` where they are equal.
template <bool kSmallest>
struct First {
  template <class X>
  X operator()(X x, X best) const noexcept {
    const X better = (kSmallest ? x < best : x > best) ? x : best;
    return x != x ? x : better;
  }
};

template <bool kSmallest, class T>
T first_of(const T* row, std::int64_t count) noexcept {
  constexpr First<kSmallest> first;
  constexpr std::int64_t kWidth = kLanes<T>, kStep = 4 * kWidth;
  using Anywhere = typename LanesOf<T, kLanes<T>>::anywhere;
  const auto at = [row](std::int64_t i) -> Vector<T> {
    return *reinterpret_cast<const Anywhere*>(row + i);
  };
  std::int64_t i = kWidth;
  if (count < kWidth) {
    T best = row[0];
    for (i = 1; i < count; ++i) best = first(row[i], best);
    return best;
  }
  Vector<T> best = at(0);
  if (count >= kStep) {
    Vector<T> bests[4] = {best, at(kWidth), at(2 * kWidth), at(3 * kWidth)};
    for (i = kStep; i + kStep <= count; i += kStep)
      for (int b = 0; b < 4; ++b) bests[b] = first(at(i + b * kWidth), bests[b]);
    best = first(first(bests[0], bests[1]), first(bests[2], bests[3]));
  }
  for (; i + kWidth <= count; i += kWidth) best = first(at(i), best);
  best = first(at(count - kWidth), best);  // the rest; some elements again
  return detail::fold<T, kLanes<T>>(best, first);
}

template <class T>
bool is_nan(T x) noexcept {
  return x != x;
}

// The index of the first element of the row equal to `best`.
template <class T>
std::int64_t find(const T* row, T best) noexcept {
  std::int64_t i = 0;
  if (is_nan(best))
    while (!is_nan(row[i])) ++i;
  else
    while (row[i] != best) ++i;
  return i;
}

template <class T>
struct Work {
  const T* in;
  T* values;                // or positions
  std::int64_t* positions;  // null: values are wanted
  MergedAxes axes;
  void* workspace;

  void put(std::int64_t result, T best, const T* row) const noexcept {
    if (positions == nullptr)
      values[result] = best;
    else
      positions[result] = find(row, best);
  }
};

// All elements as one row, in pieces.
template <bool kSmallest, class T>
void of_all(const Work<T>& work) {
  const std::int64_t count = work.axes.inner;
  T* const bests = static_cast<T*>(work.workspace);
  for_pieces(count, kPiece, [&](std::int64_t begin, std::int64_t end) {
    bests[begin / kPiece] = first_of<kSmallest>(work.in + begin, end - begin);
  });
  const std::int64_t pieces = divide_up(count, kPiece);
  const T best = first_of<kSmallest>(bests, pieces);
  if (work.positions == nullptr) {
    work.values[0] = best;
  } else {
    const std::int64_t begin = find(bests, best) * kPiece;
    work.positions[0] = begin + find(work.in + begin, best);
  }
}

// Rows that are too short for vectors, several side by side.
template <bool kSmallest, class T>
void of_short_rows(const Work<T>& work) {
  constexpr int kShortRows = 8;
  const std::int64_t size = work.axes.inner;
  for_pieces(work.axes.outer_kept, rows_per_piece(size), [&](std::int64_t begin, std::int64_t end) {
    std::int64_t o = begin;
    for (; o + kShortRows <= end; o += kShortRows) {
      const T* rows = work.in + o * size;
      T bests[kShortRows];  // not aliased, so that the loop is vectorised
      for (int k = 0; k < kShortRows; ++k) bests[k] = rows[k * size];
      for (std::int64_t j = 1; j < size; ++j)
        for (int k = 0; k < kShortRows; ++k)
          bests[k] = First<kSmallest>()(rows[k * size + j], bests[k]);
      for (int k = 0; k < kShortRows; ++k) work.put(o + k, bests[k], rows + k * size);
    }
    for (; o < end; ++o)
      work.put(o, first_of<kSmallest>(work.in + o * size, size), work.in + o * size);
  });
}

template <bool kSmallest, class T>
void of_strip(const Work<T>& work, const T* from, std::int64_t to, std::int64_t count) {
  const MergedAxes& axes = work.axes;
  T bests[kColumns];
  std::copy_n(from, count, bests);
  for (std::int64_t r = 1; r < axes.outer_reduced; ++r) {
    const T* row = from + axes.offset(r, true);
    for (std::int64_t j = 0; j < count; ++j) bests[j] = First<kSmallest>()(row[j], bests[j]);
  }
  if (work.positions == nullptr) {
    std::copy_n(bests, count, work.values + to);
    return;
  }
  for (std::int64_t r = axes.outer_reduced; r-- > 0;) {  // the first one is written last
    const T* row = from + axes.offset(r, true);
    for (std::int64_t j = 0; j < count; ++j)
      if (row[j] == bests[j] || (is_nan(row[j]) && is_nan(bests[j]))) work.positions[to + j] = r;
  }
}

// For positions a result has one row: only one axis is reduced, or all.
template <bool kSmallest, class T>
void run(const Work<T>& work) {
  const MergedAxes& axes = work.axes;
  if (axes.reduces_all()) return of_all<kSmallest>(work);
  if (axes.inner_reduced && axes.groups == 1 && axes.inner < kLanes<T>)
    return of_short_rows<kSmallest>(work);
  for_results(
      axes, kColumns,
      [&](std::int64_t o, std::int64_t at) {
        const T* row = work.in + at;
        T best = first_of<kSmallest>(row, axes.inner);
        for (std::int64_t r = 1; r < axes.outer_reduced; ++r)
          best =
              First<kSmallest>()(first_of<kSmallest>(row + axes.offset(r, true), axes.inner), best);
        work.put(o, best, row);
      },
      [&](std::int64_t o, std::int64_t at, std::int64_t count) {
        of_strip<kSmallest>(work, work.in + at, o, count);
      });
}

}  // namespace

Status extreme(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const auto& how = context.attribute<ExtremeAttributes>();
  if (out.elements() == 0) return {};
  const auto of = [&]<class T>(T) {
    const Work<T> work{in.as<const T>(), out.as<T>(),
                       how.position ? out.as<std::int64_t>() : nullptr,
                       MergedAxes(in.spec.shape, how.axes), context.workspace};
    how.smallest ? run<true>(work) : run<false>(work);
  };
  return is_floating(in.spec.dtype) ? for_wide(in.spec.dtype, of)
                                    : for_stored_integer(in.spec.dtype, of);
}

MemoryNeeds extreme_memory(const MemoryQuery& query) {
  const Spec& in = query.inputs[0];
  return needs_of_pieces(in.shape, query.attribute<ExtremeAttributes>().axes, kPiece,
                         size_of(in.dtype));
}

}  // namespace ebb::cpu
