// The pointwise part of a step of a recurrent layer, and dropout between its layers.
#pragma once
#include "ebb/core/kernels/status.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/plans/recurrent_layout.h"
#include "ebb/kernels/cuda/stream.h"

namespace ebb::cuda {

// Rows of the batch of one step, stride elements apart; null where there is none.
template <class T>
struct StepRows {
  T* data = nullptr;
  std::int64_t stride = 0;
};

// Where the steps of a batch end: after lengths[row] of them, at `time` where that is null.
struct StepEnds {
  const std::int64_t* lengths = nullptr;
  std::int64_t t = 0, time = 0;  // this step, of all
};

template <class T>
struct CellForward {
  StepRows<T> gates;   // LSTM: x W + h R of the gates, next to each other, GRU: x W; with keep
                       // overwritten by the activated gates, a GRU's four being r, z, q, n
  const T* recurrent;  // GRU: h R [batch, 3 hidden]; null: zeros
  const T* bias;
  StepRows<const Accumulate<T>> cell_before;  // cells are an LSTM's
  const T* first_cell;  // [batch, hidden]: in the place of one that is null; null: zeros
  StepRows<const T> hidden_before;  // GRU
  StepRows<Accumulate<T>> cell;     // may be cell_before
  StepRows<T> hidden;               // may be hidden_before
  T* last_hidden;         // [batch, hidden] both: a second place for the last step of each row, or
  T* last_cell;           // null
  const T* first_hidden;  // [batch, hidden]: what is the last of a row without steps; null: zeros
  StepEnds ends;
  bool keep;
};

// What a step hands to the one before beside the product of d_gates by R is carried: an LSTM's
// gradient of the cell, a GRU's part of that of the state.
template <class T>
struct CellBackward {
  StepRows<const T> gates;  // activated
  StepRows<const Accumulate<T>> cell, cell_before;
  const T* first_cell;                            // as in CellForward
  StepRows<const T> hidden_before;                // GRU
  StepRows<const T> d_hidden, d_output;           // from the step after, and from above
  StepRows<const Accumulate<T>> d_carried_after;  // from the step after
  const T* d_last_cell;               // [batch, hidden]: for a row whose last step this is, or null
  StepRows<Accumulate<T>> d_carried;  // for the step before, or null; may be d_carried_after
  T* d_first;                         // [batch, hidden]: a second place, or null
  const T* d_last_hidden;  // [batch, hidden]: in the place of d_hidden for a row whose last step
                           // this is; null: zeros
  StepEnds ends;
  StepRows<T> d_gates;  // before activation; may be gates
};

template <class T>
Status cell_forward(cudaStream_t stream, const RecurrentSizes& size,
                    const CellForward<T>& cell) noexcept;
template <class T>
Status cell_backward(cudaStream_t stream, const RecurrentSizes& size,
                     const CellBackward<T>& cell) noexcept;

// The gradient of the initial hidden state [batch, hidden] of rows without steps: d_last_hidden, or
// zeros where that is null.
template <class T>
Status pass_by(cudaStream_t stream, const RecurrentSizes& size, const std::int64_t* lengths,
               const T* d_last_hidden, T* d_first_hidden) noexcept;

// Dropout of the input [batch, time, hidden] of a layer, by the rule of lstm.h; time-major rows
// instead where that is said. to may be from.
template <class T>
Status drop(cudaStream_t stream, const RecurrentSizes& size, const T* from, T* to,
            double probability, const std::int64_t* draw, std::int64_t layer,
            bool time_major) noexcept;

}  // namespace ebb::cuda
