#pragma once
#include <algorithm>
#include <cstdint>

#include "ebb/core/kernels/conv.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/vector_block.h"

namespace ebb::cpu {

// A copy of what some rows of a convolution's positions read of a plane: with its padding, and with
// columns of a stride apart next to each other. Each tap reads it at a fixed distance from the
// position.
struct PaddedPlane {
  struct Side {
    std::int64_t pixels, stride, padding, dilation;
    std::int64_t phases;  // pixel = index * stride + phase - padding
    std::int64_t extra;   // indices beyond the positions

    Side(const ConvLayout& of, int s) noexcept
        : pixels(s == 0 ? of.height : of.width),
          stride(of.stride[s]),
          padding(of.padding[s]),
          dilation(of.dilation[s]) {
      const std::int64_t reach = ((s == 0 ? of.kernel_height : of.kernel_width) - 1) * dilation;
      phases = std::min(stride, reach + 1);
      extra = reach / stride;
    }
  };
  Side down, right;
  std::int64_t rows, width;  // of a phase

  PaddedPlane(const ConvLayout& of, std::int64_t positions) noexcept
      : down(of, 0),
        right(of, 1),
        rows(std::min(positions, of.out_height) + down.extra),
        width(of.out_width + right.extra) {}

  std::int64_t elements() const noexcept {
    return down.phases * right.phases * rows * width + width + kBlock<float>;
  }
  std::int64_t distance(std::int64_t y, std::int64_t x) const noexcept {
    y *= down.dilation;
    x *= right.dilation;
    const std::int64_t phase = y % down.stride * right.phases + x % right.stride;
    return (phase * rows + y / down.stride) * width + x / right.stride;
  }
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

// Copies what the rows of positions from `first` on read of x, from left to right, so that whole
// blocks may reach too far.
template <class T>
void copy_padded(const PaddedPlane& plane, const T* x, std::int64_t first, T* to) noexcept {
  const auto &down = plane.down, &right = plane.right;
  for (std::int64_t a = 0; a < down.phases; ++a)
    for (std::int64_t b = 0; b < right.phases; ++b) {
      const std::int64_t left = b - right.padding;  // the pixel of column 0
      const std::int64_t begin =
          std::min(plane.width, divide_up(std::max<std::int64_t>(0, -left), right.stride));
      const std::int64_t inside = std::max<std::int64_t>(0, right.pixels - left);
      const std::int64_t end = std::clamp(divide_up(inside, right.stride), begin, plane.width);
      clear(to, begin);
      for (std::int64_t i = 0; i < plane.rows; ++i, to += plane.width) {
        const std::int64_t row = (first + i) * down.stride + a - down.padding;
        const std::int64_t at = row * right.pixels + left + begin * right.stride;
        if (row < 0 || row >= down.pixels)
          clear(to + begin, end - begin);
        else if (begin < end)
          copy_apart(x + at, down.pixels * right.pixels - at, right.stride, end - begin,
                     to + begin);
        clear(to + end, plane.width - end + begin);  // and left of the next row
      }
    }
  std::fill_n(to, plane.width + kBlock<float>, T{});  // the last tap reads to the end of a vector
}

}  // namespace ebb::cpu
