#include <cmath>

#include "ebb/kernels/cuda/channel_sums.h"

namespace ebb::cuda {
namespace {

// x, or the square of its distance from the mean.
template <class T, bool kSquares>
struct Value {
  using A = Accumulate<T>;
  static constexpr int kSums = 1;
  const T* x;
  const A* mean;
  template <int N>
  bool takes_packs() const noexcept {
    return cuda::takes_packs<N>(x);
  }
  template <int N>
  __device__ Pack<A, N> operator()(std::int64_t at, std::int64_t i) const {
    Pack<A, N> terms = as_pack<A>(load<N>(x + at));
    if constexpr (kSquares)
      for (int j = 0; j < N; ++j) terms[j] = (terms[j] - mean[i]) * (terms[j] - mean[i]);
    return terms;
  }
};

template <class A>
struct WriteMean {
  A* mean;
  RunningValues<A> running;
  double terms;
  __device__ void operator()(std::int64_t c, const double (&totals)[1]) const {
    mean[c] = static_cast<A>(totals[0] / terms);
    running.enter(c, mean[c]);
  }
};
template <class A>
struct WriteVariance {
  A* inverse;
  RunningValues<A> running;
  double terms, epsilon;
  __device__ void operator()(std::int64_t c, const double (&totals)[1]) const {
    running.enter(c, static_cast<A>(totals[0] / (terms - 1)));
    inverse[c] = static_cast<A>(1 / std::sqrt(totals[0] / terms + epsilon));
  }
};
// Statistics and parameters by channel. If inverse is null, computes it from the variance.
template <class T>
struct Channels {
  using A = Accumulate<T>;
  const A *mean, *inverse, *variance;
  const T *scale, *shift;
  double epsilon;

  __device__ A inverse_of(std::int64_t c) const {
    if (inverse != nullptr) return inverse[c];
    return 1 / std::sqrt(variance[c] + static_cast<A>(epsilon));  // in double it would take longer
  }
};

__device__ inline std::int64_t channel(const NormView& view, std::int64_t at) {
  const std::int64_t before = quotient(at, view.inner);
  return before - quotient(before, view.channels) * view.channels;
}

template <class T>
__global__ void normalise_kernel(NormView view, std::int64_t count, const T* x, Channels<T> of,
                                 T* y) {
  using A = Accumulate<T>;
  for (std::int64_t i = grid_thread(); i < count; i += grid_threads()) {
    const std::int64_t c = channel(view, i);
    const A normal = (static_cast<A>(x[i]) - of.mean[c]) * of.inverse_of(c);
    y[i] = static_cast<T>(normal * static_cast<A>(of.scale[c]) + static_cast<A>(of.shift[c]));
  }
}

template <class T>
__global__ void batch_norm_backward_kernel(NormView view, std::int64_t count, const T* dy,
                                           const T* x, Channels<T> of, const Accumulate<T>* shares,
                                           T* dx) {
  using A = Accumulate<T>;
  for (std::int64_t i = grid_thread(); i < count; i += grid_threads()) {
    const std::int64_t c = channel(view, i);
    const A normal = (static_cast<A>(x[i]) - of.mean[c]) * of.inverse[c];
    const A g = (static_cast<A>(dy[i]) - shares[c]) - normal * shares[view.channels + c];
    dx[i] = static_cast<T>(g * (of.inverse[c] * static_cast<A>(of.scale[c])));
  }
}

template <class T>
Status normalise(const KernelContext& context, const NormView& view, const Channels<T>& of) {
  const std::int64_t count = context.outputs[0].elements();
  if (count == 0) return {};
  return launch(stream_of(context), normalise_kernel<T>, blocks_for(count), kThreads, view, count,
                context.inputs[0].as<const T>(), of, context.outputs[0].as<T>());
}

}  // namespace

Status batch_norm(const KernelContext& context) {
  const auto& attributes = context.attribute<NormAttributes>();
  const NormView view(context.inputs[0].spec.shape, attributes);
  cudaStream_t stream = stream_of(context);
  return for_floating(context.outputs[0].spec.dtype, [&]<class T>(T) {
    using A = Accumulate<T>;
    const NormWorkspace<A> workspace(context.workspace, view, 1, 2);
    const T* x = context.inputs[0].as<const T>();
    const auto output_or = [&](std::size_t i, A* instead) {
      return context.outputs[i].data != nullptr ? context.outputs[i].as<A>() : instead;
    };
    A* inverse = output_or(1, workspace.numbers);
    A* mean = output_or(2, workspace.numbers + view.channels);
    const auto terms = static_cast<double>(view.terms());
    const auto running = [&](std::size_t i) {
      return RunningValues<A>(context.inputs[i], context.outputs[i], attributes.momentum, terms);
    };
    EBB_TRY(sum_channels<T>(stream, view, workspace.partial, Value<T, false>{x, mean},
                            WriteMean<A>{mean, running(3), terms}));
    EBB_TRY(sum_channels<T>(stream, view, workspace.partial, Value<T, true>{x, mean},
                            WriteVariance<A>{inverse, running(4), terms, attributes.epsilon}));
    return normalise(context, view,
                     Channels<T>{mean, inverse, nullptr, context.inputs[1].as<const T>(),
                                 context.inputs[2].as<const T>(), 0});
  });
}

Status batch_norm_backward(const KernelContext& context) {
  const NormView view(context.inputs[1].spec.shape, context.attribute<NormAttributes>());
  cudaStream_t stream = stream_of(context);
  return for_floating(context.outputs[0].spec.dtype, [&]<class T>(T) {
    using A = Accumulate<T>;
    const NormWorkspace<A> workspace(context.workspace, view, 2, 2);
    const T *dy = context.inputs[0].as<const T>(), *x = context.inputs[1].as<const T>();
    const Channels<T> of{context.inputs[3].as<const A>(),
                         context.inputs[2].as<const A>(),
                         nullptr,
                         context.inputs[4].as<const T>(),
                         nullptr,
                         0};
    T *dx = context.outputs[0].as<T>(), *d_scale = context.outputs[1].as<T>(),
      *d_shift = context.outputs[2].as<T>();
    const GradientTerm<T> term{dy, x, of.mean, of.inverse, dx != nullptr || d_scale != nullptr};
    const WriteGradients<T> write{d_scale, d_shift, workspace.numbers, view.channels,
                                  static_cast<double>(view.terms())};
    EBB_TRY(sum_channels<T>(stream, view, workspace.partial, term, write));
    const std::int64_t count = context.inputs[1].elements();
    if (dx == nullptr || count == 0) return Status{};
    return launch(stream, batch_norm_backward_kernel<T>, blocks_for(count), kThreads, view, count,
                  dy, x, of, workspace.numbers, dx);
  });
}

Status batch_norm_inference(const KernelContext& context) {
  const auto& attributes = context.attribute<NormAttributes>();
  const NormView view(context.inputs[0].spec.shape, attributes);
  return for_floating(context.outputs[0].spec.dtype, [&]<class T>(T) {
    using A = Accumulate<T>;
    return normalise(context, view,
                     Channels<T>{context.inputs[1].as<const A>(), nullptr,
                                 context.inputs[2].as<const A>(), context.inputs[3].as<const T>(),
                                 context.inputs[4].as<const T>(), attributes.epsilon});
  });
}

}  // namespace ebb::cuda
