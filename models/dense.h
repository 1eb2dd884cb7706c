#pragma once
#include "ebb/core/ops/linear.h"
#include "ebb/core/parameters/parameters.h"

namespace ebb::models {

struct DenseOptions {
  Activation activation = Activation::none;
  bool bias = true;
};

// A fully connected layer, activation(x w + b). Parameter "weight" [in, out] starts normal with
// deviation sqrt(2 / in) before a relu and its kin (He et al. 2015), otherwise uniform within
// sqrt(6 / (in + out)) (Glorot & Bengio 2010). Parameter "bias" [out], unless the options leave it
// out, starts at zero.
class Dense {
 public:
  // Throws Error for a size below 1, or names that `parameters` has already.
  Dense(const Parameters& parameters, std::int64_t in, std::int64_t out,
        Activation activation = Activation::none, CallSite site = CallSite::here())
      : Dense(parameters, in, out, DenseOptions{.activation = activation}, site) {}
  Dense(const Parameters& parameters, std::int64_t in, std::int64_t out,
        const DenseOptions& options, CallSite site = CallSite::here());

  // x [..., in] to [..., out], of the parameters' dtype. Throws ShapeError.
  Tensor operator()(const Tensor& x, CallSite site = CallSite::here()) const;

 private:
  Tensor weight_, bias_;
  Activation activation_;
};

}  // namespace ebb::models
