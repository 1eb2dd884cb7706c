#include "ebb/core/kernels/conv.h"

#include <algorithm>

#include "ebb/core/kernels/carver.h"
#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/kernels/cpu/gemm.h"

namespace ebb::cpu {
namespace {

// Threads take slots; workspace has a tile for each.
constexpr std::int64_t kSlots = 16, kTileElements = 64 * 1024, kLeastPositions = 16;
// The number of pieces that a cut aims at.
constexpr std::int64_t kPieces = 8;

constexpr std::int64_t ceil_divide(std::int64_t a, std::int64_t b) noexcept {
  return a > 0 ? divide_up(a, b) : -(-a / b);
}

// The cut of the work, by its shape alone. A tile has the rows of some channels (one per tap) and a
// column for each of some output positions.
struct ConvCut {
  std::int64_t channels, blocks;  // channels of a tile, such blocks in a group
  std::int64_t positions, tiles;  // positions of a tile, tiles in a plane
  std::int64_t segments = 1;      // parts of the images, summed separately
  std::int64_t pieces, slots;

  // `each` is the number of images or segments; pieces are also by group, and by tile or block.
  ConvCut(const ConvLayout& of, std::int64_t block, std::int64_t each, bool by_tile) noexcept
      : channels(std::clamp<std::int64_t>(block, 1, std::max<std::int64_t>(1, of.channels))),
        blocks(std::max<std::int64_t>(1, divide_up(of.channels, channels))),
        positions(std::clamp<std::int64_t>(kTileElements / std::max<std::int64_t>(1, rows(of)),
                                           kLeastPositions,
                                           std::max(kLeastPositions, of.places()))),
        tiles(divide_up(of.places(), positions)),
        pieces(each * of.groups * (by_tile ? tiles : blocks)),
        slots(std::min(pieces, kSlots)) {}

  std::int64_t rows(const ConvLayout& of) const noexcept { return channels * of.taps(); }
  std::int64_t tile_elements(const ConvLayout& of) const noexcept {
    return of.is_pointwise() ? 0 : rows(of) * std::min(positions, of.places());
  }

  static ConvCut forward(const ConvLayout& of) noexcept {
    return {of, of.channels, of.images, true};
  }
  static ConvCut input_gradient(const ConvLayout& of) noexcept {
    const std::int64_t planes = std::max<std::int64_t>(1, of.images * of.groups);
    const std::int64_t block = divide_up(of.channels, divide_up(kPieces, planes));
    return {of, std::max(block, divide_up(64, of.taps())), of.images, false};
  }
  static ConvCut weight_gradient(const ConvLayout& of) noexcept {
    const std::int64_t block = divide_up(128, of.taps());
    const std::int64_t blocks =
        std::max<std::int64_t>(1, of.groups * divide_up(of.channels, block));
    const std::int64_t segments = std::clamp<std::int64_t>(
        of.images, 1, std::max<std::int64_t>(1, divide_up(kPieces, blocks)));
    ConvCut cut{of, block, segments, false};
    cut.segments = segments;
    return cut;
  }
};

// The workspace of the kernels.
struct ConvMemory {
  void* tiles;
  void* parts;  // sums of the weight gradient; null: summed in place
  std::size_t bytes, tile_bytes;

