#pragma once
#include <algorithm>
#include <cstdint>

#include "ebb/core/kernels/conv.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/vector_block.h"

// Convolutions of groups of one channel, and their gradients. A plane is copied with its padding
// into a tile, columns of a stride apart next to each other. Each tap then reads the tile at a
// fixed distance from the position, so that vectors hold neighbouring positions.
namespace ebb::cpu {

// The cut of the work, by its shape alone: a tile is what some rows of positions read.
struct DepthwiseCut {
  static constexpr std::int64_t kTileElements = 8 * 1024;
  struct Side {
    std::int64_t source, positions;
    std::int64_t step, phases;     // pixel = (position + offset) step + phase + origin
    std::int64_t origin, results;  // results of a position, which are neighbours
    std::int64_t extra;            // pixels beyond the positions
  };
  Side side[2];
  std::int64_t width;              // columns of a tile
  std::int64_t rows, tiles;        // rows of positions in a tile, tiles of a plane
  std::int64_t elements, results;  // of a tile's pixels, and of one kind of its results

  // `gradient`: of the input, where dy is read and the positions are pixels of x, a stride apart.
  // `at_once`: the rows of a tile, as many as fit unless given.
  DepthwiseCut(const ConvLayout& of, bool gradient, std::int64_t at_once = 0) noexcept
      : side{side_of(of, 0, gradient), side_of(of, 1, gradient)},
        width(side[1].positions + side[1].extra) {
    const std::int64_t kinds = side[0].results * side[1].results, phases = phases_of_pixels();
    const std::int64_t fit = kTileElements / std::max<std::int64_t>(1, width);
    if (at_once == 0) at_once = (fit - phases * side[0].extra) / (phases + kinds);
    rows = std::clamp<std::int64_t>(at_once, 1, std::max<std::int64_t>(1, side[0].positions));
    tiles = divide_up(side[0].positions, rows);
    elements = phases * plane() + width + kBlock<float>;
    results = rows * width + kBlock<float>;
  }
  std::int64_t phases_of_pixels() const noexcept { return side[0].phases * side[1].phases; }
  std::int64_t plane() const noexcept { return (rows + side[0].extra) * width; }
  std::int64_t all_elements() const noexcept {
    return elements + side[0].results * side[1].results * results;
  }

  // Whether to work so: a wide image takes tiles of im2col's size at most. The gradient of the
  // input adds up the filters, which a product does better where they are many.
  static bool suits(const ConvLayout& of, bool gradient) noexcept {
    constexpr std::int64_t kMost = 64 * 1024;
    return of.channels == 1 && of.filters > 0 && (!gradient || of.filters <= 4) && of.taps() > 1 &&
           std::max(of.stride[0], of.stride[1]) <= 2 &&
           DepthwiseCut(of, gradient).all_elements() <= kMost;
  }

 private:
  static Side side_of(const ConvLayout& of, int s, bool gradient) noexcept {
    const std::int64_t pixels = s == 0 ? of.height : of.width;
    const std::int64_t places = s == 0 ? of.out_height : of.out_width;
    const std::int64_t taps = s == 0 ? of.kernel_height : of.kernel_width;
    const std::int64_t stride = of.stride[s], padding = of.padding[s],
                       reach = (taps - 1) * of.dilation[s];
    if (!gradient)
      return {pixels, places, stride, std::min(stride, reach + 1), -padding, 1, reach / stride};
    const std::int64_t from = -divide_up(std::max<std::int64_t>(0, reach - padding), stride) +
                              std::max<std::int64_t>(0, padding - reach) / stride;
    return {places,
            divide_up(pixels, stride),
            1,
            1,
            from,
            stride,
            (stride - 1 + padding) / stride - from};
  }
};

// The taps of each kind of result, as weights and distances in the tile. `memory` has room for two
// numbers a tap, or is null for none.
class DepthwiseTaps {
 public:
  DepthwiseTaps(const ConvLayout& of, const DepthwiseCut& cut, bool gradient,
                std::int32_t* memory) noexcept
      : offsets_(memory), indices_(memory + of.taps()) {
    if (memory == nullptr) return;
    for (std::int64_t y = 0; y < cut.side[0].results; ++y)
      for (std::int64_t x = 0; x < cut.side[1].results; ++x) {
        for (std::int64_t tap = 0; tap < of.taps(); ++tap) {
          const std::int64_t at[] = {tap / of.kernel_width, tap % of.kernel_width}, kind[] = {y, x};
          std::int64_t offset[2], phase[2];
          bool reads = true;
          for (int s = 0; s < 2; ++s) {
            const std::int64_t distance = at[s] * of.dilation[s], stride = of.stride[s];
            const std::int64_t from =
                gradient ? kind[s] + of.padding[s] - distance - cut.side[s].origin * stride
                         : distance;
            offset[s] = from / stride;
            phase[s] = from % stride;
            reads = reads && (!gradient || phase[s] == 0);
          }
          if (!reads) continue;
          const std::int64_t plane = gradient ? 0 : phase[0] * cut.side[1].phases + phase[1];
          offsets_[end_] =
              static_cast<std::int32_t>(plane * cut.plane() + offset[0] * cut.width + offset[1]);
          indices_[end_++] = static_cast<std::int32_t>(tap);
        }
        ends_[++kinds_] = end_;
      }
  }

