#pragma once
#include "ebb/core/ops/arguments.h"
#include "ebb/core/ops/random.h"

namespace ebb {

// One layer's weights; the gates stand side by side in the order i, f, g, o.
struct LstmWeights {
  Tensor input;                // [in, 4 hidden]
  Tensor recurrent;            // [hidden, 4 hidden]
  Tensor bias;                 // [4 hidden]
  Tensor recurrent_bias = {};  // [4 hidden]: added to `bias` where given, as PyTorch's bias_hh
};

// Options of lstm() over whole sequences.
struct LstmPassOptions {
  double dropout = 0;  // of the input of every layer but the first; acts in Phase::training
  Phase phase = Phase::inference;
  Tensor hidden = {};  // the state before the first step, [layers, batch, hidden]: both or neither;
  Tensor cell = {};    // zeros where not given
  // The number of steps of each sequence, [batch] of integers; all unless given. After them
  // LstmResult::sequence is 0; hidden and cell are from each sequence's own last step. x must be
  // finite there all the same. A length outside [0, time] makes its whole row NaN.
  Tensor lengths = {};
};

struct LstmResult {
  Tensor sequence;  // [batch, time, hidden]: the last layer's output at each step
  Tensor hidden;    // [layers, batch, hidden]: the state after the last step
  Tensor cell;      // [layers, batch, hidden]
};

// A stack of LSTM layers over whole sequences x [batch, time, in]. Floating. For each layer
//   a = x_t W + h_{t-1} R + b,  c_t = sigmoid(f) c_{t-1} + sigmoid(i) tanh(g),  h_t = sigmoid(o)
//   tanh(c_t)
// (Hochreiter & Schmidhuber 1997, with Gers's forget gate). One operator, and one for its gradient,
// which has no derivative of its own. Any number of layers. Throws ShapeError; Error for no layer,
// or a dropout outside [0, 1).
LstmResult lstm(const Operand& x, const ListOf<LstmWeights>& layers,
                const LstmPassOptions& options = {});

// The state of one layer between two steps, [batch, hidden] both.
struct LstmCellState {
  Tensor hidden;
  Tensor cell;
};

// One step of one LSTM layer, of x [batch, in]. Gives the state after `state`, or after zeros where
// it holds nothing. Throws as lstm does.
LstmCellState lstm_cell(const Operand& x, const LstmCellState& state, const LstmWeights& weights);

extern const OpDef lstm_op, lstm_backward_op;

}  // namespace ebb
