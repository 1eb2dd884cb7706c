#pragma once
#include <string>

#include "ebb/core/parameters/parameters.h"
#include "ebb/core/tensor/op_def.h"

namespace ebb::optim {

struct AverageOptions {
  double decay = 0.999;          // in [0, 1)
  bool bias_corrected = true;    // else the first value weighs as though it had always been there
  std::string name = "average";  // of the state
};

// Exponential moving averages of parameters, which often generalise better than the parameters do:
//   a = x in the first update, then  a += w (x - a)
// with w = (1 - decay) / (1 - decay^t) in update t, Adam's bias correction, or w = 1 - decay, as
// PyTorch's torch.optim.swa_utils has it.
//
//   optim::MovingAverage average(params, {.decay = 0.999});
//   for (...) { adam.minimize(loss_of(model, x, y), params); average.update(); }
//   average.swap(); evaluate(model); average.swap();
//
// They are untrained state of the same set (Parameters::state): "average.hidden.weight" beside
// "hidden.weight", in a scope "head" "head.average.weight", and the count "average.updates". So
// they are in its files and in a session's, counted as parameters, one copy of them: f32 beside
// parameters of 16 bits. Zero before the first update.
class MovingAverage {
 public:
  // Declares the state for all parameters that are there below this handle. Throws Error for a
  // decay outside [0, 1), where there are none, and for a name that is taken; OutOfMemory.
  explicit MovingAverage(const Parameters& parameters, const AverageOptions& options = {},
                         CallSite site = CallSite::here());

  // Takes the parameters' values in, in place. Returns the number of updates, i64[]: eager, it has
  // happened; in a graph, a run that fetches the result makes it happen, after the updates of the
  // parameters that were written above it.
  Tensor update(CallSite site = CallSite::here()) const;

  // Exchanges parameters and averages, so that the model computes with these; once more, and all is
  // as it was, bit for bit. Does nothing before the first update. Returns as update() does. Takes a
  // copy of the parameters meanwhile. Throws Error for parameters of 16 bits, which would round the
  // averages (copy_to() does not change them); OutOfMemory, and nothing has changed.
  Tensor swap(CallSite site = CallSite::here()) const;

  // Writes the averages into the parameters of the same names below another handle, rounded to
  // theirs: a second model for evaluation, of another set, or of another of the graph. Returns as
  // update() does. Throws Error naming what is missing there or has another shape.
  Tensor copy_to(const Parameters& other, CallSite site = CallSite::here()) const;

 private:
  struct Pair {
    std::string name;  // below the handle
    Tensor parameter, average;
  };
  const Parameters parameters_;
  const AverageOptions options_;
  std::vector<Pair> pairs_;
  Tensor updates_;
};

// What it applies to an average, a parameter, the count and the decay (optim/kernels/average.h).
extern const OpDef average_update_op;

}  // namespace ebb::optim
