#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ebb/core/kernels/carver.h"
#include "ebb/core/kernels/recurrent_operands.h"
#include "ebb/kernels/cpu/column_sum.h"
#include "ebb/kernels/cpu/pieces.h"

// How the CPU cuts the work of a stack of recurrent layers, and the layout of its pieces. Inside,
// everything is time-major: row t * batch + b.
//
// Forward goes step by step through all layers. Backward takes the sequence in chunks of steps,
// each through all layers. So its workspace does not grow with the sequence, and a chunk's
// gradients are still in cache when the weights' gradients read them, in one product over all its
// steps.
namespace ebb::cpu {

// Copies units of a state, or a gradient of one: null for zeros.
template <class T>
void copy_units(const T* from, std::int64_t units, T* to) noexcept {
  if (from == nullptr)
    std::fill_n(to, units, T(0));
  else
    std::copy_n(from, units, to);
}
// Null stays null.
template <class T>
T* advanced(T* from, std::int64_t elements) noexcept {
  return from == nullptr ? nullptr : from + elements;
}

struct RecurrentCut : RecurrentSizes {
  std::int64_t chunk;  // steps
  std::int64_t strip;  // hidden units that one piece of a step computes: its columns of all gates
  std::int64_t strips;
  std::int64_t block;  // rows of the batch in one piece of a step
  std::int64_t blocks;

  RecurrentCut(const Spec& x, const RecurrentAttributes& attributes) noexcept
      : RecurrentSizes(x, attributes) {
    constexpr std::int64_t kChunkRows = 512, kStripUnits = 64, kRows = 32;
    chunk = std::max<std::int64_t>(
        1, std::min(time, divide_up(kChunkRows, std::max<std::int64_t>(1, batch))));
    strips = std::max<std::int64_t>(1, divide_up(hidden, kStripUnits));
    strip = round_up(std::max<std::int64_t>(1, divide_up(hidden, strips)), 16);
    blocks = std::max<std::int64_t>(1, divide_up(batch, kRows));
    block = divide_up(batch, blocks);
  }

  // The number of columns of W and of R for each hidden unit. The bias and the kept gates have
  // four.
  std::int64_t parts() const noexcept { return has_cell ? 4 : 3; }
  // A step's products: an LSTM's are added up, a GRU's side by side.
  std::int64_t products() const noexcept { return has_cell ? 4 : 6; }

  // Calls body(row, rows, unit, units) for each piece of a step, over all threads.
  template <class Body>
  void for_step_pieces(const Body& body) const {
    Workers::instance().run(blocks * strips, [&](std::int64_t piece) {
      const std::int64_t row = piece / strips * block, unit = piece % strips * strip;
      body(row, std::min(block, batch - row), unit, std::min(strip, hidden - unit));
    });
  }
  // Calls body(offset in time-major rows, offset in [batch, time, width]) for each row of some
  // steps from step t on, over all threads.
  template <class Body>
  void for_chunk_rows(std::int64_t width, std::int64_t t, std::int64_t steps,
                      const Body& body) const {
    for_items(batch * steps, rows_per_piece(width), [=, this, &body](std::int64_t row) {
      body(row * width, (row % batch * time + t + row / batch) * width);
    });
  }
};

// Kept by forward for backward. Of every layer: the activated gates [time, batch, 4, hidden], i, f,
// g, o with the cells [time, batch, hidden], or r, z, q, n. Of all layers but the last, whose
// output is `sequence`: the hidden states [time, batch, hidden]. tanh of the cells and dropout's
// masks are computed again.
template <class T>
struct RecurrentReserve {
  RecurrentSizes size;
  T* gates;
  T* cells;
  T* hidden;
  std::size_t bytes;

  RecurrentReserve(const RecurrentSizes& sizes, void* base) noexcept : size(sizes) {
    Carver carver(base);
    gates = carver.take<T>(size.layers * size.time * 4 * size.state());
    cells = carver.take<T>(size.has_cell ? size.layers * size.time * size.state() : 0);
    hidden = carver.take<T>((size.layers - 1) * size.time * size.state());
    bytes = carver.bytes();
  }
  T* gates_at(std::int64_t layer, std::int64_t t) const noexcept {
    return gates + (layer * size.time + t) * 4 * size.state();
  }
  T* cells_at(std::int64_t layer, std::int64_t t) const noexcept {
    return cells + (layer * size.time + t) * size.state();
  }
  T* hidden_at(std::int64_t layer, std::int64_t t) const noexcept {
    return hidden + (layer * size.time + t) * size.state();
  }
};

}  // namespace ebb::cpu
