#include "ebb/models/dense.h"

#include "ebb/models/detail/sizes.h"

namespace ebb::models {

Dense::Dense(const Parameters& parameters, std::int64_t in, std::int64_t out, Activation activation,
             const char* file, unsigned line)
    : activation_(activation) {
  require_size("dense", "in", in, {file, line});
  require_size("dense", "out", out, {file, line});
  weight_ =
      parameters.declare("weight", {in, out},
                         activation == Activation::relu ? initializers::he_normal(in)
                                                        : initializers::glorot_uniform(in, out),
                         file, line);
  bias_ = parameters.declare("bias", {out}, initializers::zeros(), file, line);
}

Tensor Dense::operator()(const Tensor& x, const char* file, unsigned line) const {
  return dense({x, file, line}, {weight_, file, line}, {bias_, file, line}, activation_);
}

}  // namespace ebb::models
