#pragma once
#include "ebb/core/kernels/lstm.h"

namespace ebb {

// Where forward inputs and backward outputs of an LSTM are. The outputs leave out `draw`.
struct LstmOperands {
  std::int64_t h0 = -1, c0 = -1, draw = -1, weights, count;

  explicit LstmOperands(const LstmAttributes& attributes) noexcept {
    std::int64_t next = 1;
    if (attributes.has_state != 0) {
      h0 = next++;
      c0 = next++;
    }
    if (attributes.dropout > 0) draw = next++;
    weights = next;
    count = weights + 3 * attributes.layers;
  }
  std::size_t w(std::int64_t layer) const noexcept {
    return static_cast<std::size_t>(weights + 3 * layer);
  }
  std::size_t r(std::int64_t layer) const noexcept { return w(layer) + 1; }
  std::size_t b(std::int64_t layer) const noexcept { return w(layer) + 2; }
  // The place among backward's outputs of the gradient of a forward input.
  std::size_t gradient(std::size_t input) const noexcept {
    return draw >= 0 && input > static_cast<std::size_t>(draw) ? input - 1 : input;
  }
};

}  // namespace ebb
