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

// Squares of sixteen bytes each way, of units of so many bytes.
template <int kUnit>
struct UnitSquare {
  using Words = std::tuple<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;
  using T = std::tuple_element_t<std::bit_width(unsigned{kUnit}) - 1, Words>;
  static constexpr int N = 16 / kUnit;
  using Anywhere = typename LanesOf<T, N>::anywhere;

  // The transpose of `rows` rows, where there are N of any.
  static Square<T, N> read(const std::byte* from, std::int64_t stride, std::int64_t rows) noexcept {
    Square<T, N> square;
    for (std::int64_t i = 0; i < N; ++i)
      square.rows[i] = *reinterpret_cast<const Anywhere*>(from + std::min(i, rows - 1) * stride);
    return transpose<T, N>(square);
  }
  static void write(const Lanes<T, N>& row, std::byte* to) noexcept {
    *reinterpret_cast<Anywhere*>(to) = row;
  }
};

// Transposes a tile of 64 bytes each way, so that every cache line is read and written once, as a
// whole: square by square through a buffer.
template <int kUnit>
void copy_tile(const std::byte* from, std::byte* to, const Plane& plane) noexcept {
  using Unit = UnitSquare<kUnit>;
  constexpr int N = Unit::N, kTile = 64 / kUnit;
  alignas(64) std::byte tile[kTile][64];
  for (int row = 0; row < kTile; row += N)
    for (int column = 0; column < kTile; column += N) {
      const auto square =
          Unit::read(from + row * plane.from_stride + column * kUnit, plane.from_stride, N);
      for (int i = 0; i < N; ++i) Unit::write(square.rows[i], tile[column + i] + row * kUnit);
    }
  for (int i = 0; i < kTile; ++i) std::memcpy(to + i * plane.to_stride, tile[i], 64);
}

// Transposes what is no tile, the last squares over parts of those before. A square of few columns
// reads on into the next row; one of few rows writes on into the next column, which is written
// later.
template <int kUnit>
void copy_rest(const std::byte* from, std::byte* to, std::int64_t rows, std::int64_t columns,
               const Plane& plane) noexcept {
  std::int64_t down = 0, right = 0;  // by squares
  if constexpr (kUnit <= 8) {
    using Unit = UnitSquare<kUnit>;
    constexpr std::int64_t N = Unit::N;
    // How many of `count` rows or columns of `others` units each, a stride apart.
    const auto by_squares = [](std::int64_t count, std::int64_t others, std::int64_t stride) {
      if (others >= N || count < N) return count;
      if (others == 0 || stride != others * kUnit) return std::int64_t{0};
      return std::max<std::int64_t>(0, count - (N - 1) / others) / N * N;
    };
    if (rows >= N || columns >= N) {
      down = by_squares(rows, columns, plane.from_stride);
      right = by_squares(columns, rows, plane.to_stride);
    }
    const std::int64_t height = std::min(N, down), width = std::min(N, right);
    for (std::int64_t j = 0; j < right; j += N)
      for (std::int64_t i = 0; i < down; i += N) {
        const std::int64_t row = std::min(i, down - height), column = std::min(j, right - width);
        const auto square =
            Unit::read(from + row * plane.from_stride + column * kUnit, plane.from_stride, height);
        for (std::int64_t k = 0; k < width; ++k)
          Unit::write(square.rows[k], to + (column + k) * plane.to_stride + row * kUnit);
      }
  }
  for (std::int64_t j = down == rows ? right : 0; j < columns; ++j)
    for (std::int64_t i = j < right ? down : 0; i < rows; ++i)
      std::memcpy(to + j * plane.to_stride + i * kUnit, from + i * plane.from_stride + j * kUnit,
                  kUnit);
}

// Transposes a block of any size within the matrix.
template <int kUnit>
void copy_block(const std::byte* from, std::byte* to, std::int64_t rows, std::int64_t columns,
                const Plane& plane) noexcept {
  constexpr std::int64_t kTile = 64 / kUnit;
  std::int64_t down = 0, right = 0;  // by tiles
  if constexpr (kUnit <= 8)
    if (rows >= kTile && columns >= kTile) {
      down = rows / kTile * kTile;
      right = columns / kTile * kTile;
      for (std::int64_t column = 0; column < right; column += kTile)
        for (std::int64_t row = 0; row < down; row += kTile)
          copy_tile<kUnit>(from + row * plane.from_stride + column * kUnit,
                           to + column * plane.to_stride + row * kUnit, plane);
    }
  copy_rest<kUnit>(from + right * kUnit, to + right * plane.to_stride, rows, columns - right,
                   plane);
  copy_rest<kUnit>(from + down * plane.from_stride, to + down * kUnit, rows - down, right, plane);
}

}  // namespace ebb::cpu
