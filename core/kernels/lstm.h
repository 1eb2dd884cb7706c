#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb {

// A stack of LSTM layers over a whole sequence. Gates in the order i, f, g, o (PyTorch's):
//   a = x_t W + h_{t-1} R + b;  c_t = sigmoid(f) c_{t-1} + sigmoid(i) tanh(g);
//   h_t = sigmoid(o) tanh(c_t)
struct LstmAttributes {
  std::int32_t layers = 1;
  std::int32_t hidden = 0;
  std::int32_t has_state = 0;    // inputs h0, c0 are there; otherwise zeros
  std::int32_t d_given = 0;      // backward: bit 0 d_sequence, 1 d_hidden, 2 d_cell are given
  double dropout = 0;            // between layers; > 0: an input `draw` i64[2] is there
  std::int64_t has_lengths = 0;  // an input `lengths` i64[batch] is there
};

// Forward inputs:  x [batch, time, in], (h0, c0 [layers, batch, hidden])?, (draw i64[2])?,
//                  (lengths i64[batch])?, then per layer W [in_l, 4 hidden], R [hidden, 4 hidden],
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
// l * kLstmLayerElements on: more than one layer has, and few enough for millions of layers.
inline constexpr std::int64_t kLstmLayerElements = std::int64_t{1} << 40;
inline constexpr int kLstmBackwardReserve = 0, kLstmBackwardSequence = 1, kLstmBackwardX = 2;

namespace cpu {
Status lstm(const KernelContext&);
Status lstm_backward(const KernelContext&);
// workspace_bytes, and reserve_bytes for the reserve.
MemoryNeeds lstm_memory(const MemoryQuery&);
MemoryNeeds lstm_backward_memory(const MemoryQuery&);
}  // namespace cpu

namespace cuda {
Status lstm(const KernelContext&);
Status lstm_backward(const KernelContext&);
MemoryNeeds lstm_memory(const MemoryQuery&);
MemoryNeeds lstm_backward_memory(const MemoryQuery&);
detail::Ref<Prepared> lstm_prepare(const MemoryQuery&);
detail::Ref<Prepared> lstm_backward_prepare(const MemoryQuery&);
}  // namespace cuda
}  // namespace ebb
