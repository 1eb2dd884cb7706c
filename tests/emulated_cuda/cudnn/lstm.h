// An LSTM as cuDNN computes it, on device pointers.
#pragma once
#include <array>

#include "ebb/tests/emulated_cuda/cudnn/descriptors.h"

namespace ebb::emulated {

// Shapes of one call. x and y are time-major: a step follows the one before after a batch.
struct LstmShape {
  cudnnRNNStruct rnn;
  std::int64_t steps = 0, batch = 0;

  std::int64_t rows() const { return steps * batch; }
  std::int64_t state() const { return batch * rnn.hidden; }
  // Four gates and a cell for each hidden unit of each step.
  std::int64_t reserve_elements() const { return 5 * rows() * rnn.hidden; }
  // The workspace that cuDNN 9 asks for, without kFixedWorkspace, which every LSTM has.
  std::int64_t workspace_elements() const {
    return rnn.hidden * (4 * (rnn.in + rnn.hidden) + 4 * rows() + 6 * batch);
  }
  static constexpr std::size_t kFixedWorkspace = (std::size_t{8} << 20) + 256, kFixedReserve = 256;
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
