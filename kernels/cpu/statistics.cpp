#include "ebb/core/kernels/statistics.h"

#include <cmath>
#include <limits>

#include "ebb/core/kernels/for_dtype.h"
#include "ebb/kernels/cpu/elementary.h"
#include "ebb/kernels/cpu/merged_walk.h"
#include "ebb/kernels/cpu/reduce_loops.h"
#include "ebb/kernels/cpu/softmax_row.h"

namespace ebb::cpu {
namespace {

using Kind = StatisticAttributes::Kind;

// Elements of a statistic over everything that are worth a piece.
constexpr std::int64_t kPiece = 64 * 1024;

// The terms summed over x. Their center is one number, or one for each column of a strip.
template <class T>
struct Centers {
  const T* of_columns;  // null: `center` is for all
  T center;

  Block<T> at(std::int64_t j) const noexcept {
    return of_columns == nullptr ? Block<T>(center) : load(of_columns + j);
  }
};
template <class T>
struct SquaredDifference : Centers<T> {
  Block<T> operator()(const Block<T>& x, std::int64_t j) const noexcept {
    const Block<T> difference = x - this->at(j);
    return difference * difference;
  }
  T padding() const noexcept { return this->center; }
};
template <class T>
struct Size : Centers<T> {
  Block<T> operator()(const Block<T>& x, std::int64_t) const noexcept { return max(x, -x); }
  T padding() const noexcept { return 0; }
};
template <class T>
struct Exponential : Centers<T> {
  Block<T> operator()(const Block<T>& x, std::int64_t j) const noexcept {
    return exp(x - this->at(j));
  }
  T padding() const noexcept { return -std::numeric_limits<T>::infinity(); }
};

// Calls f with the terms of this kind.
template <class T, class F>
void with_terms(Kind kind, const Centers<T>& centers, const F& f) {
  switch (kind) {
    case Kind::norm1:
      return f(Size<T>{centers});
    case Kind::logsumexp:
      return f(Exponential<T>{centers});
    default:
      return f(SquaredDifference<T>{centers});
  }
}

// Computes results from sums. The mean is in double and the center is the mean rounded to T; the
// sum of squares is corrected by the square of their difference.
template <class T>
struct Statistic {
  Kind kind;
  double terms, correction;

