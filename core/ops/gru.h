#pragma once
#include "ebb/core/ops/arguments.h"
#include "ebb/core/ops/random.h"

namespace ebb {

// One layer's weights; the gates stand side by side in the order r, z, n.
struct GruWeights {
  Tensor input;      // [in, 3 hidden]
  Tensor recurrent;  // [hidden, 3 hidden]
  Tensor bias;       // [4 hidden]: r, z, n, q (q is the product that r multiplies)
  // Or PyTorch's two: `bias` [3 hidden] of x W and this one of h R, each r, z, n.
  Tensor recurrent_bias = {};
};

// Options of gru() over whole sequences: LstmPassOptions without cells.
struct GruPassOptions {
  double dropout = 0;  // of the input of every layer but the first; acts in Phase::training
  Phase phase = Phase::inference;
  Tensor hidden = {};   // the state before the first step, [layers, batch, hidden]; or zeros
  Tensor lengths = {};  // how many steps of each sequence count, [batch] of integers; or all
};

struct GruResult {
  Tensor sequence;  // [batch, time, hidden]: the last layer's output at each step
  Tensor hidden;    // [layers, batch, hidden]: the state after the last step
};

// A stack of GRU layers over whole sequences x [batch, time, in]. Floating. For each layer
//   r, z = sigmoid(x_t W + h_{t-1} R + b),  q = h_{t-1} R_n + b_q,
//   n = tanh(x_t W_n + b_n + r q),  h_t = (1 - z) n + z h_{t-1}
// (Cho et al., EMNLP 2014, with r behind the product as in cuDNN, PyTorch and Keras, which call it
// reset_after). One operator, and one for its gradient, which has no derivative of its own. Any
// number of layers. Throws ShapeError; Error for no layer, or a dropout outside [0, 1).
GruResult gru(const Operand& x, const ListOf<GruWeights>& layers,
              const GruPassOptions& options = {});

// One step of one GRU layer, of x [batch, in]. Gives the state [batch, hidden] after `hidden`, or
// after zeros where it holds nothing. Throws as gru does.
Tensor gru_cell(const Operand& x, const Tensor& hidden, const GruWeights& weights);

extern const OpDef gru_op, gru_backward_op;

}  // namespace ebb
