#include "ebb/core/kernels/conv.h"

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/for_each.h"
#include "ebb/kernels/cuda/plans/conv_plan.h"
#include "ebb/kernels/cuda/prepared_plan.h"
#include "ebb/kernels/cuda/tile_product.h"

// All three are matrix products. One factor is pixels, read through the geometry of the convolution
// as the tiles are loaded ("implicit gemm").
namespace ebb::cuda {
namespace {

// A plane and a pixel of it, or a tap's offset.
struct Spot {
  std::int64_t plane, y, x;
};

// The geometry for the device.
struct Geometry {
  ConvLayout of;
  std::int64_t positions, pixels, taps;  // of a plane of y, of x, and of a kernel
  AnyDivider by_groups, by_positions, by_out_width, by_pixels, by_width, by_taps, by_kernel_width,
      by_stride_y, by_stride_x;

  explicit Geometry(const ConvLayout& layout) noexcept
      : of(layout),
        positions(of.places()),
        pixels(of.pixels()),
        taps(of.taps()),
        by_groups(of.groups),
        by_positions(positions),
        by_out_width(of.out_width),
        by_pixels(pixels),
        by_width(of.width),
        by_taps(taps),
        by_kernel_width(of.kernel_width),
        by_stride_y(of.stride[0]),
        by_stride_x(of.stride[1]) {}

  // Group of a product: products are ordered group by group, again for each segment.
  __device__ std::int64_t group(std::int64_t product) const {
    by_groups.divide(product);
    return product;
  }
  // Output position n, counted over all images: its image, and the pixel that tap 0 reads.
  __device__ Spot position(std::int64_t n) const {
    const std::int64_t image = by_positions.divide(n), y = by_out_width.divide(n);
    return {image, y * of.stride[0] - of.padding[0], n * of.stride[1] - of.padding[1]};
  }
  // Tap n, counted over all channels or filters: its channel or filter, and its offset from the
  // pixel of tap 0.
  __device__ Spot tap(std::int64_t n) const {
    const std::int64_t plane = by_taps.divide(n), y = by_kernel_width.divide(n);
    return {plane, y * of.dilation[0], n * of.dilation[1]};
  }
  // The pixel that a tap reads at an output position; 0 in the padding.
  template <class T>
  __device__ Accumulate<T> pixel(const T* x, std::int64_t group, const Spot& position,
                                 const Spot& tap) const {
    const std::int64_t y = position.y + tap.y, column = position.x + tap.x;
    if (y < 0 || y >= of.height || column < 0 || column >= of.width) return 0;
    const std::int64_t plane = (position.plane * of.groups + group) * of.channels + tap.plane;
    return static_cast<Accumulate<T>>(x[plane * pixels + y * of.width + column]);
  }
};

// y [filters, positions of all images] = weights [filters, depth] pixels [depth, positions].
template <class T>
struct Forward {
  using A = Accumulate<T>;
  static constexpr bool kADepthIsRow = true, kBDepthIsRow = false;
  static constexpr int kUnroll = 1;
  Geometry geometry;
  const T *x, *weights, *bias;
  T* y;
  std::int64_t m, n, k, batch;

  __device__ std::int64_t begin(std::int64_t) const { return 0; }
  __device__ std::int64_t end(std::int64_t) const { return k; }
  __device__ A a(std::int64_t group, std::int64_t row, std::int64_t at) const {
    return static_cast<A>(weights[(group * m + row) * k + at]);
  }
  __device__ Spot fixed(std::int64_t column) const { return geometry.position(column); }
  __device__ A b(std::int64_t group, const Spot& position, std::int64_t at) const {
    return geometry.pixel(x, group, position, geometry.tap(at));
  }
  __device__ void put(std::int64_t group, std::int64_t row, std::int64_t column, A sum) const {
    const std::int64_t filter = group * m + row;
    if (bias != nullptr) sum += static_cast<A>(bias[filter]);
    const std::int64_t image = geometry.by_positions.divide(column);
    y[(image * geometry.of.groups * m + filter) * geometry.positions + column] =
        static_cast<T>(sum);
  }
};

// dx [channels, pixels of all images] = weights^T [channels, filters x taps] dy. For a pixel and a
// tap it reads dy at the output position whose tap reads that pixel, if there is one.
template <class T>
struct InputGradient {
  using A = Accumulate<T>;
  static constexpr bool kADepthIsRow = true, kBDepthIsRow = false;
  static constexpr int kUnroll = 1;
  Geometry geometry;
  const T *dy, *weights, *bias;
  T* dx;
  std::int64_t m, n, k, batch;

