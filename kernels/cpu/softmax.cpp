#include "ebb/core/kernels/softmax.h"

#include <cmath>

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/softmax_row.h"

namespace ebb::cpu {
namespace {

template <class T>
void softmax_row(const T* x, T* y, std::int64_t classes) noexcept {
  const T scale = static_cast<T>(1 / exponentials<true>(x, classes, largest_score(x, classes), y));
  for (std::int64_t j = 0; j < classes; ++j) y[j] *= scale;
}

template <class T>
void log_softmax_row(const T* x, T* y, std::int64_t classes) noexcept {
  const T shift = largest_score(x, classes);
  const T rest = static_cast<T>(std::log(exponentials<false>(x, classes, shift)));
  for (std::int64_t j = 0; j < classes; ++j) y[j] = (x[j] - shift) - rest;
}

// The softmax of up to a block of columns of [classes, inner], side by side.
template <class T>
void softmax_columns(const T* x, T* y, const SoftmaxView& view, std::int64_t columns,
                     bool log) noexcept {
  Block<T> shift = -std::numeric_limits<T>::infinity();
  for (std::int64_t j = 0; j < view.classes; ++j)
    shift = max(load_some(x + j * view.inner, columns), shift);
  double totals[kBlock<T>] = {};
  T elements[kBlock<T>];
  for (std::int64_t j = 0; j < view.classes;) {
    Block<T> sums = 0;
    for (const std::int64_t end = std::min(view.classes, j + kRun); j < end; ++j) {
      const Block<T> e = exp_of_difference(load_some(x + j * view.inner, columns), shift);
      if (!log) store_some(y + j * view.inner, e, columns);
      sums += e;
    }
    store(elements, sums);
    for (std::int64_t i = 0; i < kBlock<T>; ++i) totals[i] += static_cast<double>(elements[i]);
  }
  for (std::int64_t i = 0; i < kBlock<T>; ++i)
    elements[i] = static_cast<T>(log ? std::log(totals[i]) : 1 / totals[i]);
  const Block<T> finish = load(elements);
  for (std::int64_t j = 0; j < view.classes; ++j) {
    const std::int64_t at = j * view.inner;
    store_some(
        y + at,
        log ? (load_some(x + at, columns) - shift) - finish : load_some(y + at, columns) * finish,
        columns);
  }
}

Status run(const KernelContext& context, bool log) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const SoftmaxView view(in.spec.shape, context.attribute<SoftmaxAttributes>());
  if (out.elements() == 0) return {};
  return for_wide(out.spec.dtype, [&]<class T>(T) {
    const T* x = in.as<const T>();
    T* y = out.as<T>();
    if (view.inner == 1) {
      const auto row = log ? log_softmax_row<T> : softmax_row<T>;
      for_items(view.outer, rows_per_piece(view.classes), [=](std::int64_t i) {
        row(x + i * view.classes, y + i * view.classes, view.classes);
      });
      return;
    }
    const std::int64_t strips = divide_up(view.inner, kBlock<T>);
    for_items(view.outer * strips, rows_per_piece(view.classes * kBlock<T>), [=](std::int64_t i) {
      const std::int64_t column = i % strips * kBlock<T>;
      const std::int64_t at = i / strips * view.classes * view.inner + column;
      softmax_columns(x + at, y + at, view, std::min(kBlock<T>, view.inner - column), log);
    });
  });
}

}  // namespace

Status softmax(const KernelContext& context) { return run(context, false); }
Status log_softmax(const KernelContext& context) { return run(context, true); }

}  // namespace ebb::cpu
