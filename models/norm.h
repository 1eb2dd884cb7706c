#pragma once
#include <concepts>
#include <optional>

#include "ebb/core/device/world.h"
#include "ebb/core/ops/norm.h"
#include "ebb/core/parameters/parameters.h"

namespace ebb::models {

// Normalisations with a learned scale and shift (core/ops/norm.h): parameter "scale" starts at 1,
// "shift" at 0.

// Normalises over the last axes, which have `sizes`.
template <bool kHasShift>
class LastAxesNorm {
 public:
  // Throws Error for no sizes or one below 1, for an epsilon below 0 when it is called, and for
  // names that `parameters` has already.
  LastAxesNorm(const Parameters& parameters, const Shape& sizes, double epsilon = 1e-5,
               CallSite site = CallSite::here());
  // Over the last axis.
  LastAxesNorm(const Parameters& parameters, std::integral auto size, double epsilon = 1e-5,
               CallSite site = CallSite::here())
      : LastAxesNorm(parameters, Shape({static_cast<std::int64_t>(size)}, site), epsilon, site) {}

  // x [.., sizes], of the parameters' dtype. Throws ShapeError.
  Tensor operator()(const Tensor& x, CallSite site = CallSite::here()) const;

 private:
  Tensor scale_, shift_;
  LayerNormOptions options_;
};

using LayerNorm = LastAxesNorm<true>;

// Divides by the root of the mean square, and scales; without a shift.
using RmsNorm = LastAxesNorm<false>;

// Normalises over each of `groups` groups of the channels (axis 1) together with all later axes.
class GroupNorm {
 public:
  // Throws Error where `channels` is no multiple of `groups`, and as LayerNorm.
  GroupNorm(const Parameters& parameters, int groups, std::int64_t channels, double epsilon = 1e-5,
            CallSite site = CallSite::here());

  // x [batch, channels, ..]. Throws ShapeError.
  Tensor operator()(const Tensor& x, CallSite site = CallSite::here()) const;

 private:
  Tensor scale_, shift_;
  int groups_;
  GroupNormOptions options_;
};

struct BatchNormLayerOptions {
  int axis = 1;           // the channels
  double momentum = 0.1;  // weight of a batch in the running statistics, as in PyTorch
  double epsilon = 1e-5;
  // Ranks to take a batch's statistics over, in two collectives forward and two backward. Without
  // it they are of each rank's own part, and running ones differ by rank.
  std::optional<distributed::World> world = {};
};

// Normalises over all axes but the channels. Keeps running averages as untrained state:
// "running_mean", which starts at 0, and "running_variance", at 1; f64 for f64, else f32.
class BatchNorm {
 public:
  // Throws as LayerNorm.
  BatchNorm(const Parameters& parameters, std::int64_t channels,
            const BatchNormLayerOptions& options = {}, CallSite site = CallSite::here());

  // x [batch, channels, ..] or with another axis. In Phase::training uses this batch's statistics
  // and adds them to the running ones; a session does so in each run that reads the result. In
  // inference uses the running ones. Throws ShapeError.
  Tensor operator()(const Tensor& x, Phase phase = Phase::inference,
                    CallSite site = CallSite::here()) const;

 private:
  Tensor over_ranks(const Tensor& x) const;

  Tensor scale_, shift_, running_mean_, running_variance_;
  BatchNormLayerOptions options_;
};

}  // namespace ebb::models