  __device__ std::int64_t begin(std::int64_t) const { return 0; }
  __device__ std::int64_t end(std::int64_t) const { return k; }
  __device__ A a(std::int64_t group, std::int64_t row, std::int64_t at) const {
    const std::int64_t filter = geometry.by_taps.divide(at);
    return static_cast<A>(
        weights[((group * geometry.of.filters + filter) * m + row) * geometry.taps + at]);
  }
  __device__ Spot fixed(std::int64_t column) const {
    const std::int64_t image = geometry.by_pixels.divide(column),
                       y = geometry.by_width.divide(column);
    return {image, y + geometry.of.padding[0], column + geometry.of.padding[1]};
  }
  __device__ A b(std::int64_t group, const Spot& pixel, std::int64_t at) const {
    const Spot tap = geometry.tap(at);
    std::int64_t y = pixel.y - tap.y, x = pixel.x - tap.x;
    if (y < 0 || x < 0) return 0;
    const std::int64_t row = geometry.by_stride_y.divide(y),
                       column = geometry.by_stride_x.divide(x);
    if (y != 0 || x != 0 || row >= geometry.of.out_height || column >= geometry.of.out_width)
      return 0;
    const std::int64_t plane =
        (pixel.plane * geometry.of.groups + group) * geometry.of.filters + tap.plane;
    return static_cast<A>(dy[plane * geometry.positions + row * geometry.of.out_width + column]);
  }
  __device__ void put(std::int64_t group, std::int64_t row, std::int64_t column, A sum) const {
    const std::int64_t image = geometry.by_pixels.divide(column), channel = group * m + row;
    if (bias != nullptr) sum += static_cast<A>(bias[channel]);
    dx[(image * geometry.of.groups * m + channel) * geometry.pixels + column] = static_cast<T>(sum);
  }
};

// dw [filters, depth] = dy [filters, positions of all images] pixels^T [positions, depth], for each
// group and segment of the positions.
template <class T>
struct WeightGradient {
  using A = Accumulate<T>;
  static constexpr bool kADepthIsRow = true, kBDepthIsRow = true;
  static constexpr int kUnroll = 1;
  Geometry geometry;
  const T *x, *dy;
  T* dw;
  A* parts;  // null: there is one segment
  std::int64_t m, n, k, batch, length;

  __device__ std::int64_t begin(std::int64_t product) const {
    return geometry.by_groups.divide(product) * length;
  }
  __device__ std::int64_t end(std::int64_t product) const {
    const std::int64_t end = begin(product) + length;
    return end < k ? end : k;
  }
  __device__ A a(std::int64_t product, std::int64_t row, std::int64_t at) const {
    const std::int64_t image = geometry.by_positions.divide(at);
    const std::int64_t plane = (image * geometry.of.groups + geometry.group(product)) * m + row;
    return static_cast<A>(dy[plane * geometry.positions + at]);
  }
  __device__ Spot fixed(std::int64_t at) const { return geometry.position(at); }
  __device__ A b(std::int64_t product, const Spot& position, std::int64_t column) const {
    return geometry.pixel(x, geometry.group(product), position, geometry.tap(column));
  }
  __device__ void put(std::int64_t product, std::int64_t row, std::int64_t column, A sum) const {
    // Products run segment by segment: product * m is the first filter of one group in one segment.
    const std::int64_t at = (product * m + row) * n + column;
    if (parts == nullptr) {
      dw[at] = static_cast<T>(sum);
    } else {
      parts[at] = sum;
    }
  }
};

template <class T>
struct AddParts {
  const Accumulate<T>* parts;
  T* out;
  std::int64_t count, segments;

