#pragma once
#include "ebb/models/dense.h"
#include "ebb/models/lstm.h"

namespace ebb::models {

// Predicts one number from a window of a series: an Lstm ("lstm"), and a Dense head ("head") on its
// last layer's state after the last step.
class Forecaster {
 public:
  // `in` features per step. Throws as Lstm.
  Forecaster(const Parameters& parameters, std::int64_t in, const LstmOptions& options = {},
             CallSite site = CallSite::here());

  // x [batch, time, in] to [batch, 1]. Throws ShapeError.
  Tensor operator()(const Tensor& x, Phase phase = Phase::inference,
                    CallSite site = CallSite::here()) const;

 private:
  // Runs while the public constructor's Declaring lives.
  Forecaster(const ebb::detail::Declaring& entry, const Parameters& parameters, std::int64_t in,
             const LstmOptions& options);
  unsigned layer_;
  Lstm lstm_;
  Dense head_;
};

}  // namespace ebb::models
