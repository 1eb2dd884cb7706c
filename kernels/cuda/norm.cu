#include "ebb/core/kernels/norm.h"

#include <cmath>

#include "ebb/kernels/cuda/channel_sums.h"
#include "ebb/kernels/cuda/group.h"

namespace ebb::cuda {
namespace {

// Inputs of both directions. A group of threads takes a row of `terms` neighbours.
template <class T>
struct Rows {
  using A = Accumulate<T>;
  NormView view;
  std::int64_t rows, terms;
  const T *x, *scale, *shift;  // null scale counts as 1, null shift as 0
  bool has_mean;

  // The channel of element j of a row.
  __device__ std::int64_t channel(std::int64_t row, std::int64_t j) const {
    return row % view.groups * (view.channels / view.groups) + quotient(j, view.inner);
  }
  __device__ A scale_of(std::int64_t c) const {
    return scale == nullptr ? A(1) : static_cast<A>(scale[c]);
  }
};

template <class T>
__global__ void norm_kernel(Rows<T> in, double epsilon, T* y, Accumulate<T>* inverses,
                            Accumulate<T>* means, int threads) {
  using A = Accumulate<T>;
  __shared__ double scratch[kWarp];
  const Group group(threads, scratch);
  for_rows(group, in.rows, [&](std::int64_t row, bool there) {
    const T* x = in.x + row * in.terms;
    const std::int64_t count = there ? in.terms : 0;
    const auto terms = static_cast<double>(in.terms);
    A mean = 0;
    if (in.has_mean)
      mean = static_cast<A>(group.sum(count, [&](std::int64_t j) { return static_cast<A>(x[j]); }) /
                            terms);
    const double squares = group.sum(count, [&](std::int64_t j) {
      const A d = static_cast<A>(x[j]) - mean;
      return d * d;
    });
    const A inverse = static_cast<A>(1 / std::sqrt(squares / terms + epsilon));
    if (there && group.thread() == 0) {
      if (inverses != nullptr) inverses[row] = inverse;
      if (means != nullptr) means[row] = mean;
    }
    for (std::int64_t j = group.thread(); j < count; j += group.threads()) {
      const std::int64_t c = in.channel(row, j);
      const A normal = (static_cast<A>(x[j]) - mean) * inverse;
      y[row * in.terms + j] = static_cast<T>(
          normal * in.scale_of(c) + (in.shift == nullptr ? A(0) : static_cast<A>(in.shift[c])));
    }
  });
}

template <class T>
__global__ void norm_backward_kernel(Rows<T> in, const T* dy, const Accumulate<T>* inverses,
                                     const Accumulate<T>* means, T* dx, int threads) {
  using A = Accumulate<T>;
  __shared__ double scratch[kWarp];
  const Group group(threads, scratch);
  for_rows(group, in.rows, [&](std::int64_t row, bool there) {
    const std::int64_t first = row * in.terms, count = there ? in.terms : 0;
    const A mean = in.has_mean ? means[row] : A(0), inverse = inverses[row];
    const auto gradient = [&](std::int64_t j) {
      return static_cast<A>(dy[first + j]) * in.scale_of(in.channel(row, j));
    };
    const auto normal = [&](std::int64_t j) {
      return (static_cast<A>(in.x[first + j]) - mean) * inverse;
    };
    const auto terms = static_cast<double>(in.terms);
    A of_mean = 0;
    if (in.has_mean) of_mean = static_cast<A>(group.sum(count, gradient) / terms);
    const A of_size = static_cast<A>(
        group.sum(count, [&](std::int64_t j) { return gradient(j) * normal(j); }) / terms);
    for (std::int64_t j = group.thread(); j < count; j += group.threads())
      dx[first + j] = static_cast<T>(((gradient(j) - of_mean) - normal(j) * of_size) * inverse);
  });
}

template <class T>
struct WriteGradients {
  T *d_scale, *d_shift;
  __device__ void operator()(std::int64_t c, const double (&totals)[2]) const {
    if (d_shift != nullptr) d_shift[c] = convert<T>(totals[0]);
    if (d_scale != nullptr) d_scale[c] = convert<T>(totals[1]);
  }
};

}  // namespace

Status norm(const KernelContext& context) {
  const auto& attributes = context.attribute<NormAttributes>();
  const NormView view(context.inputs[0].spec.shape, attributes);
  const std::int64_t rows = view.statistics();
  if (rows == 0) return {};
  return for_floating(context.outputs[0].spec.dtype, [&]<class T>(T) {
    using A = Accumulate<T>;
    const Rows<T> in{view,
                     rows,
                     view.terms(),
                     context.inputs[0].as<const T>(),
                     attributes.has_scale ? context.inputs[1].as<const T>() : nullptr,
                     attributes.has_shift ? context.inputs[2].as<const T>() : nullptr,
                     attributes.has_mean()};
    const int threads = threads_of_row(in.terms);
    return launch(stream_of(context), norm_kernel<T>, blocks_for(rows, rows_of_block(threads)),
                  kRowThreads, in, attributes.epsilon, context.outputs[0].as<T>(),
                  context.outputs[1].as<A>(), in.has_mean ? context.outputs[2].as<A>() : nullptr,
                  threads);
  });
}

Status norm_backward(const KernelContext& context) {
  const auto& attributes = context.attribute<NormAttributes>();
  const NormView view(context.inputs[1].spec.shape, attributes);
  cudaStream_t stream = stream_of(context);
  return for_floating(context.outputs[0].spec.dtype, [&]<class T>(T) {
    using A = Accumulate<T>;
    const T* dy = context.inputs[0].as<const T>();
    const A* inverses = context.inputs[2].as<const A>();
    const A* means = attributes.has_mean() ? context.inputs[3].as<const A>() : nullptr;
    const Rows<T> in{view,
                     view.statistics(),
                     view.terms(),
                     context.inputs[1].as<const T>(),
                     attributes.has_scale ? context.inputs[4].as<const T>() : nullptr,
                     nullptr,
                     attributes.has_mean()};
    T *dx = context.outputs[0].as<T>(), *d_scale = context.outputs[1].as<T>(),
      *d_shift = context.outputs[2].as<T>();
    if (d_scale != nullptr || d_shift != nullptr) {  // first: dx may overwrite their inputs
      const NormWorkspace<A> workspace(context.workspace, view, 2, 0);
      const GradientTerm<T> term{
          dy, in.x, means, inverses, view.groups, view.per_group(), d_scale != nullptr};
      const Status sums =
          sum_channels(stream, view, workspace.partial, term, WriteGradients<T>{d_scale, d_shift});
      if (!sums.ok()) return sums;
    }
    if (dx == nullptr || in.rows == 0) return Status{};
    const int threads = threads_of_row(in.terms);
    return launch(stream, norm_backward_kernel<T>, blocks_for(in.rows, rows_of_block(threads)),
                  kRowThreads, in, dy, inverses, means, dx, threads);
  });
}

}  // namespace ebb::cuda
