#pragma once
#include "ebb/core/base/host_device.h"
#include "ebb/core/kernels/recurrent.h"

namespace ebb {

// The indices of a stack's forward inputs and backward outputs. Backward has no outputs for `draw`
// and `lengths`, which have no gradient.
struct RecurrentOperands {
  std::int64_t h0 = -1, c0 = -1, draw = -1, lengths = -1, weights, count;
  std::size_t reserve;  // its index in the forward outputs, after the states

  explicit RecurrentOperands(const RecurrentAttributes& attributes) noexcept {
    std::int64_t next = 1;
    if (attributes.has_state != 0) {
      h0 = next++;
      if (attributes.has_cell()) c0 = next++;
    }
    if (attributes.dropout > 0) draw = next++;
    if (attributes.has_lengths != 0) lengths = next++;
    weights = next;
    count = weights + 3 * attributes.layers;
    reserve = attributes.has_cell() ? 3 : 2;
  }
  std::size_t w(std::int64_t layer) const noexcept {
    return static_cast<std::size_t>(weights + 3 * layer);
  }
  std::size_t r(std::int64_t layer) const noexcept { return w(layer) + 1; }
  std::size_t b(std::int64_t layer) const noexcept { return w(layer) + 2; }
  bool has_gradient(std::int64_t input) const noexcept { return input != draw && input != lengths; }
  // The index in the backward outputs of a forward input's gradient.
  std::size_t gradient(std::size_t input) const noexcept {
    const auto before = [&](std::int64_t left_out) {
      return left_out >= 0 && input > static_cast<std::size_t>(left_out) ? std::size_t{1} : 0;
    };
    return input - before(draw) - before(lengths);
  }
};

// The number of steps of a row that count.
struct RowLength {
  std::int64_t steps;
  bool is_valid;
};
// lengths: null where all steps count.
EBB_HOST_DEVICE inline RowLength row_length(const std::int64_t* lengths, std::int64_t row,
                                            std::int64_t time) {
  if (lengths == nullptr) return {time, true};
  const bool is_valid = lengths[row] >= 0 && lengths[row] <= time;
  return {is_valid ? lengths[row] : time, is_valid};
}

}  // namespace ebb
