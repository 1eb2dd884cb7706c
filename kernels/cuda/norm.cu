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
  bool packed = false;  // packs of neighbours are read and written

  // Elements j to j + N - 1 of a row.
  template <int N>
  __device__ Pack<A, N> read(const T* from, std::int64_t row, std::int64_t j) const {
    return as_pack<A>(load<N>(from + row * terms + j));
  }
  // The parameter of their channels.
  template <int N>
  __device__ Pack<A, N> of_channels(const T* parameter, A otherwise, std::int64_t row,
                                    std::int64_t j) const {
    if (parameter == nullptr) return splat<N>(otherwise);
    parameter += row % view.groups * (view.channels / view.groups);
    if (view.inner == 1) return as_pack<A>(load<N>(parameter + j));
    Pack<A, N> pack;
    for (int k = 0; k < N; ++k)
      pack[k] = k == 0 || view.inner % N != 0
                    ? static_cast<A>(parameter[quotient(j + k, view.inner)])
                    : pack[0];
    return pack;
  }
};

template <class T>
__global__ void norm_kernel(Rows<T> in, double epsilon, T* y, Accumulate<T>* inverses,
                            Accumulate<T>* means, int threads) {
  using A = Accumulate<T>;
  __shared__ double scratch[kWarp];
  const Group group(threads, scratch);
  for_rows(group, in.rows, [&](std::int64_t row, bool there) {
    constexpr int kMost = kPack<T>;
    const auto x = [&]<int N>(std::int64_t j) { return in.template read<N>(in.x, row, j); };
    const std::int64_t count = there ? in.terms : 0;
    const auto terms = static_cast<double>(in.terms);
    A mean = 0;
    if (in.has_mean) mean = static_cast<A>(group.sum<kMost>(count, in.packed, x) / terms);
    const double squares = group.sum<kMost>(count, in.packed, [&]<int N>(std::int64_t j) {
      Pack<A, N> d = x.template operator()<N>(j);
      for (int k = 0; k < N; ++k) d[k] = (d[k] - mean) * (d[k] - mean);
      return d;
    });
    const A inverse = static_cast<A>(1 / std::sqrt(squares / terms + epsilon));
    if (there && group.thread() == 0) {
      if (inverses != nullptr) inverses[row] = inverse;
      if (means != nullptr) means[row] = mean;
    }
    group.each<kMost>(count, in.packed, [&]<int N>(std::int64_t j) {
      const Pack<A, N> from = x.template operator()<N>(j);
      const Pack<A, N> scale = in.template of_channels<N>(in.scale, 1, row, j);
      const Pack<A, N> shift = in.template of_channels<N>(in.shift, 0, row, j);
      Pack<T, N> to;
      for (int k = 0; k < N; ++k)
        to[k] = static_cast<T>((from[k] - mean) * inverse * scale[k] + shift[k]);
      store(y + row * in.terms + j, to);
    });
  });
}

template <class T>
__global__ void norm_backward_kernel(Rows<T> in, const T* dy, const Accumulate<T>* inverses,
                                     const Accumulate<T>* means, T* dx, int threads) {
  using A = Accumulate<T>;
  __shared__ double scratch[kWarp];
  const Group group(threads, scratch);
  for_rows(group, in.rows, [&](std::int64_t row, bool there) {
    constexpr int kMost = kPack<T>;
    const std::int64_t count = there ? in.terms : 0;
    const A mean = in.has_mean ? means[row] : A(0), inverse = inverses[row];
    const auto gradient = [&]<int N>(std::int64_t j) {
      Pack<A, N> g = in.template read<N>(dy, row, j);
      const Pack<A, N> scale = in.template of_channels<N>(in.scale, 1, row, j);
      for (int k = 0; k < N; ++k) g[k] *= scale[k];
      return g;
    };
    const auto normal = [&]<int N>(std::int64_t j) {
      Pack<A, N> x = in.template read<N>(in.x, row, j);
      for (int k = 0; k < N; ++k) x[k] = (x[k] - mean) * inverse;
      return x;
    };
    const auto terms = static_cast<double>(in.terms);
    A of_mean = 0;
    if (in.has_mean) of_mean = static_cast<A>(group.sum<kMost>(count, in.packed, gradient) / terms);
    const auto product = [&]<int N>(std::int64_t j) {
      Pack<A, N> g = gradient.template operator()<N>(j);
      const Pack<A, N> x = normal.template operator()<N>(j);
      for (int k = 0; k < N; ++k) g[k] *= x[k];
      return g;
    };
    const A of_size = static_cast<A>(group.sum<kMost>(count, in.packed, product) / terms);
    group.each<kMost>(count, in.packed, [&]<int N>(std::int64_t j) {
      const Pack<A, N> g = gradient.template operator()<N>(j);
      const Pack<A, N> x = normal.template operator()<N>(j);
      Pack<T, N> to;
      for (int k = 0; k < N; ++k)
        to[k] = static_cast<T>(((g[k] - of_mean) - x[k] * of_size) * inverse);
      store(dx + row * in.terms + j, to);
    });
  });
}

}  // namespace

Status norm(const KernelContext& context) {
  const auto& attributes = context.attribute<NormAttributes>();
  const NormView view(context.inputs[0].spec.shape, attributes);
  const std::int64_t rows = view.statistics();
  if (rows == 0) return {};
  return for_floating(context.outputs[0].spec.dtype, [&]<class T>(T) {
    using A = Accumulate<T>;
    T* const y = context.outputs[0].as<T>();
    Rows<T> in{view,
               rows,
               view.terms(),
               context.inputs[0].as<const T>(),
               attributes.has_scale ? context.inputs[1].as<const T>() : nullptr,
               attributes.has_shift ? context.inputs[2].as<const T>() : nullptr,
               attributes.has_mean()};
    in.packed = rows_take_packs<kPack<T>>(in.terms, in.x, y, in.scale, in.shift);
    const int threads = threads_of_row(in.terms);
    return launch(stream_of(context), norm_kernel<T>, blocks_for(rows, rows_of_block(threads)),
                  kRowThreads, in, attributes.epsilon, y, context.outputs[1].as<A>(),
                  in.has_mean ? context.outputs[2].as<A>() : nullptr, threads);
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
    Rows<T> in{view,
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
      const GradientTerm<T> term{dy, in.x, means, inverses, d_scale != nullptr};
      EBB_TRY(sum_channels<T>(stream, view, workspace.partial, term,
                              WriteGradients<T>{d_scale, d_shift}));
    }
    if (dx == nullptr || in.rows == 0) return Status{};
    in.packed = rows_take_packs<kPack<T>>(in.terms, in.x, dy, dx, in.scale);
    const int threads = threads_of_row(in.terms);
    return launch(stream, norm_backward_kernel<T>, blocks_for(in.rows, rows_of_block(threads)),
                  kRowThreads, in, dy, inverses, means, dx, threads);
  });
}

}  // namespace ebb::cuda
