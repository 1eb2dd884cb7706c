#pragma once
#include <concepts>

#include "ebb/core/ops/norm.h"
#include "ebb/core/parameters/parameters.h"

namespace ebb::models {

// Normalisations with a scale and a shift that are learned (core/ops/norm.h): parameters "scale",
// which starts at 1, and "shift", at 0.

// Over the last axes, which are `sizes`.
class LayerNorm {
 public:
  // Throws Error for no sizes or one below 1, for an epsilon below 0 when it is called, and for
  // names that `parameters` has already.
  LayerNorm(const Parameters& parameters, const Shape& sizes, double epsilon = 1e-5,
            CallSite site = CallSite::here());
  // Over the last axis.
  LayerNorm(const Parameters& parameters, std::integral auto size, double epsilon = 1e-5,
            CallSite site = CallSite::here())
      : LayerNorm(parameters, Shape({static_cast<std::int64_t>(size)}, site), epsilon, site) {}

  // x [.., sizes], of the parameters' dtype. Throws ShapeError.
  Tensor operator()(const Tensor& x, CallSite site = CallSite::here()) const;

 private:
  Tensor scale_, shift_;
  LayerNormOptions options_;
};

// By the root of the mean square over the last axes, which are `sizes`; without a shift.
class RmsNorm {
 public:
  // Throws as LayerNorm.
  RmsNorm(const Parameters& parameters, const Shape& sizes, double epsilon = 1e-5,
          CallSite site = CallSite::here());
  // Over the last axis.
  RmsNorm(const Parameters& parameters, std::integral auto size, double epsilon = 1e-5,
          CallSite site = CallSite::here())
      : RmsNorm(parameters, Shape({static_cast<std::int64_t>(size)}, site), epsilon, site) {}

  // x [.., sizes], of the parameters' dtype. Throws ShapeError.
  Tensor operator()(const Tensor& x, CallSite site = CallSite::here()) const;

 private:
  Tensor scale_;
  LayerNormOptions options_;
};

// Over each of `groups` groups of the channels, axis 1, and all behind them.
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
  double momentum = 0.1;  // the part of a batch in the running statistics, as PyTorch has it
  double epsilon = 1e-5;
};

// Over all but the channels, and what batches had on average: untrained state "running_mean", which
// starts at 0, and "running_variance", at 1, f64 for f64, else f32.
class BatchNorm {
 public:
  // Throws as LayerNorm.
  BatchNorm(const Parameters& parameters, std::int64_t channels,
            const BatchNormLayerOptions& options = {}, CallSite site = CallSite::here());

  // x [batch, channels, ..] or with another axis. In Phase::training by this batch's statistics,
  // which enter the running ones: in a session in each run that reads the result. In inference by
  // the running ones. Throws ShapeError.
  Tensor operator()(const Tensor& x, Phase phase = Phase::inference,
                    CallSite site = CallSite::here()) const;

 private:
  Tensor scale_, shift_, running_mean_, running_variance_;
  BatchNormLayerOptions options_;
};

}  // namespace ebb::models
