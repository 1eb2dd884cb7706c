#include "ebb/models/dense.h"

#include "ebb/core/parameters/declaring.h"
#include "ebb/models/detail/rectifier.h"
#include "ebb/models/detail/sizes.h"

namespace ebb::models {

Dense::Dense(const Parameters& parameters, std::int64_t in, std::int64_t out,
             const DenseOptions& options, CallSite site)
    : activation_(options.activation) {
  const ebb::detail::Declaring at(parameters, site);
  require_size("dense", "in", in);
  require_size("dense", "out", out);
  weight_ = parameters.declare("weight", {in, out},
                               is_rectifier(activation_) ? initializers::he_normal(in)
                                                         : initializers::glorot_uniform(in, out));
  if (options.bias) bias_ = parameters.declare("bias", {out}, initializers::zeros());
}

Tensor Dense::operator()(const Tensor& x, CallSite site) const {
  return bias_.defined() ? dense({x, site}, weight_, bias_, activation_)
                         : dense({x, site}, weight_, activation_);
}

}  // namespace ebb::models
