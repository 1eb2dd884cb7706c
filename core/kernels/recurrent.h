#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb {

// A stack of recurrent layers over a whole sequence, of one cell or the other.
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
  std::int64_t columns() const noexcept {  // of W and R
    return (cell == RecurrentCell::lstm ? 4 : 3) * std::int64_t{hidden};
  }
};

// What h0, c0, `cell` and d_cell are said of here, an LSTM alone has.
//
// Forward inputs:  x [batch, time, in], (h0, c0 [layers, batch, hidden])?, (draw i64[2])?,
//                  (lengths i64[batch])?, then per layer W [in_l, columns], R [hidden, columns],
//                  b [4 hidden].
// Forward outputs: sequence [batch, time, hidden] (of the last layer), hidden and cell
//                  [layers, batch, hidden] (after the last step), reserve u8[n] (optional: null
//                  data when no gradient will be asked for). For f16 and bf16 it may hold floats:
//                  gates and cells are then not rounded on the way to the gradient.
// Backward inputs: reserve, sequence, then the forward inputs, then those of d_sequence, d_hidden,
//                  d_cell that d_given names. Where the reserve may be destroyed, the gradients of
//                  the gates are written over the gates, and a chunk's scratch is in the cells.
// Backward outputs: one per forward input except draw and lengths (in the order of the forward
// inputs), those
//                  that somebody reads. Weight gradients are set, not added. dx may be x.
// Of row b of the batch only the first lengths[b] steps count: what its states are then is its last
// state, its sequence is 0 from there on, as are the gradients of its x, which has to be finite
// there (it is multiplied by 0). A length outside [0, time] makes all of the row NaN.
// Dropout of layer l > 0's input [batch, time, hidden] takes the elements of the draw from
// l * kRecurrentLayerElements on: more than one layer has, and few enough for millions of layers.
inline constexpr std::int64_t kRecurrentLayerElements = std::int64_t{1} << 40;
inline constexpr int kRecurrentBackwardReserve = 0, kRecurrentBackwardSequence = 1,
                     kRecurrentBackwardX = 2;

namespace cpu {
Status recurrent(const KernelContext&);
Status recurrent_backward(const KernelContext&);
// workspace_bytes, and reserve_bytes for the reserve.
MemoryNeeds recurrent_memory(const MemoryQuery&);
MemoryNeeds recurrent_backward_memory(const MemoryQuery&);
}  // namespace cpu

namespace cuda {
Status recurrent(const KernelContext&);
Status recurrent_backward(const KernelContext&);
MemoryNeeds recurrent_memory(const MemoryQuery&);
MemoryNeeds recurrent_backward_memory(const MemoryQuery&);
detail::Ref<Prepared> recurrent_prepare(const MemoryQuery&);
detail::Ref<Prepared> recurrent_backward_prepare(const MemoryQuery&);
}  // namespace cuda
}  // namespace ebb