  ConvMemory(void* workspace, const ConvLayout& of, const ConvCut& cut, std::size_t element) {
    Carver carver(workspace);
    tile_bytes = aligned_bytes(static_cast<std::size_t>(cut.tile_elements(of)) * element);
    tiles = carver.take_bytes(static_cast<std::size_t>(cut.slots) * tile_bytes);
    const std::int64_t weights = of.groups * of.filters * of.depth();
    parts = carver.take_bytes(
        cut.segments == 1 ? 0 : static_cast<std::size_t>(cut.segments * weights) * element);
    bytes = carver.bytes();
  }
  template <class T>
  T* tile(std::int64_t slot) const noexcept {
    return reinterpret_cast<T*>(static_cast<std::byte*>(tiles) +
                                static_cast<std::size_t>(slot) * tile_bytes);
  }
};

// Calls body(at, pixel, before, count, after) for each run of a tile of [channels x taps,
// positions]. From `at` on the run has `before` elements outside the image, `count` pixels from
// `pixel` on, a stride apart, and `after` elements outside.
template <class Body>
void for_runs(const ConvLayout& of, std::int64_t channels, std::int64_t first, std::int64_t last,
              const Body& body) {
  const std::int64_t columns = last - first;
  for (std::int64_t row = 0; row < channels * of.taps(); ++row) {
    const std::int64_t tap = row % of.taps(), channel = row / of.taps();
    const std::int64_t down = tap / of.kernel_width * of.dilation[0] - of.padding[0];
    const std::int64_t right = tap % of.kernel_width * of.dilation[1] - of.padding[1];
    const std::int64_t from =
        std::clamp<std::int64_t>(ceil_divide(-right, of.stride[1]), 0, of.out_width);
    const std::int64_t to =
        std::clamp<std::int64_t>(ceil_divide(of.width - right, of.stride[1]), from, of.out_width);
    for (std::int64_t position = first; position < last;) {
      const std::int64_t i = position / of.out_width, begin = position % of.out_width;
      const std::int64_t end = std::min(of.out_width, begin + last - position);
      const std::int64_t y = i * of.stride[0] + down;
      const bool inside = y >= 0 && y < of.height;
      const std::int64_t left = inside ? std::clamp(from, begin, end) : end;
      const std::int64_t beyond = inside ? std::clamp(to, left, end) : end;
      body(row * columns + position - first,
           channel * of.pixels() + y * of.width + left * of.stride[1] + right, left - begin,
           beyond - left, end - beyond);
      position += end - begin;
    }
  }
}

template <class T>
void gather(const ConvLayout& of, const T* x, std::int64_t channels, std::int64_t first,
            std::int64_t last, T* tile) {
  const std::int64_t step = of.stride[1];
  for_runs(of, channels, first, last,
           [=](std::int64_t at, std::int64_t pixel, std::int64_t before, std::int64_t count,
               std::int64_t after) {
             T* to = std::fill_n(tile + at, before, T{});
             if (step == 1) {
               if (count > 0) std::copy_n(x + pixel, count, to);
             } else {
               for (std::int64_t i = 0; i < count; ++i) to[i] = x[pixel + i * step];
             }
             std::fill_n(to + count, after, T{});
           });
}

template <class T>
void scatter(const ConvLayout& of, const T* tile, std::int64_t channels, std::int64_t first,
             std::int64_t last, T* x) {
  const std::int64_t step = of.stride[1];
  for_runs(of, channels, first, last,
           [=](std::int64_t at, std::int64_t pixel, std::int64_t before, std::int64_t count,
               std::int64_t) {
             const T* from = tile + at + before;
             for (std::int64_t i = 0; i < count; ++i) x[pixel + i * step] += from[i];
           });
}

template <class T>
void add_bias(const T* bias, std::int64_t rows, std::int64_t columns, T* y, std::int64_t stride) {
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t i = 0; i < columns; ++i) y[row * stride + i] += bias[row];
}

ConvLayout layout_of(const MemoryQuery& query, std::size_t x, std::size_t weights,
                     const Shape& y) noexcept {
  return {query.inputs[x].shape, query.inputs[weights].shape, y, query.attribute<ConvAttributes>()};
}
ConvLayout layout_of(const KernelContext& context, std::size_t x, std::size_t weights,
                     const Buffer& y) noexcept {
  return {context.inputs[x].spec.shape, context.inputs[weights].spec.shape, y.spec.shape,
          context.attribute<ConvAttributes>()};
}
MemoryNeeds needs(const ConvLayout& of, const ConvCut& cut, DType dtype) noexcept {
  return {.workspace_bytes = ConvMemory(nullptr, of, cut, size_of(dtype)).bytes};
}

}  // namespace

MemoryNeeds conv2d_memory(const MemoryQuery& query) {
  const ConvLayout of = layout_of(query, 0, 1, query.outputs[0].shape);
  return needs(of, ConvCut::forward(of), query.outputs[0].dtype);
}

// The output has the shape of a convolution's x.
MemoryNeeds conv_transpose2d_memory(const MemoryQuery& query) {
  const ConvLayout of(query.outputs[0].shape, query.inputs[1].shape, query.inputs[0].shape,
                      query.attribute<ConvAttributes>());
  // Fewer images may take more memory: they are cut into blocks of fewer channels, and perhaps more
  // pieces. The bound is over all smaller batches, so that a batch fits wherever a larger one has
  // run.
  MemoryNeeds most;
  for (std::int64_t images = std::min(of.images, kSlots); images > 0; --images) {
    ConvLayout part = of;
    part.images = images;
    const MemoryNeeds its = needs(part, ConvCut::input_gradient(part), query.outputs[0].dtype);
    most.workspace_bytes = std::max(most.workspace_bytes, its.workspace_bytes);
  }
  return most;
}

MemoryNeeds conv2d_weight_gradient_memory(const MemoryQuery& query) {
  const ConvLayout of = layout_of(query, 0, 2, query.inputs[1].shape);
  return needs(of, ConvCut::weight_gradient(of), query.outputs[0].dtype);
}

// A piece is a tile: y = weights tile.
Status conv2d(const KernelContext& context) {
  const Buffer& out = context.outputs[0];
  if (out.elements() == 0) return {};
  const ConvLayout of = layout_of(context, 0, 1, out);
  const ConvCut cut = ConvCut::forward(of);
  const bool has_bias = context.attribute<ConvAttributes>().bias != 0;
  return for_wide(out.spec.dtype, [&]<class T>(T) {
    const ConvMemory memory(context.workspace, of, cut, sizeof(T));
    const T *all = context.inputs[0].as<const T>(), *weights = context.inputs[1].as<const T>();
    const T* bias = has_bias ? context.inputs[2].as<const T>() : nullptr;
    for_slots(cut.pieces, cut.slots, [&](std::int64_t piece, std::int64_t slot) {
      const std::int64_t plane = piece / cut.tiles, group = plane % of.groups;
      const std::int64_t first = piece % cut.tiles * cut.positions;
      const std::int64_t columns = std::min(cut.positions, of.places() - first);
      const T* x = all + plane * of.channels * of.pixels();
      Factor<T> pixels{x + first, of.places()};
      if (!of.is_pointwise()) {
        T* tile = memory.tile<T>(slot);
        gather(of, x, of.channels, first, first + columns, tile);
        pixels = {tile, columns};
      }
      T* y = out.as<T>() + plane * of.filters * of.places() + first;
      multiply<T>(of.filters, columns, of.depth(),
                  {weights + group * of.filters * of.depth(), of.depth()}, pixels, y, of.places(),
                  false);
      if (bias != nullptr) add_bias(bias + group * of.filters, of.filters, columns, y, of.places());
    });
  });
}

