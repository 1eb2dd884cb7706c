#include "ebb/models/conv.h"

#include "ebb/core/ops/linear.h"
#include "ebb/core/parameters/declaring.h"
#include "ebb/models/detail/rectifier.h"
#include "ebb/models/detail/sizes.h"

namespace ebb::models {

Conv2d::Conv2d(const Parameters& parameters, std::int64_t in, std::int64_t out,
               const Conv2dOptions& options, CallSite site)
    : options_{.stride = options.stride,
               .padding = options.padding,
               .dilation = options.dilation,
               .groups = options.groups},
      activation_(options.activation) {
  const ebb::detail::Declaring at(parameters, site);
  require_size("conv2d", "in", in);
  require_size("conv2d", "out", out);
  require_size("conv2d", "groups", options.groups);
  require_size("conv2d", "kernel height", options.kernel.height);
  require_size("conv2d", "kernel width", options.kernel.width);
  if (in % options.groups != 0 || out % options.groups != 0)
    throw Error(ebb::detail::message("conv2d",
                                     std::to_string(in) + " and " + std::to_string(out) +
                                         " channels do not make " + std::to_string(options.groups) +
                                         " groups",
                                     site));
  const Shape shape{out, in / options.groups, options.kernel.height, options.kernel.width};
  if (!shape.is_countable())
    throw Error(ebb::detail::message("conv2d", ebb::detail::too_large(shape), site));
  const std::int64_t taps = shape[2] * shape[3], fan_in = shape[1] * taps;
  weight_ =
      parameters.declare("weight", shape,
                         is_rectifier(activation_)
                             ? initializers::he_normal(fan_in)
                             : initializers::glorot_uniform(fan_in, out / options.groups * taps));
  if (options.bias) bias_ = parameters.declare("bias", {out}, initializers::zeros());
}

Tensor Conv2d::operator()(const Tensor& x, CallSite site) const {
  Tensor y = bias_.defined() ? conv2d({x, site}, weight_, bias_, options_)
                             : conv2d({x, site}, weight_, options_);
  return ebb::detail::activate({std::move(y), site}, activation_);
}

}  // namespace ebb::models
