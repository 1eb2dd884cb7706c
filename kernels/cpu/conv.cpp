#include "ebb/core/kernels/conv.h"

#include <algorithm>

#include "ebb/core/kernels/carver.h"
#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/kernels/cpu/conv_library.h"
#include "ebb/kernels/cpu/gemm.h"
#include "ebb/kernels/cpu/padded_plane.h"
#include "ebb/kernels/cpu/vector_block.h"

namespace ebb::cpu {
namespace {

// Threads take slots; workspace has a tile for each.
constexpr std::int64_t kSlots = 16, kTileElements = 64 * 1024, kLeastPositions = 16,
                       kManyPositions = 256;
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
  std::int64_t tile;           // its elements
  std::int64_t padded_at = 0;  // where it has room for a padded channel; 0: none

  // `each` is the number of images or segments; pieces are also by group, and by tile or block.
  ConvCut(const ConvLayout& of, std::int64_t block, std::int64_t each, bool by_tile) noexcept
      : channels(std::clamp<std::int64_t>(block, 1, std::max<std::int64_t>(1, of.channels))),
        blocks(std::max<std::int64_t>(1, divide_up(of.channels, channels))),
        positions(round_up(evenly(of.places(), most_positions(rows(of))), kLeastPositions)),
        tiles(divide_up(of.places(), positions)),
        pieces(each * of.groups * (by_tile ? tiles : blocks)),
        slots(std::min(pieces, kSlots)),
        tile(of.is_pointwise() ? 0 : rows(of) * std::min(positions, of.places())) {}

  // The size of parts of `count`, one as large as the other, each of `most` at most.
  static std::int64_t evenly(std::int64_t count, std::int64_t most) noexcept {
    return count == 0 ? 1 : divide_up(count, divide_up(count, most));
  }
  static std::int64_t most_positions(std::int64_t rows) noexcept {
    const std::int64_t fit = kTileElements / std::max<std::int64_t>(1, rows);
    return std::max(kLeastPositions, fit / kLeastPositions * kLeastPositions);
  }

  std::int64_t rows(const ConvLayout& of) const noexcept { return channels * of.taps(); }

  // A channel with its padding, of which a tile is gathered.
  PaddedPlane padded(const ConvLayout& of) const noexcept {
    return {of, positions / std::max<std::int64_t>(1, of.out_width) + 2};
  }
  ConvCut with_padding(const ConvLayout& of) const noexcept {
    constexpr std::int64_t kMost = 16 * 1024;
    ConvCut cut = *this;
    const std::int64_t elements = of.is_pointwise() || !of.is_usual() ? 0 : padded(of).elements();
    if (elements == 0 || elements > kMost) return cut;
    cut.padded_at = tile + kBlock<float>;
    cut.tile = cut.padded_at + elements;
    return cut;
  }

  static ConvCut forward(const ConvLayout& of) noexcept {
    if (of.is_pointwise()) return {of, of.channels, of.images, true};
    // Enough positions that a product is not about packing the weights.
    const std::int64_t least = std::min(kManyPositions, std::max<std::int64_t>(1, of.places()));
    const std::int64_t most = std::max<std::int64_t>(1, kTileElements / (least * of.taps()));
    return ConvCut(of, evenly(of.channels, most), of.images, true).with_padding(of);
  }
  static ConvCut input_gradient(const ConvLayout& of) noexcept {
    const std::int64_t planes = std::max<std::int64_t>(1, of.images * of.groups);
    const std::int64_t block = divide_up(of.channels, divide_up(kPieces, planes));
    return {of, std::max(block, divide_up(64, of.taps())), of.images, false};
  }
  static ConvCut weight_gradient(const ConvLayout& of) noexcept {
    // Kernels for AVX-512 lose a third where the columns are no multiple of a vector.
    const std::int64_t block = round_up(divide_up(128, of.taps()), 16);
    const std::int64_t blocks =
        std::max<std::int64_t>(1, of.groups * divide_up(of.channels, block));
    const std::int64_t segments = std::clamp<std::int64_t>(
        of.images, 1, std::max<std::int64_t>(1, divide_up(kPieces, blocks)));
    ConvCut cut{of, block, segments, false};
    cut.segments = segments;
    return cut.with_padding(of);
  }
};

// A tile for each slot. A block may be written at its end.
struct Tiles {
  std::size_t bytes;  // of a tile
  std::byte* data;

