#include "ebb/core/kernels/loss.h"

#include <cmath>
#include <limits>

#include "ebb/core/kernels/convert.h"
#include "ebb/kernels/cuda/column_sum.h"
#include "ebb/kernels/cuda/softmax_row.h"

namespace ebb::cuda {
namespace {

// Scores [rows, classes] and the class of each row.
template <class T, class L>
struct Labelled {
  const T* scores;
  const L* labels;
  std::int64_t rows, classes;

  __device__ bool knows(std::int64_t label) const { return label >= 0 && label < classes; }
};

// The mean of the rows' losses with one block, else the sum of each block's into `partial`.
template <class Group, class T, class L>
__global__ void loss_kernel(Labelled<T, L> in, T* out, double* partial, int threads) {
  __shared__ double scratch[kWarp];
  const Group group(threads, scratch);
  double total = 0;
  for_rows(group, in.rows, [&](std::int64_t row, bool there) {
    const T* scores = in.scores + row * in.classes;
    const std::int64_t count = there ? in.classes : 0;
    const Accumulate<T> shift = largest_score(group, scores, count);
    const double sum = sum_of_exponentials<false>(group, scores, count, shift);
    if (!there || group.thread() != 0) return;
    const auto label = static_cast<std::int64_t>(in.labels[row]);
    total += in.knows(label)
                 ? std::log(sum) + (static_cast<double>(shift) - convert<double>(scores[label]))
                 : std::numeric_limits<double>::quiet_NaN();
  });
  total = BlockGroup(0, scratch).sum(total);
  if (threadIdx.x != 0) return;
  if (partial != nullptr) {
    partial[blockIdx.x] = total;
  } else {
    *out = convert<T>(total / static_cast<double>(in.rows));
  }
}

template <class Group, class T, class L>
__global__ void loss_backward_kernel(Labelled<T, L> in, const T* dy, T* out, int threads) {
  using A = Accumulate<T>;
  __shared__ double scratch[kWarp];
  const Group group(threads, scratch);
  const A scale = static_cast<A>(*dy) / static_cast<A>(in.rows);
  for_rows(group, in.rows, [&](std::int64_t row, bool there) {
    const T* scores = in.scores + row * in.classes;
    const std::int64_t count = there ? in.classes : 0;
    const A shift = largest_score(group, scores, count);
    const double sum = sum_of_exponentials<true>(group, scores, count, shift);
    if (!there) return;
    const auto label = static_cast<std::int64_t>(in.labels[row]);
    const A factor = in.knows(label) ? static_cast<A>(static_cast<double>(scale) / sum)
                                     : std::numeric_limits<A>::quiet_NaN();
    for (std::int64_t j = group.thread(); j < count; j += group.threads()) {
      const A y = exp_of_difference(static_cast<A>(scores[j]), shift) * factor;
      out[row * in.classes + j] = static_cast<T>(j == label ? y - scale : y);
    }
  });
}

// Calls f(Labelled, number of threads of a row).
template <class F>
Status for_scores_and_labels(const KernelContext& context, const F& f) noexcept {
  const Buffer &scores = context.inputs[0], &labels = context.inputs[1];
  const Shape& shape = scores.spec.shape;
  return for_floating(scores.spec.dtype, [&](auto type) {
    using T = decltype(type);
    const auto with = [&](auto label) {
      using L = decltype(label);
      return f(
          Labelled<T, L>{scores.as<const T>(), labels.as<const L>(), shape.dim(0), shape.dim(1)});
    };
    switch (labels.spec.dtype) {
      case DType::i32:
        return with(std::int32_t{});
      case DType::i64:
        return with(std::int64_t{});
      default:
        return Status::refuse("has no kernel for labels of this dtype");
    }
  });
}

}  // namespace

Status softmax_cross_entropy(const KernelContext& context) {
  return for_scores_and_labels(context, [&]<class T, class L>(const Labelled<T, L>& in) {
    const RowMeanPlan plan(in.rows, in.classes);
    cudaStream_t stream = stream_of(context);
    T* out = context.outputs[0].as<T>();
    double* partial = plan.blocks == 1 ? nullptr : static_cast<double*>(context.workspace);
    const auto kernel =
        plan.threads == 0 ? loss_kernel<BlockGroup, T, L> : loss_kernel<LaneGroup, T, L>;
    const Status rows = launch(stream, kernel, static_cast<unsigned>(plan.blocks), kRowThreads, in,
                               out, partial, plan.threads);
    if (!rows.ok() || partial == nullptr) return rows;
    return add_parts(stream, partial, out, plan.blocks, 1, static_cast<double>(in.rows));
  });
}

Status softmax_cross_entropy_backward(const KernelContext& context) {
  return for_scores_and_labels(context, [&]<class T, class L>(const Labelled<T, L>& in) {
    if (in.rows * in.classes == 0) return Status{};
    const int threads = threads_of_row(in.classes);
    const auto kernel = threads == 0 ? loss_backward_kernel<BlockGroup, T, L>
                                     : loss_backward_kernel<LaneGroup, T, L>;
    return launch(stream_of(context), kernel, blocks_for(in.rows, rows_of_block(threads)),
                  kRowThreads, in, context.inputs[2].as<const T>(), context.outputs[0].as<T>(),
                  threads);
  });
}

}  // namespace ebb::cuda
