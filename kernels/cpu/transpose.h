#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>

#include "ebb/kernels/cpu/vector_block.h"

namespace ebb::cpu {

template <class T, int N>
struct Square {
  Lanes<T, N> rows[N];
};

// Interleaves the lanes of row r of the first half with row r of the second half. Done log2 N times
// it is the transpose. Without loops, so that all of it stays in registers.
template <class T, int N, int... I>
Square<T, N> interleaved(const Square<T, N>& a, std::integer_sequence<int, I...>) noexcept {
  const auto half = [&]<int kFrom>(int row, std::integral_constant<int, kFrom>) {
    return __builtin_shufflevector(a.rows[row / 2], a.rows[row / 2 + N / 2],
                                   (kFrom + I / 2 + I % 2 * N)...);
  };
  return {{half(I, std::integral_constant<int, I % 2 * N / 2>{})...}};
}

template <class T, int N>
Square<T, N> transpose(Square<T, N> square) noexcept {
  constexpr std::make_integer_sequence<int, N> kLanes;
  square = interleaved<T, N>(square, kLanes);
  if constexpr (N >= 4) square = interleaved<T, N>(square, kLanes);
  if constexpr (N >= 8) square = interleaved<T, N>(square, kLanes);
  if constexpr (N >= 16) square = interleaved<T, N>(square, kLanes);
  return square;
}

// A matrix of units to transpose: the distance between its rows in the input, and between the
// columns that they become in the output.
struct Plane {
  std::int64_t from_stride, to_stride;
};

// Transposes a tile of 64 bytes each way, so that every cache line is read and written once, as a
// whole: sixteen bytes by sixteen bytes through a buffer.
template <int kUnit>
void copy_tile(const std::byte* from, std::byte* to, const Plane& plane) noexcept {
  using Words = std::tuple<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;
  using T = std::tuple_element_t<std::bit_width(unsigned{kUnit}) - 1, Words>;
  constexpr int N = 16 / kUnit, kTile = 64 / kUnit;
  using Anywhere = typename LanesOf<T, N>::anywhere;
  alignas(64) std::byte tile[kTile][64];
  for (int row = 0; row < kTile; row += N)
    for (int column = 0; column < kTile; column += N) {
      Square<T, N> square;
      for (int i = 0; i < N; ++i)
        square.rows[i] = *reinterpret_cast<const Anywhere*>(from + (row + i) * plane.from_stride +
                                                            column * kUnit);
      square = transpose<T, N>(square);
      for (int i = 0; i < N; ++i)
        *reinterpret_cast<Anywhere*>(tile[column + i] + row * kUnit) = square.rows[i];
    }
  for (int i = 0; i < kTile; ++i) std::memcpy(to + i * plane.to_stride, tile[i], 64);
}

// Transposes a block of any size within the matrix.
template <int kUnit>
void copy_block(const std::byte* from, std::byte* to, std::int64_t rows, std::int64_t columns,
                const Plane& plane) noexcept {
  constexpr std::int64_t kTile = 64 / kUnit;
  for (std::int64_t column = 0; column < columns; column += kTile)
    for (std::int64_t row = 0; row < rows; row += kTile) {
      const std::byte* const source = from + row * plane.from_stride + column * kUnit;
      std::byte* const target = to + column * plane.to_stride + row * kUnit;
      const std::int64_t m = std::min(kTile, rows - row), n = std::min(kTile, columns - column);
      if constexpr (kUnit <= 8)
        if (m == kTile && n == kTile) {
          copy_tile<kUnit>(source, target, plane);
          continue;
        }
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < m; ++i)
          std::memcpy(target + j * plane.to_stride + i * kUnit,
                      source + i * plane.from_stride + j * kUnit, kUnit);
    }
}

}  // namespace ebb::cpu
