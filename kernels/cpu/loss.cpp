#include "ebb/core/kernels/loss.h"

#include <cmath>
#include <limits>

#include "ebb/kernels/cpu/dispatch.h"
#include "ebb/kernels/cpu/in_float.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/softmax_row.h"

namespace ebb::cpu {
namespace {

template <class T>
double row_loss(const T* row, std::int64_t classes, std::int64_t label) noexcept {
  if (label < 0 || label >= classes) return std::numeric_limits<double>::quiet_NaN();
  const T shift = largest_score(row, classes);
  const double sum = exponentials<false>(row, classes, shift);
  return std::log(sum) + (static_cast<double>(shift) - static_cast<double>(row[label]));
}

template <class Body>
Status for_scores_and_labels(DType scores, DType labels, const Body& body) {
  if (labels != DType::i32 && labels != DType::i64) return kUnsupportedDType;
  return for_floating(scores, [&](auto score) {
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
  if (is_half(query.outputs[0].dtype)) return in_float_memory(query, softmax_cross_entropy_memory);
  const Shape& shape = query.inputs[0].shape;
  return {.workspace_bytes =
              static_cast<std::size_t>(divide_up(shape[0], rows_per_piece(shape[1]))) *
              sizeof(double)};
}

Status softmax_cross_entropy(const KernelContext& context) {
  if (is_half(context.outputs[0].spec.dtype)) return in_float(context, softmax_cross_entropy);
  const Buffer &scores = context.inputs[0], &labels = context.inputs[1], &out = context.outputs[0];
  const std::int64_t n = scores.spec.shape[0], classes = scores.spec.shape[1];
  const std::int64_t rows = rows_per_piece(classes);
  double* partial = static_cast<double*>(context.workspace);
  return for_scores_and_labels(scores.spec.dtype, labels.spec.dtype, [&](auto score, auto label) {
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

MemoryNeeds softmax_cross_entropy_backward_memory(const MemoryQuery& query) {
  return is_half(query.outputs[0].dtype) ? in_float_memory(query, nullptr) : MemoryNeeds();
}

Status softmax_cross_entropy_backward(const KernelContext& context) {
  if (is_half(context.outputs[0].spec.dtype))
    return in_float(context, softmax_cross_entropy_backward);
  const Buffer &scores = context.inputs[0], &labels = context.inputs[1], &dy = context.inputs[2];
  const Buffer& out = context.outputs[0];
  const std::int64_t n = scores.spec.shape[0], classes = scores.spec.shape[1];
  return for_scores_and_labels(scores.spec.dtype, labels.spec.dtype, [&](auto score, auto label) {
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
        const T* from = x + i * classes;
        const double sum = exponentials<true>(from, classes, largest_score(from, classes), row);
        const T factor = static_cast<T>(static_cast<double>(scale) / sum);
        for (std::int64_t j = 0; j < classes; ++j) row[j] *= factor;
        row[target] -= scale;
      }
    });
  });
}

}  // namespace ebb::cpu
