#include "ebb/core/kernels/conv.h"

#include <algorithm>

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/kernels/cpu/conv_library.h"
#include "ebb/kernels/cpu/gemm.h"
#include "ebb/kernels/cpu/pieces.h"

namespace ebb::cpu {
namespace {

// Threads take slots; workspace has a tile for each.
constexpr std::int64_t kSlots = 16, kTileElements = 64 * 1024, kManyPositions = 256;
// The number of pieces that a cut aims at, and what positions and channels come in multiples of:
// kernels for AVX-512 lose a third where the columns are no multiple of a vector.
constexpr std::int64_t kPieces = 8, kVector = 16;

// The cut of the work, by its shape alone. A tile has the rows of some channels (one per tap) and a
// column for each of some output positions.
struct ConvCut {
  std::int64_t channels, blocks;  // channels of a tile, such blocks in a group
  std::int64_t positions, tiles;  // positions of a tile, tiles in a plane
  std::int64_t segments = 1;      // parts of the images, summed separately
  std::int64_t pieces = 0;

  // A tile has `most` channels or fewer, so that there is room for many positions: else a product
  // is about packing the weights.
  ConvCut(const ConvLayout& of, std::int64_t most) noexcept {
    const std::int64_t all = std::max<std::int64_t>(1, of.channels);
    const std::int64_t least = std::clamp<std::int64_t>(of.places(), 1, kManyPositions);
    channels = std::min({all, most, fit(least * of.taps())});
    blocks = divide_up(all, channels);
    positions = std::max(kVector, fit(channels * of.taps()));
    tiles = divide_up(of.places(), positions);
    positions = round_up(divide_up(of.places(), std::max<std::int64_t>(1, tiles)), kVector);
  }
  // The number of rows of so many elements that a tile has room for.
  static std::int64_t fit(std::int64_t elements) noexcept {
    const std::int64_t rows = std::max<std::int64_t>(1, kTileElements / elements);
    return rows < kVector ? rows : rows / kVector * kVector;
  }

  static ConvCut forward(const ConvLayout& of) noexcept {
    ConvCut cut(of, kTileElements);
    cut.pieces = of.images * of.groups * cut.tiles;
    return cut;
  }
  // One image alone has kPieces, unless tiles would have fewer than 64 rows.
  static ConvCut input_gradient(const ConvLayout& of) noexcept {
    ConvCut cut(of, std::max(divide_up(of.channels, kPieces), divide_up(64, of.taps())));
    cut.pieces = of.images * of.groups * cut.blocks;
    return cut;
  }
  // Products have some 128 columns. Where these are few pieces, the images are cut as well.
  static ConvCut weight_gradient(const ConvLayout& of) noexcept {
    ConvCut cut(of, round_up(divide_up(128, of.taps()), kVector));
    cut.segments =
        std::clamp<std::int64_t>(of.images, 1, divide_up(kPieces, of.groups * cut.blocks));
    cut.pieces = cut.segments * of.groups * cut.blocks;
    return cut;
  }

