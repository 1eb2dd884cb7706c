// An LSTM as cuDNN computes it, on device pointers.
#pragma once
#include <algorithm>
#include <array>

#include "ebb/tests/emulated_cuda/cudnn/descriptors.h"

namespace ebb::emulated {

// Shapes of one call. x and y are time-major: a step follows the one before after a batch.
struct LstmShape {
  cudnnRNNStruct rnn;
  std::int64_t steps = 0, batch = 0;

  std::int64_t rows() const { return steps * batch; }
  std::int64_t state() const { return batch * rnn.hidden; }  // of a layer
  std::int64_t states() const { return rnn.layers * state(); }
  // Four gates and a cell for each hidden unit of each step, and the hidden state itself of all
  // layers but the last.
  std::int64_t reserve_elements() const { return (6 * rnn.layers - 1) * rows() * rnn.hidden; }
  // The workspace that cuDNN 9 asks for, without what every LSTM has. `small_steps`: values that
  // the persistent algorithm takes for each hidden unit of each step.
  std::int64_t workspace_elements(std::int64_t small_steps) const {
    return weight_elements(rnn) + 6 * rnn.layers * state() +
           rows() * (std::max(4 * rnn.hidden, rnn.in + rnn.hidden) +
                     (rnn.is_small_h ? small_steps * rnn.hidden : 0));
  }
  std::size_t fixed_workspace() const {
    return (static_cast<std::size_t>(rnn.layers) << 23) + kFixedReserve;
  }
  static constexpr std::size_t kFixedReserve = 256;
};

// Operands of a call, null where cuDNN takes null. forward() fills `reserve`; backward_data() then
// replaces its gates with their gradients.
template <class T>
struct LstmPlaces {
  const T *x = nullptr, *hx = nullptr, *cx = nullptr, *weights = nullptr, *dy = nullptr,
          *dhy = nullptr, *dcy = nullptr;
  T *y = nullptr, *hy = nullptr, *cy = nullptr, *dx = nullptr, *dhx = nullptr, *dcx = nullptr,
    *dweights = nullptr, *reserve = nullptr;

  // Pointers to the members, in their order.
  std::array<const T**, 7> read() { return {&x, &hx, &cx, &weights, &dy, &dhy, &dcy}; }
  std::array<T**, 8> written() { return {&y, &hy, &cy, &dx, &dhx, &dcx, &dweights, &reserve}; }
};

void lstm_forward(const LstmShape& shape, const LstmPlaces<void>& places);
void lstm_backward_data(const LstmShape& shape, const LstmPlaces<void>& places);
void lstm_backward_weights(const LstmShape& shape, const LstmPlaces<void>& places);

}  // namespace ebb::emulated