  // The distance of a tap; of a convolution, whose results are of one kind.
  std::int64_t offset(std::int64_t tap) const noexcept { return offsets_[tap]; }

  // to[i, j] = start, and with accumulate what it is, + the sum over a kind's taps of weight times
  // the tile's element at that distance. Whole blocks are written; the next rows write over what is
  // too much.
  template <class T>
  void add_up(std::int64_t kind, const DepthwiseCut& cut, const T* tile, const T* weights,
              std::int64_t rows, std::int64_t columns, T start, bool accumulate,
              T* to) const noexcept {
    const auto blocks = [&]<int kRows, int kBlocks>(std::integer_sequence<int, kRows, kBlocks>,
                                                    std::int64_t i, std::int64_t j) {
      Block<T> sums[kRows][kBlocks];
      for (auto& row : sums)
        for (auto& block : row) block = start;
      for (int tap = ends_[kind]; tap < ends_[kind + 1]; ++tap) {
        const Block<T> weight = weights[indices_[tap]];
        const T* const from = tile + i * cut.width + j + offsets_[tap];
        for (int r = 0; r < kRows; ++r)
          for (int b = 0; b < kBlocks; ++b)
            sums[r][b] += weight * load(from + r * cut.width + b * kBlock<T>);
      }
      T* const out = to + i * columns + j;
      const auto put = [&](const auto& place) {
        for (int r = 0; r < kRows; ++r)
          for (int b = 0; b < kBlocks; ++b)
            place(r * columns + b * kBlock<T>, columns - j - b * kBlock<T>, sums[r][b]);
      };
      const std::int64_t left = (rows - i) * columns - j;  // elements from `out` on
      if (accumulate)
        put([=](std::int64_t at, std::int64_t count, const Block<T>& block) {
          store_some(out + at, block + load_some(out + at, count), count);
        });
      else if ((kRows - 1) * columns + kBlocks * kBlock<T> <= left)
        put([=](std::int64_t at, std::int64_t, const Block<T>& block) { store(out + at, block); });
      else
        put([=](std::int64_t at, std::int64_t, const Block<T>& block) {
          if (at < left) store_some(out + at, block, left - at);
        });
    };
    // The last columns first, whose blocks reach into the next row.
    const auto some_rows = [&]<int kRows>(std::integral_constant<int, kRows>, std::int64_t i) {
      std::int64_t j = (columns - 1) / kBlock<T>;
      if (j % 2 == 0) blocks(std::integer_sequence<int, kRows, 1>{}, i, j-- * kBlock<T>);
      if constexpr (kRows <= 2)
        for (; j > 0; j -= 2)
          blocks(std::integer_sequence<int, kRows, 2>{}, i, (j - 1) * kBlock<T>);
    };
    std::int64_t i = 0;
    if (columns <= kBlock<T>)
      for (; i + 4 <= rows; i += 4) some_rows(std::integral_constant<int, 4>{}, i);
    for (; i + 2 <= rows; i += 2) some_rows(std::integral_constant<int, 2>{}, i);
    if (i < rows) some_rows(std::integral_constant<int, 1>{}, i);
  }

