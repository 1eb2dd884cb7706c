#pragma once
#include <string>

#include "ebb/core/parameters/parameters.h"

namespace ebb::optim {

struct AverageOptions {
  double decay = 0.999;          // in [0, 1)
  bool bias_corrected = true;    // false: the first value weighs as if it had always been there
  std::string name = "average";  // of the state
};

// Exponential moving averages of parameters, which often generalise better than the parameters do:
//   a = x in the first update, then  a += w (x - a)
// In update t, w = (1 - decay) / (1 - decay^t), Adam's bias correction, or w = 1 - decay, as in
// PyTorch's torch.optim.swa_utils.
//
//   optim::MovingAverage average(params, {.decay = 0.999});
//   for (...) { adam.minimize(loss_of(model, x, y), params); average.update(); }
//   average.swap(); evaluate(model); average.swap();
//
// Averages are untrained state of the same set (Parameters::state): "average.hidden.weight" beside
// "hidden.weight", in a scope "head" "head.average.weight", and the count "average.updates". So the
// set's files and its session hold them, and they count as one more copy of the parameters; f32
// beside parameters of 16 bits. Zero before the first update.
class MovingAverage {
 public:
  // Declares the state for all parameters below this handle. Throws Error for a decay outside [0,
  // 1), where there are no parameters, and for a name that is taken; OutOfMemory.
  explicit MovingAverage(const Parameters& parameters, const AverageOptions& options = {},
                         CallSite site = CallSite::here());

  // Takes the parameters' values into the averages, in place. Returns the number of updates, i64[]:
  // in eager the update has happened; in a graph, a run that fetches the result makes it, after the
  // parameter updates that were written above it.
  Tensor update(CallSite site = CallSite::here()) const;

  // Exchanges parameters and averages, so that the model computes with the averages. A second call
  // restores both bit for bit. Does nothing before the first update. Returns as update() does.
  // Takes memory for a copy of the parameters meanwhile. Throws Error for parameters of 16 bits,
  // which would round the averages (copy_to() does not change the averages); OutOfMemory, and then
  // nothing has changed.
  Tensor swap(CallSite site = CallSite::here()) const;

  // Writes the averages into the parameters of the same names below another handle, rounded to
  // their dtype: into a second model for evaluation, of another set or of another graph's. Returns
  // as update() does. Throws Error naming the parameter that is missing there or has another shape.
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

}  // namespace ebb::optim
