// ebb's own convolutions: of f64, of machines without cuDNN, and of what cuDNN refuses. A thread
// makes an element of y or dx, a group of threads an element of dw. Each product reads its factors
// again, so large convolutions take many times as long as a library's.
#include "ebb/core/kernels/conv.h"

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/fold.h"
#include "ebb/kernels/cuda/for_each.h"
#include "ebb/kernels/cuda/plans/conv_plan.h"
#include "ebb/kernels/cuda/prepared_plan.h"

namespace ebb::cuda {
namespace {

// The row (side 0) or column (side 1) of x that a tap reads at a position of y; -1 in the padding.
__device__ inline std::int64_t pixel_of(const ConvLayout& of, int side, std::int64_t position,
                                        std::int64_t tap) {
  const std::int64_t at = position * of.stride[side] - of.padding[side] + tap * of.dilation[side];
  return at >= 0 && at < (side == 0 ? of.height : of.width) ? at : -1;
}
// The position of y at which a tap reads that row or column of x; -1 if there is none.
__device__ inline std::int64_t position_of(const ConvLayout& of, int side, std::int64_t pixel,
                                           std::int64_t tap) {
  const std::int64_t distance = pixel + of.padding[side] - tap * of.dilation[side];
  const std::int64_t at = distance / of.stride[side], step = at * of.stride[side];
  const bool is_there = distance >= 0 && step == distance;
  return is_there && at < (side == 0 ? of.out_height : of.out_width) ? at : -1;
}

// Elements of y, summed over channels and taps; with kOfInput elements of dx, summed over filters
// and taps.
template <bool kOfInput, class T>
struct Convolution {
  using A = Accumulate<T>;
  ConvLayout of;
  Split<std::uint64_t, 5> results;  // image, group, channel or filter, row, column
  const T *in, *weights, *bias;
  T* out;

  template <int N>
  __device__ void at(std::int64_t n) const {
    const auto [image, group, plane, row, column] = results(n);
    const std::int64_t count = kOfInput ? of.filters : of.channels;  // planes to sum over
    const std::int64_t size = kOfInput ? of.places() : of.pixels();
    const std::int64_t width = kOfInput ? of.out_width : of.width;
    const std::int64_t step = kOfInput ? of.depth() : of.taps();  // from plane to plane of weights
    const T* const planes = in + (image * of.groups + group) * count * size;
    const T* const kernels =
        weights + group * of.filters * of.depth() + plane * (kOfInput ? of.taps() : of.depth());
    A sum = 0;
    for (std::int64_t i = 0; i < of.kernel_height; ++i)
      for (std::int64_t j = 0; j < of.kernel_width; ++j) {
        const std::int64_t y = kOfInput ? position_of(of, 0, row, i) : pixel_of(of, 0, row, i);
        const std::int64_t x =
            kOfInput ? position_of(of, 1, column, j) : pixel_of(of, 1, column, j);
        if (y < 0 || x < 0) continue;
        const T* from = planes + y * width + x;
        const T* weight = kernels + i * of.kernel_width + j;
// Unrolled as the compiler would, it spills on compute capability 10.0.
#pragma unroll 2
        for (std::int64_t k = 0; k < count; ++k, from += size, weight += step)
          sum += static_cast<A>(*from) * static_cast<A>(*weight);
      }
    const std::int64_t planes_of_group = kOfInput ? of.channels : of.filters;
    if (bias != nullptr) sum += static_cast<A>(bias[group * planes_of_group + plane]);
    out[n] = static_cast<T>(sum);
  }
};

// Elements of dw, summed over the positions of all images, in an order fixed by the shape.
template <class T>
struct WeightGradient {
  using A = Accumulate<T>;
  using State = double;
  ConvLayout of;
  Split<std::uint64_t, 5> weights;    // group, filter, channel, row, column
  Split<std::uint64_t, 3> positions;  // image, row, column
  const T *x, *dy;
  T* dw;

