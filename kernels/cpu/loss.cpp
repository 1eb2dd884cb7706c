#include "ebb/core/kernels/loss.h"

#include <cmath>
#include <limits>

#include "ebb/kernels/cpu/dispatch.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/vector_block.h"

namespace ebb::cpu {
namespace {

template <class T>
T largest(const T* row, std::int64_t count) noexcept {
  constexpr T kLowest = -std::numeric_limits<T>::infinity();
  Block<T> best = Block<T>::Constant(kLowest);
  std::int64_t i = 0;
  for (; i + kBlock<T> <= count; i += kBlock<T>) best = best.max(load(row + i));
  if (i < count) best = best.max(load_tail(row + i, count - i, kLowest));
  return best.maxCoeff();
}

// The sum of exp(row[i] - shift), for shift the row's largest; written to out where that is given.
template <class T>
T exponentials(const T* row, std::int64_t count, T shift, T* out) noexcept {
  Block<T> sums = Block<T>::Zero();
  std::int64_t i = 0;
  for (; i + kBlock<T> <= count; i += kBlock<T>) {
    const Block<T> e = (load(row + i) - shift).exp();
    if (out != nullptr) store(out + i, e);
    sums += e;
  }
  if (i < count) {
    Block<T> e = (load_tail(row + i, count - i, shift) - shift).exp();
    if (out != nullptr) store_tail(out + i, e, count - i);
    for (std::int64_t j = count - i; j < kBlock<T>; ++j) e.data()[j] = T(0);
    sums += e;
  }
  return sums.sum();
}

// With a score of infinity or NaN the result is NaN, as the formula has it.
template <class T>
double row_loss(const T* row, std::int64_t classes, std::int64_t label) noexcept {
  if (label < 0 || label >= classes) return std::numeric_limits<double>::quiet_NaN();
  const T shift = largest(row, classes);
  const T sum = exponentials<T>(row, classes, shift, nullptr);
  return std::log(static_cast<double>(sum)) + static_cast<double>(shift - row[label]);
}

template <class Body>
void for_scores_and_labels(DType scores, DType labels, const Body& body) {
  for_floating(scores, [&](auto score) {
    if (labels == DType::i32) {
      body(score, std::int32_t{});
    } else {
      body(score, std::int64_t{});
    }
  });
}

}  // namespace

// Workspace: the sum of each piece of rows.
MemoryNeeds softmax_cross_entropy_memory(const MemoryQuery& query) {
  const Shape& shape = query.inputs[0].shape;
  return {.workspace_bytes =
              static_cast<std::size_t>(divide_up(shape[0], rows_per_piece(shape[1]))) *
              sizeof(double)};
}

void softmax_cross_entropy(const KernelContext& context) {
  const Buffer &scores = context.inputs[0], &labels = context.inputs[1], &out = context.outputs[0];
  const std::int64_t n = scores.spec.shape[0], classes = scores.spec.shape[1];
  const std::int64_t rows = rows_per_piece(classes);
  double* partial = static_cast<double*>(context.workspace);
  for_scores_and_labels(scores.spec.dtype, labels.spec.dtype, [&](auto score, auto label) {
    using T = decltype(score);
    using L = decltype(label);
    const T* x = scores.as<const T>();
    const L* y = labels.as<const L>();
    for_pieces(n, rows, [=](std::int64_t begin, std::int64_t end) {
      double sum = 0;
      for (std::int64_t i = begin; i < end; ++i)
        sum += row_loss(x + i * classes, classes, static_cast<std::int64_t>(y[i]));
      partial[begin / rows] = sum;
    });
    double total = 0;
    for (std::int64_t i = 0; i < divide_up(n, rows); ++i) total += partial[i];
    *out.as<T>() = static_cast<T>(total / static_cast<double>(n));
  });
}

void softmax_cross_entropy_backward(const KernelContext& context) {
  const Buffer &scores = context.inputs[0], &labels = context.inputs[1], &dy = context.inputs[2];
  const Buffer& out = context.outputs[0];
  const std::int64_t n = scores.spec.shape[0], classes = scores.spec.shape[1];
  for_scores_and_labels(scores.spec.dtype, labels.spec.dtype, [&](auto score, auto label) {
    using T = decltype(score);
    using L = decltype(label);
    const T* x = scores.as<const T>();
    const L* y = labels.as<const L>();
    T* to = out.as<T>();
    const T scale = *dy.as<const T>() / static_cast<T>(n);
    for_pieces(n, rows_per_piece(classes), [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        T* row = to + i * classes;
        const auto target = static_cast<std::int64_t>(y[i]);
        if (target < 0 || target >= classes) {
          std::fill_n(row, classes, std::numeric_limits<T>::quiet_NaN());
          continue;
        }
        const T sum =
            exponentials(x + i * classes, classes, largest(x + i * classes, classes), row);
        const T factor = scale / sum;
        for (std::int64_t j = 0; j < classes; ++j) row[j] *= factor;
        row[target] -= scale;
      }
    });
  });
}

}  // namespace ebb::cpu
