#pragma once
#include <algorithm>
#include <cstdint>

#include "ebb/core/kernels/workers.h"

namespace ebb::cpu {

// Elements of pointwise work that are worth a piece of their own.
inline constexpr std::int64_t kPieceElements = 32 * 1024;

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) noexcept {
  return (a + b - 1) / b;
}
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) noexcept {
  return divide_up(a, b) * b;
}

// Calls body(begin, end) for pieces of [0, count), each of `size` (the last may be shorter). The
// pieces depend on nothing else.
template <class Body>
inline void for_pieces(std::int64_t count, std::int64_t size, const Body& body) {
  if (count <= size) {
    if (count > 0) body(std::int64_t{0}, count);
    return;
  }
  Workers::instance().run(divide_up(count, size), [&](std::int64_t piece) {
    body(piece * size, std::min(count, (piece + 1) * size));
  });
}

// Calls body(i) for each i of [0, count), in such pieces.
template <class Body>
inline void for_items(std::int64_t count, std::int64_t size, const Body& body) {
  for_pieces(count, size, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

// Calls body(piece, slot) for each piece, by at most `slots` threads: pieces of one slot run one
// after the other.
template <class Body>
inline void for_slots(std::int64_t pieces, std::int64_t slots, const Body& body) {
  Workers::instance().run(slots, [&](std::int64_t slot) {
    const std::int64_t end = pieces * (slot + 1) / slots;
    for (std::int64_t piece = pieces * slot / slots; piece < end; ++piece) body(piece, slot);
  });
}

// As many rows as make up about kPieceElements, at least one.
constexpr std::int64_t rows_per_piece(std::int64_t row_elements) noexcept {
  return std::max<std::int64_t>(1, kPieceElements / std::max<std::int64_t>(1, row_elements));
}

}  // namespace ebb::cpu
