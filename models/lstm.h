#pragma once
#include <concepts>
#include <vector>

#include "ebb/core/ops/lstm.h"
#include "ebb/core/parameters/parameters.h"

namespace ebb::models {

// Options of Lstm and of Gru.
struct LstmOptions {
  std::int64_t hidden = 64;  // units of each layer
  std::int64_t layers = 1;
  double dropout = 0;          // of the input of every layer but the first, in Phase::training
  bool bidirectional = false;  // each layer goes over its sequences backwards as well
  // Two biases, as PyTorch has: "l.bias" and "l.recurrent_bias", both [4 hidden], a GRU's
  // [3 hidden]. Both have the gradient of their sum, so an optimizer moves the sum by two steps, as
  // PyTorch's does. Takes the memory of one more bias with its optimizer state, and a sum in each
  // call.
  bool recurrent_bias = false;
};

// The state at the start or the end of a sequence: both tensors [layers, batch, hidden], or [2
// layers, batch, hidden] with a layer's two directions side by side.
struct LstmState {
  Tensor hidden;
  Tensor cell;
};

// Options of one pass over sequences.
struct LstmCall {
  Phase phase = Phase::inference;
  LstmState initial = {};  // zeros if undefined
  // Steps of each sequence that count, [batch] of integers; all if undefined. As in
  // LstmPassOptions; backwards, a sequence begins with its own last step.
  Tensor lengths = {};
};

struct LstmOutput {
  Tensor sequence;  // last layer's output at each step, [batch, time, hidden]; with two
                    // directions, side by side, [batch, time, 2 hidden]
  Tensor hidden;    // after the last step, as in LstmState
  Tensor cell;

  LstmState state() const { return {hidden, cell}; }
};

// A stack of LSTM layers (formulas at ebb::lstm). Layer l has parameters "l.input" [in, 4 hidden],
// "l.recurrent" [hidden, 4 hidden] and "l.bias" [4 hidden], gates in the order i, f, g, o. All
// start uniform within 1 / sqrt(hidden), the forget gate's "bias" 1 above that, so that a fresh
// cell remembers (Jozefowicz, Zaremba & Sutskever, ICML 2015). The backward direction has
// "l.reverse.input" and so on (Schuster & Paliwal 1997); the outputs of both directions, side by
// side, are the next layer's input.
class Lstm {
 public:
  // Throws Error for a size below 1, a dropout outside [0, 1), or names that are there already.
  Lstm(const Parameters& parameters, std::int64_t in, const LstmOptions& options = {},
       CallSite site = CallSite::here());
  Lstm(const Parameters& parameters, std::int64_t in, std::integral auto hidden,
       CallSite site = CallSite::here())
      : Lstm(parameters, in, LstmOptions{.hidden = static_cast<std::int64_t>(hidden)}, site) {}

  // x [batch, time, in], of the parameters' dtype. Throws ShapeError.
  LstmOutput operator()(const Tensor& x, const LstmCall& call,
                        CallSite site = CallSite::here()) const;
  LstmOutput operator()(const Tensor& x, Phase phase = Phase::inference,
                        const LstmState& initial = {}, CallSite site = CallSite::here()) const {
    return (*this)(x, {.phase = phase, .initial = initial}, site);
  }

 private:
  std::vector<LstmWeights> layers_;  // with two directions: forward, backward, layer by layer
  double dropout_;
  bool is_bidirectional_;
};

}  // namespace ebb::models