// A piece is some channels of an image. Its tiles, weights^T dy, are added one after the other.
Status conv_transpose2d(const KernelContext& context) {
  const Buffer& out = context.outputs[0];
  if (out.elements() == 0) return {};
  const auto& attributes = context.attribute<ConvAttributes>();
  const ConvLayout of(out.spec.shape, context.inputs[1].spec.shape, context.inputs[0].spec.shape,
                      attributes);
  const ConvCut cut = ConvCut::input_gradient(of);
  return for_wide(out.spec.dtype, [&]<class T>(T) {
    const ConvMemory memory(context.workspace, of, cut, sizeof(T));
    const T *all = context.inputs[0].as<const T>(), *weights = context.inputs[1].as<const T>();
    const T* bias = attributes.bias != 0 ? context.inputs[2].as<const T>() : nullptr;
    for_slots(cut.pieces, cut.slots, [&](std::int64_t piece, std::int64_t slot) {
      const std::int64_t plane = piece / cut.blocks, group = plane % of.groups;
      const std::int64_t channel = piece % cut.blocks * cut.channels;
      const std::int64_t channels = std::min(cut.channels, of.channels - channel);
      const Factor<T> dy{all + plane * of.filters * of.places(), of.places()};
      const Factor<T> kernels{weights + group * of.filters * of.depth() + channel * of.taps(),
                              of.depth(), true};
      T* dx = out.as<T>() + (plane * of.channels + channel) * of.pixels();
      if (of.is_pointwise()) {
        multiply(channels, of.places(), of.filters, kernels, dy, dx, of.places(), false);
      } else {
        std::fill_n(dx, channels * of.pixels(), T{});
        T* tile = memory.tile<T>(slot);
        for (std::int64_t first = 0; first < of.places(); first += cut.positions) {
          const std::int64_t columns = std::min(cut.positions, of.places() - first);
          multiply(channels * of.taps(), columns, of.filters, kernels, dy.at(0, first), tile,
                   columns, false);
          scatter<T>(of, tile, channels, first, first + columns, dx);
        }
      }
      if (bias != nullptr)
        add_bias(bias + group * of.channels + channel, channels, of.pixels(), dx, of.pixels());
    });
  });
}

// A piece is the share of some images in the weight gradient of some channels: the sum of dy
// tile^T.
Status conv2d_weight_gradient(const KernelContext& context) {
  const Buffer& out = context.outputs[0];
  const std::int64_t count = out.elements();
  if (count == 0) return {};
  const ConvLayout of = layout_of(context, 0, 2, context.inputs[1]);
  const ConvCut cut = ConvCut::weight_gradient(of);
  return for_wide(out.spec.dtype, [&]<class T>(T) {
    const ConvMemory memory(context.workspace, of, cut, sizeof(T));
    const T *all = context.inputs[0].as<const T>(), *all_dy = context.inputs[1].as<const T>();
    T* sums = cut.segments == 1 ? out.as<T>() : static_cast<T*>(memory.parts);
    for_slots(cut.pieces, cut.slots, [&](std::int64_t piece, std::int64_t slot) {
      const std::int64_t block = piece % cut.blocks, group = piece / cut.blocks % of.groups;
      const std::int64_t segment = piece / cut.blocks / of.groups;
      const std::int64_t channel = block * cut.channels;
      const std::int64_t channels = std::min(cut.channels, of.channels - channel);
      T* dw = sums + segment * count + group * of.filters * of.depth() + channel * of.taps();
      multiply<T>(of.filters, channels * of.taps(), 0, {}, {}, dw, of.depth(), false);
      for (std::int64_t image = of.images * segment / cut.segments,
                        end = of.images * (segment + 1) / cut.segments;
           image < end; ++image) {
        const std::int64_t plane = image * of.groups + group;
        const T* x = all + (plane * of.channels + channel) * of.pixels();
        for (std::int64_t first = 0; first < of.places(); first += cut.positions) {
          const std::int64_t columns = std::min(cut.positions, of.places() - first);
          Factor<T> pixels{x + first, of.places(), true};
          if (!of.is_pointwise()) {
            T* tile = memory.tile<T>(slot);
            gather(of, x, channels, first, first + columns, tile);
            pixels = {tile, columns, true};
          }
          multiply<T>(of.filters, channels * of.taps(), columns,
                      {all_dy + plane * of.filters * of.places() + first, of.places()}, pixels, dw,
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