  // dw[tap] += the sum of dy[i] tile[i + offset], for i < count and up to the end of a vector.
  template <class T>
  void add_products(const T* tile, const T* dy, std::int64_t count, T* dw) const noexcept {
    int tap = 0;
    for (; tap + 3 < end_; tap += 9) some_products<9>(tap, tile, dy, count, dw);
    for (; tap < end_; tap += 3) some_products<3>(tap, tile, dy, count, dw);
  }

 private:
  // add_products() for kTaps taps, or as many as there are.
  template <int kTaps, class T>
  void some_products(int first, const T* tile, const T* dy, std::int64_t count,
                     T* dw) const noexcept {
    using Anywhere = typename LanesOf<T, kLanes<T>>::anywhere;
    const auto at = [](const T* from) -> Vector<T> {
      return *reinterpret_cast<const Anywhere*>(from);
    };
    const T* from[kTaps];
    Vector<T> sums[kTaps];
    for (int k = 0; k < kTaps; ++k) {
      from[k] = tile + offsets_[std::min(first + k, end_ - 1)];
      sums[k] = Vector<T>{};
    }
    for (std::int64_t i = 0; i < count; i += kLanes<T>) {
      const Vector<T> g = at(dy + i);
      for (int k = 0; k < kTaps; ++k) sums[k] += g * at(from[k] + i);
    }
    for (int k = 0; k < kTaps && first + k < end_; ++k)
      dw[first + k] += static_cast<T>(detail::fold<double, kLanes<double>>(
          detail::widen(sums[k]), [](auto x, auto y) { return x + y; }));
  }

