// An LSTM as cuDNN computes it, on memory that kernels see.
#pragma once
#include "ebb/core/base/half.h"
#include "ebb/tests/emulated_cuda/cudnn/descriptors.h"

namespace ebb::emulated {

// Shapes of one call. Steps of x and y lie a batch apart.
struct LstmShape {
  cudnnRNNStruct rnn;
  std::int64_t steps = 0, batch = 0;

  std::int64_t rows() const { return steps * batch; }
  std::int64_t state() const { return batch * rnn.hidden; }
  // Four gates and a cell for each hidden unit of each step.
  std::int64_t reserve_elements() const { return 5 * rows() * rnn.hidden; }
  // As cuDNN 9 counts, beside what it wants for every LSTM.
  std::int64_t workspace_elements() const {
    return rnn.hidden * (4 * (rnn.in + rnn.hidden) + 4 * rows() + 6 * batch);
  }
  static constexpr std::size_t kFixedWorkspace = (std::size_t{8} << 20) + 256, kFixedReserve = 256;
};

// Null where cuDNN takes null. `reserve` is what forward() left, with gates' gradients in place of
// gates after backward_data().
template <class T>
struct LstmPlaces {
  const T *x, *hx, *cx, *weights, *dy, *dhy, *dcy;
  T *y, *hy, *cy, *dx, *dhx, *dcx, *dweights, *reserve;
};

template <class T>
void lstm_forward(const LstmShape& shape, const LstmPlaces<T>& places);
template <class T>
void lstm_backward_data(const LstmShape& shape, const LstmPlaces<T>& places);
template <class T>
void lstm_backward_weights(const LstmShape& shape, const LstmPlaces<T>& places);

}  // namespace ebb::emulated