  Tiles(Carver& carver, std::int64_t slots, std::int64_t elements, std::size_t element)
      : bytes(elements == 0 ? 0 : aligned_bytes(static_cast<std::size_t>(elements) * element) + 64),
        data(carver.take_bytes(static_cast<std::size_t>(slots) * bytes)) {}
  template <class T>
  T* at(std::int64_t slot) const noexcept {
    return reinterpret_cast<T*>(data + static_cast<std::size_t>(slot) * bytes);
  }
};

// The workspace of the kernels.
struct ConvMemory {
  Carver carver;
  Tiles tiles;
  void* parts;  // sums of the weight gradient; null: summed in place

  ConvMemory(void* workspace, const ConvLayout& of, const ConvCut& cut, std::size_t element)
      : carver(workspace),
        tiles(carver, cut.slots, cut.tile, element),
        parts(carver.take_bytes(
            cut.segments == 1
                ? 0
                : static_cast<std::size_t>(cut.segments * of.groups * of.filters * of.depth()) *
                      element)) {}
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
    std::int64_t i = first / of.out_width, begin = first % of.out_width;
    for (std::int64_t position = first; position < last; ++i, begin = 0) {
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

// `all`: the elements behind x, of all planes. Runs are written in whole blocks; the next ones
// write over what is too much.
template <class T>
void gather(const ConvLayout& of, const T* x, std::int64_t all, std::int64_t channels,
            std::int64_t first, std::int64_t last, T* tile) {
  const std::int64_t step = of.stride[1];
  for_runs(of, channels, first, last,
           [=](std::int64_t at, std::int64_t pixel, std::int64_t before, std::int64_t count,
               std::int64_t after) {
             T* const to = tile + at;
             clear(to, before);
             if (count > 0) copy_apart(x + pixel, all - pixel, step, count, to + before);
             clear(to + before + count, after);
           });
}

// gather(), from a copy of each channel with its padding: a tap is then the same at all positions.
template <class T>
void gather_padded(const ConvLayout& of, const PaddedPlane& plane, const T* x,
                   std::int64_t channels, std::int64_t first, std::int64_t last, T* tile,
                   T* padded) {
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    copy_padded(plane, x + channel * of.pixels(), first / of.out_width, padded);
    for (std::int64_t tap = 0; tap < of.taps(); ++tap) {
      const T* row = padded + plane.distance(tap / of.kernel_width, tap % of.kernel_width);
      std::int64_t column = first % of.out_width;
      for (std::int64_t left = last - first; left > 0; row += plane.width, column = 0) {
        const std::int64_t count = std::min(of.out_width - column, left);
        for (std::int64_t j = 0; j < count; j += kBlock<T>) store(tile + j, load(row + column + j));
        tile += count;
        left -= count;
      }
    }
  }
}

// Whichever of them the cut has room for.
template <class T>
void gather(const ConvLayout& of, const ConvCut& cut, const T* x, std::int64_t all,
            std::int64_t channels, std::int64_t first, std::int64_t last, T* tile) {
  if (cut.padded_at == 0) return gather(of, x, all, channels, first, last, tile);
  gather_padded(of, cut.padded(of), x, channels, first, last, tile, tile + cut.padded_at);
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

// To the planes of all images.
void add_bias_to_all(const Buffer& bias, std::int64_t images, std::int64_t plane,
                     const Buffer& out) {
  const std::int64_t channels = bias.elements();
  for_items(images, rows_per_piece(channels * plane), [&](std::int64_t image) {
    add_bias(bias.as<const float>(), channels, plane, out.as<float>() + image * channels * plane,
             plane);
  });
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
  if (of.images == 0) return {};
  return {.workspace_bytes = ConvMemory(nullptr, of, cut, size_of(dtype)).carver.bytes()};
}

// With a stride of 1 the gradient of the input is a convolution of dy with the weights turned
// round. Where that has pieces enough, it is faster than adding up tiles.
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
         dx.padding[1] >= 0 && of.filters > 0 && ConvCut::forward(dx).pieces >= kPieces;
}

// Turns the weights round: from [filters, channels, taps] of each group to [channels, filters,
// taps], the last tap first.
template <class T>
void turn(const ConvLayout& of, const T* from, T* to) {
  for_items(of.groups * of.filters, rows_per_piece(of.depth()), [&](std::int64_t i) {
    const std::int64_t filter = i % of.filters, group = i / of.filters;
    for (std::int64_t c = 0; c < of.channels; ++c)
      std::reverse_copy(from + (i * of.channels + c) * of.taps(),
                        from + (i * of.channels + c + 1) * of.taps(),
                        to + ((group * of.channels + c) * of.filters + filter) * of.taps());
  });
}

MemoryNeeds needs_of_input_gradient(const ConvLayout& of, DType dtype) noexcept {
  if (!is_turned(of)) return needs(of, ConvCut::input_gradient(of), dtype);
  const ConvLayout dx = turned(of);
  ConvMemory memory(nullptr, dx, ConvCut::forward(dx), size_of(dtype));
  memory.carver.take_bytes(static_cast<std::size_t>(of.groups * of.filters * of.depth()) *
                           size_of(dtype));
  return {.workspace_bytes = memory.carver.bytes()};
}

// A piece is a tile: y = weights tile. `all`: x, of so many elements.
template <class T>
void convolve(const ConvLayout& of, const ConvCut& cut, const ConvMemory& memory, const T* all,
              std::int64_t elements, const T* weights, const T* bias, T* out) {
  for_slots(cut.pieces, cut.slots, [&](std::int64_t piece, std::int64_t slot) {
    const std::int64_t plane = piece / cut.tiles, group = plane % of.groups;
    const std::int64_t first = piece % cut.tiles * cut.positions;
    const std::int64_t columns = std::min(cut.positions, of.places() - first);
    const T* x = all + plane * of.channels * of.pixels();
    T* y = out + plane * of.filters * of.places() + first;
    const Factor<T> kernels{weights + group * of.filters * of.depth(), of.depth()};
    for (std::int64_t channel = 0; channel < std::max<std::int64_t>(1, of.channels);
         channel += cut.channels) {
      const std::int64_t channels = std::min(cut.channels, of.channels - channel);
      Factor<T> pixels{x + first, of.places()};
      if (!of.is_pointwise()) {
        T* tile = memory.tiles.at<T>(slot);
        const T* const from = x + channel * of.pixels();
        gather(of, cut, from, all + elements - from, channels, first, first + columns, tile);
        pixels = {tile, columns};
      }
      multiply<T>(of.filters, columns, channels * of.taps(), kernels.at(0, channel * of.taps()),
                  pixels, y, of.places(), channel > 0);
    }
    if (bias != nullptr) add_bias(bias + group * of.filters, of.filters, columns, y, of.places());
  });
}

}  // namespace

MemoryNeeds conv2d_memory(const MemoryQuery& query) {
  const ConvLayout of = layout_of(query, 0, 1, query.outputs[0].shape);
  const DType dtype = query.outputs[0].dtype;
  if (const auto bytes = library_conv_workspace(ConvPart::forward, of, dtype))
    return {.workspace_bytes = *bytes};
  return needs(of, ConvCut::forward(of), dtype);
}

// The output has the shape of a convolution's x.
MemoryNeeds conv_transpose2d_memory(const MemoryQuery& query) {
  const ConvLayout of(query.outputs[0].shape, query.inputs[1].shape, query.inputs[0].shape,
                      query.attribute<ConvAttributes>());
  if (const auto bytes =
          library_conv_workspace(ConvPart::input_gradient, of, query.outputs[0].dtype))
    return {.workspace_bytes = *bytes};
  // Fewer images may take more memory: they are cut into blocks of fewer channels, and perhaps more
  // pieces. The bound is over all smaller batches, so that a batch fits wherever a larger one has
  // run.
  MemoryNeeds most;
  for (std::int64_t images = std::min(of.images, kSlots); images > 0; --images) {
    ConvLayout part = of;
    part.images = images;
    const MemoryNeeds its = needs_of_input_gradient(part, query.outputs[0].dtype);
    most.workspace_bytes = std::max(most.workspace_bytes, its.workspace_bytes);
  }
  return most;
}

MemoryNeeds conv2d_weight_gradient_memory(const MemoryQuery& query) {
  const ConvLayout of = layout_of(query, 0, 2, query.inputs[1].shape);
  const DType dtype = query.outputs[0].dtype;
  if (const auto bytes = library_conv_workspace(ConvPart::weight_gradient, of, dtype))
    return {.workspace_bytes = *bytes};
  return needs(of, ConvCut::weight_gradient(of), dtype);
}

Status conv2d(const KernelContext& context) {
  const Buffer& out = context.outputs[0];
  if (out.elements() == 0) return {};
  const ConvLayout of = layout_of(context, 0, 1, out);
  const ConvCut cut = ConvCut::forward(of);
  const bool has_bias = context.attribute<ConvAttributes>().bias != 0;
  if (const auto status = library_conv(ConvPart::forward, of, context.inputs[0], context.inputs[1],
                                       out, context.workspace)) {
    if (has_bias && status->ok()) add_bias_to_all(context.inputs[2], of.images, of.places(), out);
    return *status;
  }
  return for_wide(out.spec.dtype, [&]<class T>(T) {
    const ConvMemory memory(context.workspace, of, cut, sizeof(T));
    convolve(of, cut, memory, context.inputs[0].as<const T>(), context.inputs[0].elements(),
             context.inputs[1].as<const T>(), has_bias ? context.inputs[2].as<const T>() : nullptr,
             out.as<T>());
  });
}

// A piece is some channels of an image. Its tiles, weights^T dy, are added one after the other.
Status conv_transpose2d(const KernelContext& context) {
  const Buffer& out = context.outputs[0];
  if (out.elements() == 0) return {};
  const auto& attributes = context.attribute<ConvAttributes>();
  const ConvLayout of(out.spec.shape, context.inputs[1].spec.shape, context.inputs[0].spec.shape,
                      attributes);
  if (const auto status = library_conv(ConvPart::input_gradient, of, context.inputs[0],
                                       context.inputs[1], out, context.workspace)) {
    if (attributes.bias != 0 && status->ok())
      add_bias_to_all(context.inputs[2], of.images, of.pixels(), out);
    return *status;
  }
  return for_wide(out.spec.dtype, [&]<class T>(T) {
    const T *all = context.inputs[0].as<const T>(), *weights = context.inputs[1].as<const T>();
    const T* bias = attributes.bias != 0 ? context.inputs[2].as<const T>() : nullptr;
    if (is_turned(of)) {
      const ConvLayout convolution = turned(of);
      const ConvCut cut = ConvCut::forward(convolution);
      ConvMemory memory(context.workspace, convolution, cut, sizeof(T));
      T* const turned_weights = memory.carver.take<T>(of.groups * of.filters * of.depth());
      turn(of, weights, turned_weights);
      return convolve(convolution, cut, memory, all, context.inputs[0].elements(),
                      static_cast<const T*>(turned_weights), bias, out.as<T>());
    }
    const ConvCut cut = ConvCut::input_gradient(of);
    const ConvMemory memory(context.workspace, of, cut, sizeof(T));
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
        T* tile = memory.tiles.at<T>(slot);
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
  if (const auto status = library_conv(ConvPart::weight_gradient, of, context.inputs[0],
                                       context.inputs[1], out, context.workspace))
    return *status;
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
            T* tile = memory.tiles.at<T>(slot);
            gather(of, cut, x, all + context.inputs[0].elements() - x, channels, first,
                   first + columns, tile);
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