  std::int64_t slots() const noexcept { return std::min(pieces, kSlots); }
  // A slot's tile takes whole cache lines of the workspace.
  std::int64_t tile_elements(const ConvLayout& of) const noexcept {
    constexpr std::int64_t kLine = 64 / sizeof(float);
    const std::int64_t columns = std::min(positions, of.places());
    return of.is_pointwise() ? 0 : round_up(channels * of.taps() * columns, kLine);
  }
  // The sums of the segments are behind the tiles.
  std::int64_t elements(const ConvLayout& of) const noexcept {
    const std::int64_t sums = segments == 1 ? 0 : segments * of.groups * of.filters * of.depth();
    return slots() * tile_elements(of) + sums;
  }
  MemoryNeeds needs(const ConvLayout& of, DType dtype) const noexcept {
    if (of.images == 0) return {};
    return {.workspace_bytes = static_cast<std::size_t>(elements(of)) * size_of(dtype)};
  }
};

// Calls body(at, pixel, count) for each run of a tile of [channels x taps, columns] that lies in
// the image: from `at` on it has `count` pixels from `pixel` on, a stride apart.
template <class Body>
void for_runs(const ConvLayout& of, std::int64_t channels, std::int64_t first, std::int64_t columns,
              const Body& body) {
  for (std::int64_t row = 0; row < channels * of.taps(); ++row) {
    const std::int64_t tap = row % of.taps(), channel = row / of.taps();
    const std::int64_t down = tap / of.kernel_width * of.dilation[0] - of.padding[0];
    const std::int64_t right = tap % of.kernel_width * of.dilation[1] - of.padding[1];
    // The positions of a line whose pixel is in the image.
    const std::int64_t from = right < 0 ? divide_up(-right, of.stride[1]) : 0;
    const std::int64_t to = right < of.width ? divide_up(of.width - right, of.stride[1]) : 0;
    std::int64_t line = first / of.out_width, begin = first % of.out_width;
    for (std::int64_t column = 0; column < columns; ++line, begin = 0) {
      const std::int64_t end = std::min(of.out_width, begin + columns - column);
      const std::int64_t y = line * of.stride[0] + down;
      const std::int64_t left = std::max(begin, from), count = std::min(end, to) - left;
      if (y >= 0 && y < of.height && count > 0)
        body(row * columns + column + left - begin,
             (channel * of.height + y) * of.width + left * of.stride[1] + right, count);
      column += end - begin;
    }
  }
}

// The pixels that `columns` positions from `first` on read of some channels of x: gathered into the
// tile, or x itself.
template <class T>
Factor<T> pixels_of(const ConvLayout& of, const T* x, std::int64_t channels, std::int64_t first,
                    std::int64_t columns, T* tile) {
  if (of.is_pointwise()) return {x + first, of.places()};
  std::fill_n(tile, channels * of.taps() * columns, T{});
  const std::int64_t step = of.stride[1];
  for_runs(of, channels, first, columns,
           [=](std::int64_t at, std::int64_t pixel, std::int64_t count) {
             if (step == 1)
               std::copy_n(x + pixel, count, tile + at);
             else
               for (std::int64_t i = 0; i < count; ++i) tile[at + i] = x[pixel + i * step];
           });
  return {tile, columns};
}

template <class T>
void scatter(const ConvLayout& of, const T* tile, std::int64_t channels, std::int64_t first,
             std::int64_t columns, T* x) {
  const std::int64_t step = of.stride[1];
  for_runs(of, channels, first, columns,
           [=](std::int64_t at, std::int64_t pixel, std::int64_t count) {
             for (std::int64_t i = 0; i < count; ++i) x[pixel + i * step] += tile[at + i];
           });
}

// Adds the bias to what a convolution has written, where it has one.
Status add_bias(const KernelContext& context, std::int64_t plane) {
  if (context.attribute<ConvAttributes>().bias == 0) return {};
  const Buffer &bias = context.inputs[2], &out = context.outputs[0];
  const std::int64_t channels = bias.elements();
  return for_wide(out.spec.dtype, [&]<class T>(T) {
    for_items(out.elements() / plane, rows_per_piece(plane), [&](std::int64_t i) {
      const T more = bias.as<const T>()[i % channels];
      T* const y = out.as<T>() + i * plane;
      for (std::int64_t j = 0; j < plane; ++j) y[j] += more;
    });
  });
}

// A piece is a tile of an image.
template <class T>
void convolve(const ConvLayout& of, const T* all, const T* weights, T* out, T* tiles) {
  const ConvCut cut = ConvCut::forward(of);
  const std::int64_t size = cut.tile_elements(of);
  for_slots(cut.pieces, cut.slots(), [&](std::int64_t piece, std::int64_t slot) {
    const std::int64_t plane = piece / cut.tiles, group = plane % of.groups;
    const std::int64_t first = piece % cut.tiles * cut.positions;
    const std::int64_t columns = std::min(cut.positions, of.places() - first);
    const T* x = all + plane * of.channels * of.pixels();
    T* y = out + plane * of.filters * of.places() + first;
    const Factor<T> kernels{weights + group * of.filters * of.depth(), of.depth()};
    for (std::int64_t block = 0; block < cut.blocks; ++block) {
      const std::int64_t channel = block * cut.channels;
      const std::int64_t channels = std::min(cut.channels, of.channels - channel);
      multiply<T>(
          of.filters, columns, channels * of.taps(), kernels.at(0, channel * of.taps()),
          pixels_of(of, x + channel * of.pixels(), channels, first, columns, tiles + slot * size),
          y, of.places(), block > 0);
    }
  });
}

// With a stride of 1 the gradient of the input is a convolution of dy with the weights turned
// round. That is faster where a tile of dy, which has the filters, is smaller than one of dx.
ConvLayout turned(ConvLayout of) noexcept {
  std::swap(of.channels, of.filters);
  std::swap(of.height, of.out_height);
  std::swap(of.width, of.out_width);
  of.padding[0] = (of.kernel_height - 1) * of.dilation[0] - of.padding[0];
  of.padding[1] = (of.kernel_width - 1) * of.dilation[1] - of.padding[1];
  return of;
}
bool is_turned(const ConvLayout& of) noexcept {
  const ConvLayout dx = turned(of);
  return of.stride[0] == 1 && of.stride[1] == 1 && of.taps() > 1 && dx.padding[0] >= 0 &&
         dx.padding[1] >= 0 && of.filters > 0 && of.filters < of.channels;
}
// From [filters, channels, taps] of each group to [channels, filters, taps], the last tap first.
template <class T>
const T* turn(const ConvLayout& of, const T* from, T* to) {
  for_items(of.groups * of.filters, rows_per_piece(of.depth()), [&](std::int64_t i) {
    const std::int64_t group = i / of.filters, filter = i % of.filters;
    for (std::int64_t c = 0; c < of.channels; ++c)
      std::reverse_copy(from + i * of.depth() + c * of.taps(),
                        from + i * of.depth() + (c + 1) * of.taps(),
                        to + ((group * of.channels + c) * of.filters + filter) * of.taps());
  });
  return to;
}

}  // namespace

MemoryNeeds conv2d_memory(const MemoryQuery& query) {
  const ConvLayout of(query.inputs[0].shape, query.inputs[1].shape, query.outputs[0].shape,
                      query.attribute<ConvAttributes>());
  const DType dtype = query.outputs[0].dtype;
  if (const auto bytes = library_conv_workspace(ConvPart::forward, of, dtype))
    return {.workspace_bytes = *bytes};
  return ConvCut::forward(of).needs(of, dtype);
}

// The output has the shape of a convolution's x.
MemoryNeeds conv_transpose2d_memory(const MemoryQuery& query) {
  const ConvLayout of(query.outputs[0].shape, query.inputs[1].shape, query.inputs[0].shape,
                      query.attribute<ConvAttributes>());
  const DType dtype = query.outputs[0].dtype;
  if (const auto bytes = library_conv_workspace(ConvPart::input_gradient, of, dtype))
    return {.workspace_bytes = *bytes};
  if (!is_turned(of)) return ConvCut::input_gradient(of).needs(of, dtype);
  const ConvLayout dx = turned(of);
  MemoryNeeds needs = ConvCut::forward(dx).needs(dx, dtype);
  needs.workspace_bytes +=
      static_cast<std::size_t>(of.groups * of.filters * of.depth()) * size_of(dtype);
  return needs;
}

MemoryNeeds conv2d_weight_gradient_memory(const MemoryQuery& query) {
  const ConvLayout of(query.inputs[0].shape, query.outputs[0].shape, query.inputs[1].shape,
                      query.attribute<ConvAttributes>());
  const DType dtype = query.outputs[0].dtype;
  if (const auto bytes = library_conv_workspace(ConvPart::weight_gradient, of, dtype))
    return {.workspace_bytes = *bytes};
  return ConvCut::weight_gradient(of).needs(of, dtype);
}

Status conv2d(const KernelContext& context) {
  const Buffer &x = context.inputs[0], &weights = context.inputs[1], &out = context.outputs[0];
  if (out.elements() == 0) return {};
  const ConvLayout of(x.spec.shape, weights.spec.shape, out.spec.shape,
                      context.attribute<ConvAttributes>());
  if (const auto status = library_conv(ConvPart::forward, of, x, weights, out, context.workspace))
    return status->ok() ? add_bias(context, of.places()) : *status;
  const Status status = for_wide(out.spec.dtype, [&]<class T>(T) {
    convolve(of, x.as<const T>(), weights.as<const T>(), out.as<T>(),
             static_cast<T*>(context.workspace));
  });
  return status.ok() ? add_bias(context, of.places()) : status;
}

// A piece is some channels of an image. Its tiles, weights^T dy, are added one after the other.
Status conv_transpose2d(const KernelContext& context) {
  const Buffer& out = context.outputs[0];
  if (out.elements() == 0) return {};
  const ConvLayout of(out.spec.shape, context.inputs[1].spec.shape, context.inputs[0].spec.shape,
                      context.attribute<ConvAttributes>());
  if (const auto status = library_conv(ConvPart::input_gradient, of, context.inputs[0],
                                       context.inputs[1], out, context.workspace))
    return status->ok() ? add_bias(context, of.pixels()) : *status;
  const ConvCut cut = ConvCut::input_gradient(of);
  const Status status = for_wide(out.spec.dtype, [&]<class T>(T) {
    T* const tiles = static_cast<T*>(context.workspace);
    if (is_turned(of)) {
      const ConvLayout dx = turned(of);
      return convolve(
          dx, context.inputs[0].as<const T>(),
          turn(of, context.inputs[1].as<const T>(), tiles + ConvCut::forward(dx).elements(dx)),
          out.as<T>(), tiles);
    }
    const std::int64_t size = cut.tile_elements(of);
    for_slots(cut.pieces, cut.slots(), [&](std::int64_t piece, std::int64_t slot) {
      const std::int64_t plane = piece / cut.blocks, group = plane % of.groups;
      const std::int64_t channel = piece % cut.blocks * cut.channels;
      const std::int64_t channels = std::min(cut.channels, of.channels - channel);
      const Factor<T> dy{context.inputs[0].as<const T>() + plane * of.filters * of.places(),
                         of.places()};
      const Factor<T> weights{
          context.inputs[1].as<const T>() + group * of.filters * of.depth() + channel * of.taps(),
          of.depth(), true};
      T* dx = out.as<T>() + (plane * of.channels + channel) * of.pixels();
      if (of.is_pointwise()) {
        multiply(channels, of.places(), of.filters, weights, dy, dx, of.places(), false);
      } else {
        std::fill_n(dx, channels * of.pixels(), T{});
        T* tile = tiles + slot * size;
        for (std::int64_t first = 0; first < of.places(); first += cut.positions) {
          const std::int64_t columns = std::min(cut.positions, of.places() - first);
          multiply(channels * of.taps(), columns, of.filters, weights, dy.at(0, first), tile,
                   columns, false);
          scatter<T>(of, tile, channels, first, columns, dx);
        }
      }
    });
  });
  return status.ok() ? add_bias(context, of.pixels()) : status;
}

// A piece is the share of some images in the gradient of some channels' weights: the sum of dy
// tile^T.
Status conv2d_weight_gradient(const KernelContext& context) {
  const Buffer& out = context.outputs[0];
  const std::int64_t count = out.elements();
  if (count == 0) return {};
  const ConvLayout of(context.inputs[0].spec.shape, out.spec.shape, context.inputs[1].spec.shape,
                      context.attribute<ConvAttributes>());
  if (const auto status = library_conv(ConvPart::weight_gradient, of, context.inputs[0],
                                       context.inputs[1], out, context.workspace))
    return *status;
  const ConvCut cut = ConvCut::weight_gradient(of);
  return for_wide(out.spec.dtype, [&]<class T>(T) {
    T* const tiles = static_cast<T*>(context.workspace);
    const std::int64_t size = cut.tile_elements(of);
    T* const sums = cut.segments == 1 ? out.as<T>() : tiles + cut.slots() * size;
    for_slots(cut.pieces, cut.slots(), [&](std::int64_t piece, std::int64_t slot) {
      const std::int64_t channel = piece % cut.blocks * cut.channels;
      const std::int64_t group = piece / cut.blocks % of.groups;
      const std::int64_t segment = piece / cut.blocks / of.groups;
      const std::int64_t channels = std::min(cut.channels, of.channels - channel);
      T* dw = sums + segment * count + group * of.filters * of.depth() + channel * of.taps();
      multiply<T>(of.filters, channels * of.taps(), 0, {}, {}, dw, of.depth(), false);
      for (std::int64_t image = of.images * segment / cut.segments,
                        end = of.images * (segment + 1) / cut.segments;
           image < end; ++image) {
        const std::int64_t plane = image * of.groups + group;
        const T* x =
            context.inputs[0].as<const T>() + (plane * of.channels + channel) * of.pixels();
        const Factor<T> dy{context.inputs[1].as<const T>() + plane * of.filters * of.places(),
                           of.places()};
        for (std::int64_t first = 0; first < of.places(); first += cut.positions) {
          const std::int64_t columns = std::min(cut.positions, of.places() - first);
          Factor<T> pixels = pixels_of(of, x, channels, first, columns, tiles + slot * size);
          pixels.transposed = true;
          multiply<T>(of.filters, channels * of.taps(), columns, dy.at(0, first), pixels, dw,
                      of.depth(), true);
        }
      }
    });
    if (cut.segments == 1) return;
    for_pieces(count, kPieceElements, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        T sum = sums[i];
        for (std::int64_t segment = 1; segment < cut.segments; ++segment)
          sum += sums[segment * count + i];
        out.as<T>()[i] = sum;
      }
    });
  });
}

}  // namespace ebb::cpu
