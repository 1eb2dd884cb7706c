#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb {

// The cell of a stack of recurrent layers over a whole sequence.
enum class RecurrentCell : std::int32_t {
  // Gates in the order i, f, g, o (PyTorch's):
  //   a = x_t W + h_{t-1} R + b;  c_t = sigmoid(f) c_{t-1} + sigmoid(i) tanh(g);
  //   h_t = sigmoid(o) tanh(c_t)
  lstm,
  // W and R have the gates r, z, n, the bias r, z, n and q:
  //   r, z = sigmoid(x_t W + h_{t-1} R + b);  q = h_{t-1} R_n + b_q;
  //   n = tanh(x_t W_n + b_n + r q);  h_t = (1 - z) n + z h_{t-1}
  gru
};

struct RecurrentAttributes {
  std::int32_t layers = 1;
  std::int32_t hidden = 0;
  std::int32_t has_state = 0;    // the initial states are inputs; otherwise zeros
  std::int32_t d_given = 0;      // backward: bit 0 d_sequence, 1 d_hidden, 2 d_cell are given
  double dropout = 0;            // between layers; > 0: an input `draw` i64[2] is there
  std::int32_t has_lengths = 0;  // an input `lengths` i64[batch] is there
  RecurrentCell cell = RecurrentCell::lstm;

  bool has_cell() const noexcept { return cell == RecurrentCell::lstm; }
};

// A GRU has no c0, `cell` and d_cell.
//
//   Forward inputs:  x [batch, time, in], (h0, c0 [layers, batch, hidden])?, (draw i64[2])?,
//                    (lengths i64[batch])?, then per layer W [in_l, columns], R [hidden, columns],
//                    b [4 hidden].
//   Forward outputs: sequence [batch, time, hidden] (of the last layer), hidden and cell
//                    [layers, batch, hidden] (after the last step), reserve u8[n] (optional: null
//                    data when no gradient will be asked for). For f16 and bf16 it may hold floats:
//                    gates and cells are then not rounded on the way to the gradient.
//   Backward inputs: reserve, sequence, then the forward inputs, then d_sequence, d_hidden, d_cell,
//                    as far as d_given names them. Where the reserve may be destroyed, the
//                    gradients of the gates are written over the gates, and a chunk's scratch is in
//                    the cells.
//   Backward outputs: the gradients of the forward inputs except draw and lengths, in their order,
//                    without unwanted ones. Weight gradients are set, not added. dx may be x.
//
// Of row b of the batch only the first lengths[b] steps count. The states after them are its last
// states. From there on its sequence and the gradients of its x are 0, and x must be finite (it is
// multiplied by 0). A length outside [0, time] makes the whole row NaN.
//
// Dropout of the input [batch, time, hidden] of layer l > 0 takes the elements of the draw from l *
// kRecurrentLayerElements on. One layer has fewer elements, and millions of layers fit.
inline constexpr std::int64_t kRecurrentLayerElements = std::int64_t{1} << 40;
inline constexpr int kRecurrentBackwardReserve = 0, kRecurrentBackwardSequence = 1,
                     kRecurrentBackwardX = 2;

namespace cpu {
Status recurrent(const KernelContext&);
Status recurrent_backward(const KernelContext&);
// workspace_bytes, and reserve_bytes for the reserve.
MemoryFunction recurrent_memory, recurrent_backward_memory;
}  // namespace cpu

}  // namespace ebb
