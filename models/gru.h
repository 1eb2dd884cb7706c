#pragma once
#include <concepts>
#include <vector>

#include "ebb/core/ops/gru.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/models/lstm.h"

namespace ebb::models {

// An LSTM's, with biases of [3 hidden].
using GruOptions = LstmOptions;

// Options of one pass over sequences.
struct GruCall {
  Phase phase = Phase::inference;
  // The state before the first step, [layers, batch, hidden], or [2 layers, batch, hidden] with a
  // layer's two directions side by side; zeros where it holds nothing.
  Tensor hidden = {};
  // Steps of each sequence that count, [batch] of integers; all if undefined. As in
  // LstmPassOptions; backwards, a sequence begins with its own last step.
  Tensor lengths = {};
};

// As of ebb::gru. With two directions the sequence has both, [batch, time, 2 hidden], and the
// hidden state is as in GruCall.
using GruOutput = GruResult;

// A stack of GRU layers (formulas at ebb::gru). Layer l has parameters "l.input" [in, 3 hidden] and
// "l.recurrent" [hidden, 3 hidden], gates in the order r, z, n, and "l.bias" [4 hidden]: the biases
// of the gates, then the recurrent bias that r multiplies. All start uniform within 1 /
// sqrt(hidden). The backward direction has "l.reverse.input" and so on (Schuster & Paliwal 1997);
// the outputs of both directions, side by side, are the next layer's input.
class Gru {
 public:
  // Throws Error for a size below 1, a dropout outside [0, 1), or names that are there already.
  Gru(const Parameters& parameters, std::int64_t in, const GruOptions& options = {},
      CallSite site = CallSite::here());
  Gru(const Parameters& parameters, std::int64_t in, std::integral auto hidden,
      CallSite site = CallSite::here())
      : Gru(parameters, in, GruOptions{.hidden = static_cast<std::int64_t>(hidden)}, site) {}

  // x [batch, time, in], of the parameters' dtype. Throws ShapeError.
  GruOutput operator()(const Tensor& x, const GruCall& call,
                       CallSite site = CallSite::here()) const;
  GruOutput operator()(const Tensor& x, Phase phase = Phase::inference, const Tensor& hidden = {},
                       CallSite site = CallSite::here()) const {
    return (*this)(x, {.phase = phase, .hidden = hidden}, site);
  }

 private:
  std::vector<GruWeights> layers_;  // with two directions: forward, backward, layer by layer
  double dropout_;
  bool is_bidirectional_;
};

}  // namespace ebb::models
