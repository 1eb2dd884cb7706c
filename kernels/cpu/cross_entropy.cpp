#include "ebb/core/kernels/cross_entropy.h"

#include <cmath>

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/kernels/cpu/indices.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/softmax_row.h"

namespace ebb::cpu {
namespace {

// The sums over a row's targets t that its loss needs: sum(t), and sum(t (largest score - score)).
struct TargetSums {
  double targets = 0, distances = 0;
};

// Scores [rows, classes] and labels of type L, which is T for probabilities.
template <class T, class L>
struct Rows {
  static constexpr bool kLabels = !std::is_same_v<T, L>;
  const T* scores;
  const L* labels;
  const T* weights;  // or null
  std::int64_t rows, classes;
  CrossEntropyAttributes attributes;
  double total_weight;  // of all classes
  OutOfRange& out_of_range;

  bool knows(std::int64_t label) const noexcept { return label >= 0 && label < classes; }
  T weight(std::int64_t label) const noexcept { return weights == nullptr ? T(1) : weights[label]; }
  double per_class() const noexcept { return attributes.smoothing / static_cast<double>(classes); }

  // The targets of some classes, without the label's own part.
  Block<T> targets(std::int64_t row, std::int64_t from, std::int64_t count) const noexcept {
    Block<T> t = static_cast<T>(per_class());
    if constexpr (!kLabels)
      t = load_some(labels + row * classes + from, count) *
              Block<T>(static_cast<T>(1 - attributes.smoothing)) +
          t;
    return weights == nullptr ? t : t * load_some(weights + from, count);
  }
  TargetSums sums(std::int64_t row, T shift) const noexcept {
    const T* x = scores + row * classes;
    const Block<T> shifts = shift;
    TargetSums total;
    for (std::int64_t i = 0; i < classes;) {
      Block<T> targets_run = 0, distances_run = 0;
      for (const std::int64_t end = std::min(classes, i + kRun * kBlock<T>); i < end;
           i += kBlock<T>) {
        const std::int64_t count = std::min(kBlock<T>, end - i);
        Block<T> t = targets(row, i, count);
        if (count < kBlock<T>) {  // nothing beyond the last class
          T elements[kBlock<T>];
          store(elements, t);
          std::fill(elements + count, elements + kBlock<T>, T(0));
          t = load(elements);
        }
        const auto of_one = [](auto target, auto distance) {
          return target == 0 ? target : target * distance;
        };
        targets_run += t;
        distances_run += Block<T>::each(of_one, t, shifts - load_some(x + i, count, shift));
      }
      total.targets += sum(targets_run);
      total.distances += sum(distances_run);
    }
    return total;
  }

  double loss(std::int64_t row) const noexcept {
    const T* x = scores + row * classes;
    std::int64_t label = 0;
    if constexpr (kLabels) {
      label = static_cast<std::int64_t>(labels[row]);
      if (attributes.ignores(label)) return 0;
      if (!knows(label)) {
        out_of_range.note();
        return 0;
      }
    }
    const T shift = largest_score(x, classes);
    const double log_sum = std::log(exponentials<false>(x, classes, shift));
    double label_loss = 0;
    if constexpr (kLabels) {
      label_loss = (1 - attributes.smoothing) * static_cast<double>(weight(label)) *
                   (log_sum + (static_cast<double>(shift) - static_cast<double>(x[label])));
      if (attributes.smoothing == 0) return label_loss;
    }
    const TargetSums t = sums(row, shift);
    return label_loss + (log_sum * t.targets + t.distances);
  }

