// The pointwise part of a step of a recurrent layer, and dropout between its layers.
#pragma once
#include "ebb/core/kernels/status.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/plans/recurrent_layout.h"
#include "ebb/kernels/cuda/stream.h"

namespace ebb::cuda {

// Rows of the batch in one step, `stride` elements apart; null data: there are none.
template <class T>
struct StepRows {
  T* data = nullptr;
  std::int64_t stride = 0;
};

template <class T>
StepRows<T> rows_at(const Steps<T>& steps, std::int64_t t) noexcept {
  return {steps.at(t), steps.row};
}
// The same to read alone.
template <class T>
StepRows<const T> values_at(const Steps<T>& steps, std::int64_t t) noexcept {
  return {steps.at(t), steps.row};
}

// The ends of a batch's sequences: after lengths[row] steps, or at `time` if lengths is null.
struct StepEnds {
  const std::int64_t* lengths = nullptr;
  std::int64_t t = 0, time = 0;  // this step, and the number of steps
};

template <class T>
struct CellForward {
  StepRows<T> gates;   // LSTM: x W + h R of the gates, next to each other; GRU: x W. With keep
                       // overwritten by the activated gates, for a GRU r, z, q, n
  const T* recurrent;  // GRU: h R [batch, 3 hidden]; null: zeros
  const T* bias;
  StepRows<const Accumulate<T>> cell_before;  // only an LSTM has cells
  const T* first_cell;              // [batch, hidden]: used if cell_before is null; null: zeros
  StepRows<const T> hidden_before;  // GRU
  StepRows<Accumulate<T>> cell;     // may be cell_before
  StepRows<T> hidden;               // may be hidden_before
  T* last_hidden;  // [batch, hidden] both: a second output for each row's last step, or null
  T* last_cell;
  const T* first_hidden;  // [batch, hidden]: last state of a row without steps; null: zeros
  StepEnds ends;
  bool keep;
};

// A step of backward. "Carried" is the gradient that a step hands to the step before without the
// product of d_gates by R: an LSTM's gradient of the cell, a GRU's direct part of the state's
// gradient.
template <class T>
struct CellBackward {
  StepRows<const T> gates;  // activated
  StepRows<const Accumulate<T>> cell, cell_before;
  const T* first_cell;                            // as in CellForward
  StepRows<const T> hidden_before;                // GRU
  StepRows<const T> d_hidden, d_output;           // from the step after, and from the layer above
  StepRows<const Accumulate<T>> d_carried_after;  // from the step after
  const T* d_last_cell;               // [batch, hidden]: for rows whose last step this is; or null
  StepRows<Accumulate<T>> d_carried;  // for the step before, or null; may be d_carried_after
  T* d_first;                         // [batch, hidden]: a second output, or null
  const T* d_last_hidden;  // [batch, hidden]: replaces d_hidden in rows whose last step this is;
                           // null: zeros
  StepEnds ends;
  StepRows<T> d_gates;  // before activation; may be gates
};

template <class T>
struct CellKernels {
  using Call = RecurrentCall<T>;

  static Status forward(const Call& of, const CellForward<T>& step) noexcept;
  static Status backward(const Call& of, const CellBackward<T>& step) noexcept;
  // Writes the gradient of the initial hidden state [batch, hidden] for rows without steps:
  // d_last_hidden, or zeros if that is null. There are lengths.
  static Status gradient_of_unused_state(const Call& of, const T* d_last_hidden,
                                         T* d_first_hidden) noexcept;
  // Dropout of a layer's input [batch, time, hidden], by the rule of core/kernels/recurrent.h; rows
  // are time-major if said so. `to` may be `from`.
  static Status drop(const Call& of, const T* from, T* to, std::int64_t layer,
                     bool time_major) noexcept;
};

}  // namespace ebb::cuda