  __device__ double none() const { return 0; }
  __device__ double gather(std::int64_t result, std::int64_t begin, std::int64_t end, int lane,
                           int lanes) const {
    const auto tap = weights(result);
    const std::int64_t filter = tap[0] * of.filters + tap[1];
    const std::int64_t channel = tap[0] * of.channels + tap[2];
    return strided_sums<4, 1>(begin + lane, end, lanes, [&](std::int64_t i) {
      const auto at = positions(i);
      const std::int64_t row = pixel_of(of, 0, at[1], tap[3]);
      const std::int64_t column = pixel_of(of, 1, at[2], tap[4]);
      Pack<A, 1> term = {};
      if (row < 0 || column < 0) return term;
      const T* const pixels = x + (at[0] * of.groups * of.channels + channel) * of.pixels();
      const T* const slopes = dy + (at[0] * of.groups * of.filters + filter) * of.places();
      term[0] = static_cast<A>(pixels[row * of.width + column]) *
                static_cast<A>(slopes[at[1] * of.out_width + at[2]]);
      return term;
    })[0];
  }
  __device__ void merge(double& total, double other) const { total += other; }
  __device__ void write(std::int64_t result, double total) const { dw[result] = convert<T>(total); }
};

template <bool kOfInput>
Status convolve(const KernelContext& context) noexcept {
  const Buffer &in = context.inputs[0], &weights = context.inputs[1], &out = context.outputs[0];
  Status status;
  if (out.elements() == 0 || is_done(context, status)) return status;
  const ConvLayout of =
      conv_layout(kOfInput ? ConvPass::input_gradient : ConvPass::forward, context);
  const Shape& shape = out.spec.shape;
  const Split<std::uint64_t, 5> results(
      {of.groups, kOfInput ? of.channels : of.filters, shape.dim(2), shape.dim(3)});
  const bool has_bias = context.attribute<ConvAttributes>().bias != 0;
  return for_floating(out.spec.dtype, [&]<class T>(T) {
    const T* const bias = has_bias ? context.inputs[2].as<const T>() : nullptr;
    const Convolution<kOfInput, T> body{of,   results,    in.as<const T>(), weights.as<const T>(),
                                        bias, out.as<T>()};
    return for_each<1>(stream_of(context), body, out.elements(), false);
  });
}

}  // namespace

detail::Ref<Prepared> conv2d_prepare(const MemoryQuery& query) {
  return prepare_conv(ConvPass::forward, query);
}
detail::Ref<Prepared> conv_transpose2d_prepare(const MemoryQuery& query) {
  return prepare_conv(ConvPass::input_gradient, query);
}
detail::Ref<Prepared> conv2d_weight_gradient_prepare(const MemoryQuery& query) {
  return prepare_conv(ConvPass::weight_gradient, query);
}

Status conv2d(const KernelContext& context) { return convolve<false>(context); }
Status conv_transpose2d(const KernelContext& context) { return convolve<true>(context); }

Status conv2d_weight_gradient(const KernelContext& context) {
  const Buffer &x = context.inputs[0], &dy = context.inputs[1], &dw = context.outputs[0];
  Status status;
  if (dw.elements() == 0 || is_done(context, status)) return status;
  const ConvLayout of = conv_layout(ConvPass::weight_gradient, context);
  const Split<std::uint64_t, 5> weights(
      {of.filters, of.channels, of.kernel_height, of.kernel_width});
  const Split<std::uint64_t, 3> positions({of.out_height, of.out_width});
  const std::int64_t terms = of.images * of.places();
  const SumPlan plan{.results = dw.elements(),
                     .terms = terms,
                     .width = rows_of_block(threads_of_row(terms)),
                     .by_rows = true,
                     .part = terms};
  return for_floating(dw.spec.dtype, [&]<class T>(T) {
    const WeightGradient<T> body{of,        weights, positions, x.as<const T>(), dy.as<const T>(),
                                 dw.as<T>()};
    return launch_fold(stream_of(context), body, plan, nullptr);
  });
}

}  // namespace ebb::cuda
