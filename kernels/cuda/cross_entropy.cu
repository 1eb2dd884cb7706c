#include "ebb/core/kernels/cross_entropy.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "ebb/core/kernels/convert.h"
#include "ebb/kernels/cuda/launch.h"
#include "ebb/kernels/cuda/softmax_row.h"

namespace ebb::cuda {
namespace {

// Scores [rows, classes] and their targets. L is T for probabilities.
template <class T, class L>
struct Rows {
  using A = Accumulate<T>;
  static constexpr bool kLabels = !std::is_same_v<T, L>;
  const T* scores;
  const L* labels;
  const T* weights;  // or null
  const A* total;    // or null
  std::int64_t rows, classes;
  std::int64_t ignored;
  A smoothing;
  bool has_ignored, is_mean;
  bool packed = false;  // packs of neighbours are read and written

  __device__ bool ignores(std::int64_t label) const { return has_ignored && label == ignored; }
  __device__ bool knows(std::int64_t label) const { return label >= 0 && label < classes; }
  __device__ A weight(std::int64_t label) const {
    return weights == nullptr ? A(1) : static_cast<A>(weights[label]);
  }
  // Whether classes other than the label have a target too.
  __device__ bool spreads() const { return !kLabels || smoothing != 0; }
  // The targets of classes c to c + N - 1 that do not depend on the label.
  template <int N>
  __device__ Pack<A, N> spread_targets(std::int64_t row, std::int64_t c) const {
    Pack<A, N> t = splat<N>(smoothing / static_cast<A>(classes));
    if constexpr (!kLabels) {
      const Pack<A, N> given = as_pack<A>(load<N>(labels + row * classes + c));
      for (int k = 0; k < N; ++k) t[k] += (1 - smoothing) * given[k];
    }
    for (int k = 0; k < N; ++k) t[k] *= weight(c + k);
    return t;
  }
  __device__ double divisor() const {
    if (total != nullptr) return static_cast<double>(*total);
    return is_mean ? static_cast<double>(rows) : 1;
  }
};

// Writes the loss of each row into `losses`, if given. Otherwise writes their sum over the divisor
// into `out`, or with several blocks each block's sum into `partial`.
template <class T, class L>
__global__ void loss_kernel(Rows<T, L> in, T* losses, T* out, double* partial, int threads) {
  using A = Accumulate<T>;
  __shared__ double scratch[kWarp];
  const Group group(threads, scratch);
  double total = 0;
  for_rows(group, in.rows, [&](std::int64_t row, bool there) {
    const T* scores = in.scores + row * in.classes;
    const std::int64_t count = there ? in.classes : 0;
    const A shift = largest_score(group, scores, count, in.packed);
    const double log_sum =
        std::log(sum_of_exponentials<false>(group, scores, count, shift, in.packed));
    double loss = 0;
    if (in.spreads()) {
      const auto target = [&]<int N>(std::int64_t c) {
        return in.template spread_targets<N>(row, c);
      };
      const double targets = group.sum<kPack<T>>(count, in.packed, target);
      const auto distance = [&]<int N>(std::int64_t c) {
        Pack<A, N> t = target.template operator()<N>(c);
        const Pack<A, N> x = as_pack<A>(load<N>(scores + c));
        for (int k = 0; k < N; ++k) t[k] = t[k] == 0 ? t[k] : t[k] * (shift - x[k]);
        return t;
      };
      const double distances = group.sum<kPack<T>>(count, in.packed, distance);
      loss = log_sum * targets + distances;
    }
    if (!there || group.thread() != 0) return;
    if constexpr (Rows<T, L>::kLabels) {
      const auto label = static_cast<std::int64_t>(in.labels[row]);
      if (in.ignores(label)) {
        loss = 0;
      } else if (in.knows(label)) {
        loss += static_cast<double>((1 - in.smoothing) * in.weight(label)) *
                (log_sum + (static_cast<double>(shift) - convert<double>(scores[label])));
      } else {
        loss = std::numeric_limits<double>::quiet_NaN();
      }
    }
    if (losses != nullptr) losses[row] = convert<T>(loss);
    total += loss;
  });
  if (losses != nullptr) return;
  total = Group(0, scratch).sum(total);
  if (threadIdx.x != 0) return;
  if (partial != nullptr) {
    partial[blockIdx.x] = total;
  } else {
    *out = convert<T>(total / in.divisor());
  }
}

template <class T, class L>
__global__ void finish_kernel(Rows<T, L> in, const double* partial, std::int64_t parts, T* out) {
  __shared__ double scratch[kWarp];
  const double total = Group(0, scratch).sum<1>(parts, false, [&]<int N>(std::int64_t i) {
    return load<N>(partial + i);
  });
  if (threadIdx.x == 0) *out = convert<T>(total / in.divisor());
}

template <class T, class L>
__global__ void loss_backward_kernel(Rows<T, L> in, const T* dy, bool dy_of_rows, T* out,
                                     int threads) {
  using A = Accumulate<T>;
  __shared__ double scratch[kWarp];
  const Group group(threads, scratch);
  const A all = dy_of_rows ? A(0) : static_cast<A>(convert<double>(*dy) / in.divisor());
  for_rows(group, in.rows, [&](std::int64_t row, bool there) {
    const T* scores = in.scores + row * in.classes;
    const std::int64_t count = there ? in.classes : 0;
    const A shift = largest_score(group, scores, count, in.packed);
    const double sum = sum_of_exponentials<true>(group, scores, count, shift, in.packed);
    const auto target = [&]<int N>(std::int64_t c) {
      return in.template spread_targets<N>(row, c);
    };
    double targets = in.spreads() ? group.sum<kPack<T>>(count, in.packed, target) : 0;
    if (!there) return;
    A scale = dy_of_rows ? static_cast<A>(dy[row]) : all, of_label = 0;
    std::int64_t label = -1;
    if constexpr (Rows<T, L>::kLabels) {
      label = static_cast<std::int64_t>(in.labels[row]);
      if (in.ignores(label)) {
        group.each<kPack<T>>(count, in.packed, [&]<int N>(std::int64_t j) {
          store(out + row * in.classes + j, splat<N>(T(0)));
        });
        return;
      }
      if (in.knows(label)) {
        of_label = (1 - in.smoothing) * in.weight(label);
        targets += static_cast<double>(of_label);
      } else {
        scale = std::numeric_limits<A>::quiet_NaN();
      }
    }
    const A factor = static_cast<A>(static_cast<double>(scale) * targets / sum);
    group.each<kPack<T>>(count, in.packed, [&]<int N>(std::int64_t j) {
      const Pack<A, N> x = as_pack<A>(load<N>(scores + j));
      const Pack<A, N> spread = in.spreads() ? target.template operator()<N>(j) : Pack<A, N>();
      Pack<T, N> to;
      for (int k = 0; k < N; ++k) {
        A y = exp_of_difference(x[k], shift) * factor;
        if (in.spreads()) y -= scale * spread[k];
        to[k] = static_cast<T>(j + k == label ? y - scale * of_label : y);
      }
      store(out + row * in.classes + j, to);
    });
  });
}

template <class T, class L>
__global__ void label_weights_kernel(Rows<T, L> in, Accumulate<T>* out) {
  for (std::int64_t i = grid_thread(); i < in.rows; i += grid_threads()) {
    const auto label = static_cast<std::int64_t>(in.labels[i]);
    out[i] = in.ignores(label) ? 0
             : in.knows(label) ? in.weight(label)
                               : std::numeric_limits<Accumulate<T>>::quiet_NaN();
  }
}

// `weights`: index of the input that has the weights, if there are any.
template <class T, class L>
Rows<T, L> rows_of(const KernelContext& context, std::size_t weights) noexcept {
  const auto& attributes = context.attribute<CrossEntropyAttributes>();
  const Buffer& scores = context.inputs[0];
  Rows<T, L> rows{};
  rows.scores = scores.as<const T>();
  rows.labels = context.inputs[1].as<const L>();
  if (attributes.has_weights != 0) rows.weights = context.inputs[weights].as<const T>();
  if (attributes.has_total != 0)
    rows.total = context.inputs[attributes.has_weights != 0 ? weights + 1 : weights]
                     .as<const Accumulate<T>>();
  rows.rows = 1;
  for (int axis = 0; axis + 1 < scores.spec.shape.rank(); ++axis)
    rows.rows *= scores.spec.shape.dim(axis);
  rows.classes = scores.spec.shape.dim(-1);
  rows.ignored = attributes.ignored;
  rows.smoothing = static_cast<Accumulate<T>>(attributes.smoothing);
  rows.has_ignored = attributes.has_ignored != 0;
  rows.packed = rows_take_packs<kPack<T>>(rows.classes, rows.scores);
  if constexpr (!Rows<T, L>::kLabels) rows.packed &= takes_packs<kPack<T>>(rows.labels);
  rows.is_mean = attributes.reduction == CrossEntropyAttributes::mean;
  return rows;
}

// Calls f(Rows).
template <class F>
Status for_scores_and_labels(const KernelContext& context, std::size_t weights,
                             const F& f) noexcept {
  return for_floating(context.inputs[0].spec.dtype, [&]<class T>(T) {
    switch (context.inputs[1].spec.dtype) {
      case DType::i32:
        return f(rows_of<T, std::int32_t>(context, weights));
      case DType::i64:
        return f(rows_of<T, std::int64_t>(context, weights));
      default:
        return f(rows_of<T, T>(context, weights));
    }
  });
}

bool is_reduced(const KernelContext& context) noexcept {
  return context.attribute<CrossEntropyAttributes>().reduction != CrossEntropyAttributes::none;
}

}  // namespace

Status softmax_cross_entropy(const KernelContext& context) {
  const bool reduced = is_reduced(context);
  return for_scores_and_labels(context, 2, [&]<class T, class L>(const Rows<T, L>& in) {
    const RowMeanPlan plan(in.rows, in.classes);
    cudaStream_t stream = stream_of(context);
    T* out = context.outputs[0].as<T>();
    if (!reduced && in.rows == 0) return Status{};
    double* partial =
        plan.blocks == 1 || !reduced ? nullptr : static_cast<double*>(context.workspace);
    const unsigned blocks = reduced ? static_cast<unsigned>(plan.blocks)
                                    : blocks_for(in.rows, rows_of_block(plan.threads));
    const Status rows = launch(stream, loss_kernel<T, L>, blocks, kRowThreads, in,
                               reduced ? nullptr : out, out, partial, plan.threads);
    if (!rows.ok() || partial == nullptr) return rows;
    return launch(stream, finish_kernel<T, L>, 1u, kRowThreads, in, partial, plan.blocks, out);
  });
}

Status softmax_cross_entropy_backward(const KernelContext& context) {
  const bool reduced = is_reduced(context);
  return for_scores_and_labels(context, 3, [&]<class T, class L>(const Rows<T, L>& in) {
    if (in.rows * in.classes == 0) return Status{};
    const int threads = threads_of_row(in.classes);
    T* const out = context.outputs[0].as<T>();
    Rows<T, L> rows = in;
    rows.packed &= takes_packs<kPack<T>>(out);
    return launch(stream_of(context), loss_backward_kernel<T, L>,
                  blocks_for(in.rows, rows_of_block(threads)), kRowThreads, rows,
                  context.inputs[2].as<const T>(), !reduced, out, threads);
  });
}

Status label_weights(const KernelContext& context) {
  return for_scores_and_labels(context, 2, [&]<class T, class L>(const Rows<T, L>& in) {
    if constexpr (Rows<T, L>::kLabels) {
      if (in.rows == 0) return Status{};
      return launch(stream_of(context), label_weights_kernel<T, L>, blocks_for(in.rows), kThreads,
                    in, context.outputs[0].as<Accumulate<T>>());
    } else {
      return kNoKernel;
    }
  });
}

}  // namespace ebb::cuda
