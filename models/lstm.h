#pragma once
#include <vector>

#include "ebb/core/ops/lstm.h"
#include "ebb/core/parameters/parameters.h"

namespace ebb::models {

struct LstmOptions {
  std::int64_t hidden = 64;  // units of each layer
  std::int64_t layers = 1;
  double dropout = 0;  // of the input of every layer but the first, in Phase::training
};

// What a sequence starts with, and what it leaves behind: both [layers, batch, hidden].
struct LstmState {
  Tensor hidden;
  Tensor cell;
};

struct LstmOutput {
  Tensor sequence;  // [batch, time, hidden]: what the last layer gives at each step
  Tensor hidden;    // [layers, batch, hidden]: after the last step
  Tensor cell;      // [layers, batch, hidden]

  LstmState state() const { return {hidden, cell}; }
};

// A stack of LSTM layers (formulas at ebb::lstm). Layer l has parameters "l.input" [in, 4 hidden],
// "l.recurrent" [hidden, 4 hidden] and "l.bias" [4 hidden], gates in the order i, f, g, o. All
// start uniform within 1 / sqrt(hidden), the forget gate's bias 1 above that, so that a fresh cell
// remembers (Jozefowicz, Zaremba & Sutskever, ICML 2015).
class Lstm {
 public:
  // Throws Error for a size below 1, a dropout outside [0, 1), or names that are there already.
  Lstm(const Parameters& parameters, std::int64_t in, const LstmOptions& options = {},
       CallSite site = CallSite::here());

  // x [batch, time, in], of the parameters' dtype. Without an initial state: zeros. Throws
  // ShapeError.
  LstmOutput operator()(const Tensor& x, Phase phase = Phase::inference,
                        const LstmState& initial = {}, CallSite site = CallSite::here()) const;

 private:
  std::vector<LstmWeights> layers_;
  double dropout_;
};

}  // namespace ebb::models
