#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "ebb/core/kernels/conv.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/vector_block.h"

// Convolutions of groups of one channel. Rows of an image are copied with their padding; an output
// position then adds up its pixels where they lie, a few vectors of neighbouring positions at once.
namespace ebb::cpu {

// The cut of the work, by its shape alone: a tile is what some output rows of a plane read.
struct DepthwiseCut {
  static constexpr std::int64_t kSlots = 16, kTileElements = 16 * 1024;
  std::int64_t width;          // columns of a tile
  std::int64_t rows, tiles;    // output rows of a tile, tiles of a plane
  std::int64_t pieces, slots;  // by plane of x and tile
  std::int64_t elements;       // of a tile

  explicit DepthwiseCut(const ConvLayout& of) noexcept
      : width(round_up(of.out_width, kBlock<float>) * of.stride[1] + reach(of, 1)) {
    const std::int64_t fit = kTileElements / width - reach(of, 0);
    rows =
        std::clamp<std::int64_t>(fit / of.stride[0], 1, std::max<std::int64_t>(1, of.out_height));
    tiles = divide_up(of.out_height, rows);
    pieces = of.images * of.groups * tiles;
    slots = std::min(pieces, kSlots);
    elements = (rows * of.stride[0] + reach(of, 0)) * width;
  }
  static std::int64_t reach(const ConvLayout& of, int side) noexcept {
    const std::int64_t taps = side == 0 ? of.kernel_height : of.kernel_width;
    return (taps - 1) * of.dilation[side];
  }
  // Whether to work so: a wide image takes tiles of im2col's size at most.
  static bool suits(const ConvLayout& of) noexcept {
    return of.channels == 1 && of.taps() > 1 && of.stride[1] <= 2 &&
           DepthwiseCut(of).elements <= 4 * kTileElements;
  }
};

// Copies what the output rows from `first` on read of a plane.
template <class T>
void copy_padded(const ConvLayout& of, const DepthwiseCut& cut, const T* x, std::int64_t first,
                 T* tile) noexcept {
  const std::int64_t left = std::min(of.padding[1], cut.width),
                     count = std::min(of.width, cut.width - left);
  std::int64_t row = first * of.stride[0] - of.padding[0];
  for (T* const end = tile + cut.elements; tile < end; tile += cut.width, ++row) {
    const bool is_inside = row >= 0 && row < of.height;
    std::fill_n(tile, is_inside ? left : cut.width, T{});
    if (!is_inside) continue;
    std::copy_n(x + row * of.width, count, tile + left);
    std::fill_n(tile + left + count, cut.width - left - count, T{});
  }
}

// A vector of elements that are kStride apart, 1 or 2.
template <int kStride, class T, int... I>
Vector<T> load_apart(const T* from, std::integer_sequence<int, I...>) noexcept {
  using Anywhere = typename LanesOf<T, kLanes<T>>::anywhere;
  const auto at = [&](int i) -> Vector<T> { return *reinterpret_cast<const Anywhere*>(from + i); };
  if constexpr (kStride == 1)
    return at(0);
  else
    return __builtin_shufflevector(at(0), at(kLanes<T>), (2 * I)...);
}

// Some rows of y, of one plane: y = bias + the sum over taps of weight times pixel.
template <int kStride, class T>
void depthwise_rows(const ConvLayout& of, const DepthwiseCut& cut, const T* tile, const T* weights,
                    T bias, std::int64_t rows, T* y) noexcept {
  constexpr int kFew = kLanes<T>;
  // kCount vectors of positions, of which `count` positions are written.
  const auto add_up = [&]<int kCount>(std::integral_constant<int, kCount>, const T* pixels,
                                      std::int64_t count, T* to) {
    Vector<T> sums[kCount];
    for (auto& sum : sums) sum = bias - Vector<T>{};
    for (std::int64_t a = 0; a < of.kernel_height; ++a)
      for (std::int64_t b = 0; b < of.kernel_width; ++b) {
        const T* const from = pixels + a * of.dilation[0] * cut.width + b * of.dilation[1];
        for (int v = 0; v < kCount; ++v)
          sums[v] += weights[a * of.kernel_width + b] *
                     load_apart<kStride>(from + v * kFew * kStride,
                                         std::make_integer_sequence<int, kFew>());
      }
    if (kCount == 1 && count < kFew) {
      const Vector<T> some = sums[0];
      std::memcpy(to, &some, static_cast<std::size_t>(count) * sizeof(T));
    } else {
      for (int v = 0; v < kCount; ++v)
        *reinterpret_cast<typename LanesOf<T, kFew>::anywhere*>(to + v * kFew) = sums[v];
    }
  };
  for (std::int64_t i = 0; i < rows; ++i) {
    const T* const pixels = tile + i * of.stride[0] * cut.width;
    T* const to = y + i * of.out_width;
    std::int64_t j = 0;
    for (; j + 4 * kFew <= of.out_width; j += 4 * kFew)
      add_up(std::integral_constant<int, 4>{}, pixels + j * kStride, 4 * kFew, to + j);
    for (; j < of.out_width; j += kFew)
      add_up(std::integral_constant<int, 1>{}, pixels + j * kStride, of.out_width - j, to + j);
  }
}

// y of a tile, for each filter of its group.
template <class T>
void depthwise(const ConvLayout& of, const DepthwiseCut& cut, const T* x, const T* weights,
               const T* bias, std::int64_t piece, T* tile, T* y) noexcept {
  const std::int64_t plane = piece / cut.tiles, first = piece % cut.tiles * cut.rows;
  const std::int64_t rows = std::min(cut.rows, of.out_height - first);
  copy_padded(of, cut, x + plane * of.pixels(), first, tile);
  for (std::int64_t f = 0; f < of.filters; ++f) {
    const std::int64_t filter = plane % of.groups * of.filters + f;
    (of.stride[1] == 2
         ? depthwise_rows<2, T>
         : depthwise_rows<1, T>)(of, cut, tile, weights + filter * of.taps(),
                                 bias == nullptr ? T{} : bias[filter], rows,
                                 y + (plane * of.filters + f) * of.places() + first * of.out_width);
  }
}

}  // namespace ebb::cpu