  std::int32_t *offsets_, *indices_;
  int ends_[5] = {}, kinds_ = 0, end_ = 0;
};

// to = 0 in whole blocks.
template <class T>
void clear(T* to, std::int64_t count) noexcept {
  for (std::int64_t i = 0; i < count; i += kBlock<T>) store(to + i, Block<T>(T(0)));
}

template <class T, int... I>
Vector<T> every_second(const T* from, std::integer_sequence<int, I...>) noexcept {
  using Anywhere = typename LanesOf<T, kLanes<T>>::anywhere;
  const auto at = [&](int i) -> Vector<T> { return *reinterpret_cast<const Anywhere*>(from + i); };
  return __builtin_shufflevector(at(0), at(kLanes<T>), (2 * I)...);
}

// Copies `count` pixels, a step apart, to neighbouring places, in whole blocks where
// there are `readable` ones from the first on.
template <class T>
void copy_apart(const T* from, std::int64_t readable, std::int64_t step, std::int64_t count,
                T* to) noexcept {
  if (step > 2 || step * round_up(count, kBlock<T>) > readable)
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[step * i];
  else if (step == 1)
    for (std::int64_t i = 0; i < count; i += kBlock<T>) store(to + i, load(from + i));
  else
    for (std::int64_t i = 0; i < count; i += kLanes<T>)
      *reinterpret_cast<typename LanesOf<T, kLanes<T>>::anywhere*>(to + i) =
          every_second(from + 2 * i, std::make_integer_sequence<int, kLanes<T>>());
}

// Copies what the rows of positions from `first` on read of a plane, from left to right, so that
// whole blocks may reach too far.
template <class T>
void copy_padded(const DepthwiseCut& cut, const T* x, std::int64_t first, T* tile) noexcept {
  const auto &down = cut.side[0], &right = cut.side[1];
  for (std::int64_t a = 0; a < down.phases; ++a)
    for (std::int64_t b = 0; b < right.phases; ++b) {
      const std::int64_t left = right.origin + b;  // the pixel of column 0
      const std::int64_t from =
          std::clamp<std::int64_t>(left < 0 ? divide_up(-left, right.step) : 0, 0, cut.width);
      const std::int64_t inside = right.source - left;
      const std::int64_t to =
          std::clamp<std::int64_t>(inside > 0 ? divide_up(inside, right.step) : 0, from, cut.width);
      clear(tile, from);
      for (std::int64_t i = 0; i < cut.rows + down.extra; ++i, tile += cut.width) {
        const std::int64_t row = (first + i) * down.step + a + down.origin;
        const std::int64_t at = row * right.source + left + from * right.step;
        if (row < 0 || row >= down.source)
          clear(tile + from, to - from);
        else if (from < to)
          copy_apart(x + at, down.source * right.source - at, right.step, to - from, tile + from);
        clear(tile + to, cut.width - to + from);  // and left of the next row
      }
    }
  std::fill_n(tile, cut.width + kBlock<float>, T{});  // the last tap reads to the end of a vector
}

// y of a piece, some rows of a plane, for each filter of its group.
template <class T>
void depthwise(const ConvLayout& of, const DepthwiseCut& cut, const DepthwiseTaps& taps, const T* x,
               const T* weights, const T* bias, std::int64_t piece, T* tile, T* y) noexcept {
  const std::int64_t plane = piece / cut.tiles, first = piece % cut.tiles * cut.rows;
  const std::int64_t rows = std::min(cut.rows, of.out_height - first);
  copy_padded(cut, x + plane * of.pixels(), first, tile);
  for (std::int64_t f = 0; f < of.filters; ++f) {
    const std::int64_t filter = plane % of.groups * of.filters + f;
    taps.add_up(0, cut, tile, weights + filter * of.taps(), rows, of.out_width,
                bias == nullptr ? T{} : bias[filter], false,
                y + (plane * of.filters + f) * of.places() + first * of.out_width);
  }
}

// dx of a piece, the pixels of some rows of positions in a plane.
template <class T>
void depthwise_input_gradient(const ConvLayout& of, const DepthwiseCut& cut,
                              const DepthwiseTaps& taps, const T* dy, const T* weights,
                              const T* bias, std::int64_t piece, T* tile, T* dx) noexcept {
  const std::int64_t plane = piece / cut.tiles, group = plane % of.groups;
  const std::int64_t first = piece % cut.tiles * cut.rows;
  const std::int64_t rows = std::min(cut.rows, cut.side[0].positions - first);
  const std::int64_t across = cut.side[1].results, columns = cut.side[1].positions;
  const bool in_place = cut.side[0].results * across == 1;
  T* const to = dx + plane * of.pixels() + first * of.stride[0] * of.width;
  T* const results = in_place ? to : tile + cut.elements;
  for (std::int64_t f = 0; f < of.filters; ++f) {
    copy_padded(cut, dy + (plane * of.filters + f) * of.places(), first, tile);
    for (std::int64_t kind = 0; kind < cut.side[0].results * across; ++kind)
      taps.add_up(kind, cut, tile, weights + (group * of.filters + f) * of.taps(), rows, columns,
                  f > 0 || bias == nullptr ? T{} : bias[group], f > 0,
                  results + kind * cut.results);
  }
  if (in_place) return;
  const std::int64_t last = std::min(rows * of.stride[0], of.height - first * of.stride[0]);
  for (std::int64_t i = 0; i < last; ++i) {
    const T* const from =
        results + i % of.stride[0] * across * cut.results + i / of.stride[0] * columns;
    T* const pixels = to + i * of.width;
    if (across == 1) {
      std::copy_n(from, of.width, pixels);
      continue;
    }
    for (std::int64_t j = 0; j < of.width / 2; ++j) {
      pixels[2 * j] = from[j];
      pixels[2 * j + 1] = from[cut.results + j];
    }
    if (of.width % 2 != 0) pixels[of.width - 1] = from[of.width / 2];
  }
}

// Adds what an image has to the gradient of the weights of a group.
template <class T>
void depthwise_weight_gradient(const ConvLayout& of, const DepthwiseCut& cut,
                               const DepthwiseTaps& taps, const T* x, const T* dy, T* tile,
                               T* dw) noexcept {
  T* const results = tile + cut.elements;
  for (std::int64_t first = 0; first < of.out_height; first += cut.rows) {
    const std::int64_t rows = std::min(cut.rows, of.out_height - first);
    copy_padded(cut, x, first, tile);
    for (std::int64_t f = 0; f < of.filters; ++f) {
      const T* const from = dy + f * of.places() + first * of.out_width;
      T* to = results;
      for (std::int64_t i = 0; i < rows; ++i, to += cut.width) {
        copy_apart(from + i * of.out_width, (of.out_height - first - i) * of.out_width, 1,
                   of.out_width, to);
        clear(to + of.out_width, cut.width - of.out_width);
      }
      clear(to, kBlock<T>);
      taps.add_products(tile, results, rows * cut.width, dw + f * of.taps());
    }
  }
}

}  // namespace ebb::cpu