  // out = scale (softmax(scores) sum(t) - t). out may be the scores.
  void backward(std::int64_t row, T scale, T* out) const noexcept {
    const T* x = scores + row * classes;
    std::int64_t label = 0;
    double targets_sum = 0;
    T of_label = 0;
    if constexpr (kLabels) {
      label = static_cast<std::int64_t>(labels[row]);
      if (attributes.ignores(label)) {
        std::fill_n(out, classes, T(0));
        return;
      }
      if (!knows(label)) return out_of_range.note();
      of_label = scale * static_cast<T>(1 - attributes.smoothing) * weight(label);
      targets_sum = (1 - attributes.smoothing) * static_cast<double>(weight(label)) +
                    per_class() * total_weight;
    }
    const T shift = largest_score(x, classes);
    if constexpr (!kLabels) targets_sum = sums(row, shift).targets;
    const double sum = exponentials<true>(x, classes, shift, out);
    const T factor = static_cast<T>(static_cast<double>(scale) * targets_sum / sum);
    if (kLabels && attributes.smoothing == 0) {
      for (std::int64_t j = 0; j < classes; ++j) out[j] *= factor;
    } else {
      const Block<T> factors = factor, scales = scale;
      for (std::int64_t j = 0; j < classes; j += kBlock<T>) {
        const std::int64_t count = std::min(kBlock<T>, classes - j);
        store_some(out + j, load_some(out + j, count) * factors - targets(row, j, count) * scales,
                   count);
      }
    }
    if constexpr (kLabels) out[label] -= of_label;
  }
};

// Calls body(T, L).
template <class Body>
Status for_types(const KernelContext& context, const Body& body) {
  const DType labels = context.inputs[1].spec.dtype;
  return for_wide(context.inputs[0].spec.dtype, [&](auto score) {
    if (labels == DType::i32) {
      body(score, std::int32_t{});
    } else if (labels == DType::i64) {
      body(score, std::int64_t{});
    } else {
      body(score, score);
    }
  });
}

std::int64_t rows_of_shape(const Shape& scores) noexcept {
  return ebb::detail::product(scores, 0, scores.rank() - 1);
}

// Input `weights` has the weights, if there are any.
template <class T, class L>
Rows<T, L> rows_of(const KernelContext& context, std::size_t weights,
                   OutOfRange& out_of_range) noexcept {
  const auto& attributes = context.attribute<CrossEntropyAttributes>();
  const Buffer& scores = context.inputs[0];
  const std::int64_t classes = scores.spec.shape.dim(-1);
  Rows<T, L> rows{scores.as<const T>(),
                  context.inputs[1].as<const L>(),
                  nullptr,
                  rows_of_shape(scores.spec.shape),
                  classes,
                  attributes,
                  static_cast<double>(classes),
                  out_of_range};
  if (attributes.has_weights != 0) {
    rows.weights = context.inputs[weights].as<const T>();
    rows.total_weight = 0;
    if (attributes.smoothing != 0)
      for (std::int64_t c = 0; c < classes; ++c)
        rows.total_weight += static_cast<double>(rows.weights[c]);
  }
  return rows;
}

// The divisor of a reduced loss.
double divisor(const KernelContext& context, std::int64_t rows, std::size_t weights) noexcept {
  const auto& attributes = context.attribute<CrossEntropyAttributes>();
  if (attributes.has_total != 0) {
    const Buffer& total = context.inputs[attributes.has_weights != 0 ? weights + 1 : weights];
    return total.spec.dtype == DType::f64 ? *total.as<const double>()
                                          : static_cast<double>(*total.as<const float>());
  }
  return attributes.reduction == CrossEntropyAttributes::mean ? static_cast<double>(rows) : 1;
}

}  // namespace

// Workspace: the sum of each piece of rows.
MemoryNeeds softmax_cross_entropy_memory(const MemoryQuery& query) {
  if (query.attribute<CrossEntropyAttributes>().reduction == CrossEntropyAttributes::none)
    return {};
  const Shape& shape = query.inputs[0].shape;
  return {.workspace_bytes = static_cast<std::size_t>(
                                 divide_up(rows_of_shape(shape), rows_per_piece(shape.dim(-1)))) *
                             sizeof(double)};
}

Status softmax_cross_entropy(const KernelContext& context) {
  const bool reduced =
      context.attribute<CrossEntropyAttributes>().reduction != CrossEntropyAttributes::none;
  OutOfRange out_of_range;
  return out_of_range.after(for_types(context, [&]<class T, class L>(T, L) {
    const auto in = rows_of<T, L>(context, 2, out_of_range);
    const std::int64_t piece = rows_per_piece(in.classes);
    double* partial = static_cast<double*>(context.workspace);
    T* out = context.outputs[0].template as<T>();
    for_pieces(in.rows, piece, [&](std::int64_t begin, std::int64_t end) {
      double sum = 0;
      for (std::int64_t i = begin; i < end; ++i) {
        const double loss = in.loss(i);
        if (!reduced) out[i] = static_cast<T>(loss);
        sum += loss;
      }
      if (reduced) partial[begin / piece] = sum;
    });
    if (!reduced) return;
    double total = 0;
    for (std::int64_t i = 0; i < divide_up(in.rows, piece); ++i) total += partial[i];
    *out = static_cast<T>(total / divisor(context, in.rows, 2));
  }));
}

Status softmax_cross_entropy_backward(const KernelContext& context) {
  const bool reduced =
      context.attribute<CrossEntropyAttributes>().reduction != CrossEntropyAttributes::none;
  OutOfRange out_of_range;
  return out_of_range.after(for_types(context, [&]<class T, class L>(T, L) {
    const auto in = rows_of<T, L>(context, 3, out_of_range);
    const T* dy = context.inputs[2].template as<const T>();
    T* out = context.outputs[0].template as<T>();
    const T scale =
        reduced ? static_cast<T>(static_cast<double>(*dy) / divisor(context, in.rows, 3)) : T(0);
    for_items(in.rows, rows_per_piece(in.classes), [&](std::int64_t i) {
      in.backward(i, reduced ? scale : dy[i], out + i * in.classes);
    });
  }));
}

Status label_weights(const KernelContext& context) {
  OutOfRange out_of_range;
  return out_of_range.after(for_types(context, [&]<class T, class L>(T, L) {
    if constexpr (!std::is_same_v<T, L>) {
      const auto in = rows_of<T, L>(context, 2, out_of_range);
      T* out = context.outputs[0].template as<T>();
      for_items(in.rows, kPieceElements, [&](std::int64_t i) {
        const auto at = static_cast<std::int64_t>(in.labels[i]);
        const bool is_ignored = in.attributes.ignores(at);
        if (!is_ignored && !in.knows(at))
          out_of_range.note();
        else
          out[i] = is_ignored ? T(0) : in.weight(at);
      });
    }
  }));
}

}  // namespace ebb::cpu