  bool has_mean() const noexcept {
    return kind == Kind::variance || kind == Kind::standard_deviation;
  }
  // The center of logsumexp, its largest element; 0 if that is infinite, since infinity - infinity
  // is NaN.
  static T center_of_largest(T largest) noexcept {
    return std::abs(largest) <= std::numeric_limits<T>::max() ? largest : T(0);
  }
  T finish(double total, double mean, T center) const noexcept {
    if (kind == Kind::norm1) return static_cast<T>(total);
    if (kind == Kind::norm2) return static_cast<T>(std::sqrt(total));
    if (kind == Kind::logsumexp)
      return static_cast<T>(std::log(total) + static_cast<double>(center));
    const double off = mean - static_cast<double>(center);
    const double squares = total - terms * off * off, n = terms - correction;
    const double variance = (squares < 0 ? 0 : squares) / (n > 0 ? n : 0);
    return static_cast<T>(kind == Kind::variance ? variance : std::sqrt(variance));
  }
};

// A result has `runs` rows of `count` terms each. for_runs calls add() with the partial result of
// each run, in their order.
template <class T, class Runs>
T of_runs(const Statistic<T>& how, const Runs& for_runs) {
  double mean = 0;
  T center = 0;
  if (how.has_mean()) {
    double total = 0;
    for_runs([](const T* row, std::int64_t count) { return add_contiguous(row, count); },
             [&](double sum) { total += sum; });
    mean = total / how.terms;
    center = static_cast<T>(mean);
  } else if (how.kind == Kind::logsumexp) {
    double largest = -std::numeric_limits<double>::infinity();
    for_runs([](const T* row,
                std::int64_t count) { return static_cast<double>(largest_score(row, count)); },
             [&](double score) { largest = score > largest ? score : largest; });
    center = how.center_of_largest(static_cast<T>(largest));
  }
  double total = 0;
  with_terms<T>(how.kind, {nullptr, center}, [&](const auto& term) {
    for_runs([&](const T* row, std::int64_t count) { return add_contiguous(row, count, term); },
             [&](double sum) { total += sum; });
  });
  return how.finish(total, mean, center);
}

// All elements as one row, in pieces.
template <class T>
void of_all(const T* in, T* out, std::int64_t count, const Statistic<T>& how, double* partial) {
  *out = of_runs(how, [&](const auto& of_run, const auto& add) {
    for_pieces(count, kPiece, [&](std::int64_t begin, std::int64_t end) {
      partial[begin / kPiece] = of_run(in + begin, end - begin);
    });
    for (std::int64_t piece = 0; piece < divide_up(count, kPiece); ++piece) add(partial[piece]);
  });
}

template <class T>
T of_row(const T* in, const MergedAxes& axes, const Statistic<T>& how) {
  return of_runs(how, [&](const auto& of_run, const auto& add) {
    for (std::int64_t r = 0; r < axes.outer_reduced; ++r)
      add(of_run(in + axes.offset(r, true), axes.inner));
  });
}

// The statistics of a strip of `count` columns.
template <class T>
void of_strip(const T* in, T* out, std::int64_t count, const MergedAxes& axes,
              const Statistic<T>& how) {
  const auto offset = [&](std::int64_t r) { return axes.offset(r, true); };
  // These have the size of whole blocks, which terms read.
  double means[kStrip<T>] = {}, totals[kStrip<T>] = {};
  T centers[kStrip<T>] = {};
  if (how.has_mean()) {
    add_rows(in, axes.outer_reduced, count, offset, means);
    for (std::int64_t j = 0; j < count; ++j) {
      means[j] /= how.terms;
      centers[j] = static_cast<T>(means[j]);
    }
  } else if (how.kind == Kind::logsumexp) {
    std::copy_n(in, count, centers);
    for (std::int64_t r = 1; r < axes.outer_reduced; ++r) {
      const T* row = in + offset(r);
      for (std::int64_t j = 0; j < count; ++j)
        centers[j] = row[j] > centers[j] ? row[j] : centers[j];
    }
    for (std::int64_t j = 0; j < count; ++j) centers[j] = how.center_of_largest(centers[j]);
  }
  with_terms<T>(how.kind, {centers, T(0)}, [&](const auto& term) {
    add_rows(in, axes.outer_reduced, count, offset, totals, term);
  });
  for (std::int64_t j = 0; j < count; ++j) out[j] = how.finish(totals[j], means[j], centers[j]);
}

}  // namespace

Status statistic(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const auto& attributes = context.attribute<StatisticAttributes>();
  const std::int64_t count = in.elements(), results = out.elements();
  if (results == 0) return {};
  return for_wide(out.spec.dtype, [&]<class T>(T) {
    const T* from = in.as<const T>();
    T* to = out.as<T>();
    const Statistic<T> how{static_cast<Kind>(attributes.kind),
                           static_cast<double>(count) / static_cast<double>(results),
                           static_cast<double>(attributes.correction)};
    const MergedAxes axes(in.spec.shape, attributes.axes);
    if (count == 0)
      std::fill_n(to, results, how.finish(0, 0, 0));
    else if (axes.reduces_all())
      of_all(from, to, count, how, static_cast<double*>(context.workspace));
    else
      for_results(
          axes, kStrip<T>,
          [&](std::int64_t o, std::int64_t at) { to[o] = of_row(from + at, axes, how); },
          [&](std::int64_t o, std::int64_t at, std::int64_t columns) {
            of_strip(from + at, to + o, columns, axes, how);
          });
  });
}

MemoryNeeds statistic_memory(const MemoryQuery& query) {
  return needs_of_pieces(query.inputs[0].shape, query.attribute<StatisticAttributes>().axes, kPiece,
                         sizeof(double));
}

}  // namespace ebb::cpu