  template <int N>
  __device__ void at(std::int64_t i) const {
    Accumulate<T> sum = 0;
    for (std::int64_t segment = 0; segment < segments; ++segment) sum += parts[segment * count + i];
    out[i] = static_cast<T>(sum);
  }
};

}  // namespace

detail::Ref<Prepared> conv2d_prepare(const MemoryQuery& query) {
  return prepare_conv(ConvPass::forward, query);
}
detail::Ref<Prepared> conv2d_input_gradient_prepare(const MemoryQuery& query) {
  return prepare_conv(ConvPass::input_gradient, query);
}
detail::Ref<Prepared> conv_transpose2d_prepare(const MemoryQuery& query) {
  return prepare_conv(ConvPass::input_gradient, query);
}
detail::Ref<Prepared> conv2d_weight_gradient_prepare(const MemoryQuery& query) {
  return prepare_conv(ConvPass::weight_gradient, query);
}

Status conv2d(const KernelContext& context) {
  const Buffer &x = context.inputs[0], &weights = context.inputs[1], &y = context.outputs[0];
  Status status;
  if (y.elements() == 0 || is_done(context, status)) return status;
  const ConvLayout of = conv_layout(ConvPass::forward, context);
  const bool has_bias = context.attribute<ConvAttributes>().bias != 0;
  return for_floating(y.spec.dtype, [&]<class T>(T) {
    return multiply_tiles(
        stream_of(context),
        Forward<T>{Geometry(of), x.as<const T>(), weights.as<const T>(),
                   has_bias ? context.inputs[2].as<const T>() : nullptr, y.as<T>(), of.filters,
                   of.images * of.places(), of.depth(), of.groups});
  });
}

// A transposed convolution without bias; its result has the shape of x.
Status conv2d_input_gradient(const KernelContext& context) { return conv_transpose2d(context); }

Status conv_transpose2d(const KernelContext& context) {
  const Buffer &dy = context.inputs[0], &weights = context.inputs[1], &dx = context.outputs[0];
  Status status;
  if (dx.elements() == 0 || is_done(context, status)) return status;
  const auto& attributes = context.attribute<ConvAttributes>();
  const ConvLayout of = conv_layout(ConvPass::input_gradient, context);
  return for_floating(dx.spec.dtype, [&]<class T>(T) {
    return multiply_tiles(
        stream_of(context),
        InputGradient<T>{Geometry(of), dy.as<const T>(), weights.as<const T>(),
                         attributes.bias != 0 ? context.inputs[2].as<const T>() : nullptr,
                         dx.as<T>(), of.channels, of.images * of.pixels(), of.filters * of.taps(),
                         of.groups});
  });
}

Status conv2d_weight_gradient(const KernelContext& context) {
  const Buffer &x = context.inputs[0], &dy = context.inputs[1], &dw = context.outputs[0];
  const std::int64_t count = dw.elements();
  Status status;
  if (count == 0 || is_done(context, status)) return status;
  const ConvLayout of = conv_layout(ConvPass::weight_gradient, context);
  const ConvSegments segments(of);
  return for_floating(dw.spec.dtype, [&]<class T>(T) {
    auto* const parts =
        segments.count == 1 ? nullptr : static_cast<Accumulate<T>*>(context.workspace);
    const Status status = multiply_tiles(
        stream_of(context),
        WeightGradient<T>{Geometry(of), x.as<const T>(), dy.as<const T>(), dw.as<T>(), parts,
                          of.filters, of.depth(), of.images * of.places(),
                          of.groups * segments.count, segments.length});
    if (!status.ok() || parts == nullptr) return status;
    return for_each<1>(stream_of(context), AddParts<T>{parts, dw.as<T>(), count, segments.count},
                       count, false);
  });
}

}  // namespace ebb::cuda
