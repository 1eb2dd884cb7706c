#include "ebb/models/conv.h"

#include <algorithm>

#include "ebb/core/ops/linear.h"
#include "ebb/core/parameters/declaring.h"
#include "ebb/models/detail/layers.h"

namespace ebb::models {
namespace {

template <class Options>
void require_sizes(const char* layer, std::int64_t in, std::int64_t out, const Options& options) {
  require_size(layer, "in", in);
  require_size(layer, "out", out);
  require_size(layer, "groups", options.groups);
  if constexpr (requires { options.kernel.height; }) {
    require_size(layer, "kernel height", options.kernel.height);
    require_size(layer, "kernel width", options.kernel.width);
  } else {
    require_size(layer, "kernel", options.kernel);
  }
  if (in % options.groups != 0 || out % options.groups != 0)
    ebb::detail::refuse(layer, std::to_string(in) + " and " + std::to_string(out) +
                                   " channels do not make " + std::to_string(options.groups) +
                                   " groups");
}

void require_countable(const char* layer, const Shape& shape) {
  if (!shape.is_countable()) ebb::detail::refuse(layer, ebb::detail::too_large(shape));
}

Initializer initializer(Activation activation, std::int64_t fan_in, std::int64_t fan_out) {
  return is_rectifier(activation) ? initializers::he_normal(fan_in)
                                  : initializers::glorot_uniform(fan_in, fan_out);
}

template <class Options>
void declare_filters(const Parameters& parameters, const char* layer, const Shape& shape,
                     const Options& options, Tensor& weight, Tensor& bias) {
  require_countable(layer, shape);
  const std::int64_t out = shape[0];
  std::int64_t taps = 1;
  for (int i = 2; i < shape.rank(); ++i) taps *= shape[i];
  weight = parameters.declare(
      "weight", shape,
      initializer(options.activation, shape[1] * taps, out / options.groups * taps));
  if (options.bias) bias = parameters.declare("bias", {out}, initializers::zeros());
}

}  // namespace

Conv1d::Conv1d(const Parameters& parameters, std::int64_t in, std::int64_t out,
               const Conv1dOptions& options, CallSite site)
    : options_{.stride = options.stride,
               .padding = options.padding,
               .dilation = options.dilation,
               .groups = options.groups},
      activation_(options.activation) {
  const ebb::detail::Declaring at(parameters, site);
  require_sizes("conv1d", in, out, options);
  declare_filters(parameters, "conv1d", {out, in / options.groups, options.kernel}, options,
                  weight_, bias_);
}

Tensor Conv1d::operator()(const Tensor& x, CallSite site) const {
  Tensor y = bias_.defined() ? conv1d({x, site}, weight_, bias_, options_)
                             : conv1d({x, site}, weight_, options_);
  return ebb::detail::activate({std::move(y), site}, activation_);
}

Conv2d::Conv2d(const Parameters& parameters, std::int64_t in, std::int64_t out,
               const Conv2dOptions& options, CallSite site)
    : options_{.stride = options.stride,
               .padding = options.padding,
               .dilation = options.dilation,
               .groups = options.groups},
      activation_(options.activation) {
  const ebb::detail::Declaring at(parameters, site);
  require_sizes("conv2d", in, out, options);
  declare_filters(parameters, "conv2d",
                  {out, in / options.groups, options.kernel.height, options.kernel.width}, options,
                  weight_, bias_);
}

Tensor Conv2d::operator()(const Tensor& x, CallSite site) const {
  Tensor y = bias_.defined() ? conv2d({x, site}, weight_, bias_, options_)
                             : conv2d({x, site}, weight_, options_);
  return ebb::detail::activate({std::move(y), site}, activation_);
}

ConvTranspose2d::ConvTranspose2d(const Parameters& parameters, std::int64_t in, std::int64_t out,
                                 const ConvTranspose2dOptions& options, CallSite site)
    : options_{.stride = options.stride,
               .padding = options.padding,
               .output_padding = options.output_padding,
               .dilation = options.dilation,
               .groups = options.groups},
      activation_(options.activation) {
  const ebb::detail::Declaring at(parameters, site);
  require_sizes("conv_transpose2d", in, out, options);
  const Shape shape{in, out / options.groups, options.kernel.height, options.kernel.width};
  require_countable("conv_transpose2d", shape);
  const std::int64_t taps = shape[2] * shape[3];
  // With a stride, each output element gets contributions from only 1 / stride of the taps.
  std::int64_t fan_in = in / options.groups * taps;
  for (const std::int64_t stride : {options.stride.height, options.stride.width})
    fan_in = std::max<std::int64_t>(1, fan_in / std::max<std::int64_t>(1, stride));
  weight_ = parameters.declare("weight", shape, initializer(activation_, fan_in, shape[1] * taps));
  if (options.bias) bias_ = parameters.declare("bias", {out}, initializers::zeros());
}

Tensor ConvTranspose2d::operator()(const Tensor& x, CallSite site) const {
  Tensor y = bias_.defined() ? conv_transpose2d({x, site}, weight_, bias_, options_)
                             : conv_transpose2d({x, site}, weight_, options_);
  return ebb::detail::activate({std::move(y), site}, activation_);
}

}  // namespace ebb::models
