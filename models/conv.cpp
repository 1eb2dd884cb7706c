#include "ebb/models/conv.h"

#include <algorithm>

#include "ebb/core/ops/linear.h"
#include "ebb/core/parameters/declaring.h"
#include "ebb/models/detail/layers.h"

namespace ebb::models {
namespace {

constexpr const char* name_of(const Conv1dOptions&) { return "conv1d"; }
constexpr const char* name_of(const Conv2dOptions&) { return "conv2d"; }
constexpr const char* name_of(const ConvTranspose2dOptions&) { return "conv_transpose2d"; }

// The shape of the weight. Throws Error for a size below 1.
template <class Options>
Shape checked_shape(std::int64_t in, std::int64_t out, const Options& options) {
  const char* const layer = name_of(options);
  require_size(layer, "in", in);
  require_size(layer, "out", out);
  require_size(layer, "groups", options.groups);
  Shape shape{out, in / options.groups};
  if constexpr (std::same_as<Options, ConvTranspose2dOptions>) shape = {in, out / options.groups};
  if constexpr (std::same_as<Options, Conv1dOptions>) {
    require_size(layer, "kernel", options.kernel);
    shape.push_back(options.kernel);
  } else {
    require_size(layer, "kernel height", options.kernel.height);
    require_size(layer, "kernel width", options.kernel.width);
    shape.push_back(options.kernel.height);
    shape.push_back(options.kernel.width);
  }
  if (in % options.groups != 0 || out % options.groups != 0)
    ebb::detail::refuse(layer, std::to_string(in) + " and " + std::to_string(out) +
                                   " channels do not make " + std::to_string(options.groups) +
                                   " groups");
  if (!shape.is_countable()) ebb::detail::refuse(layer, ebb::detail::too_large(shape));
  return shape;
}

// `bias` holds nothing or one tensor.
Tensor convolve(const Operand& x, const Tensor& weight, const Tensor& bias,
                const Conv1dOptions& options) {
  const ebb::Conv1dOptions how{options.stride, options.padding, options.dilation, options.groups};
  return bias.defined() ? conv1d(x, weight, bias, how) : conv1d(x, weight, how);
}
Tensor convolve(const Operand& x, const Tensor& weight, const Tensor& bias,
                const Conv2dOptions& options) {
  const ebb::Conv2dOptions how{options.stride, options.padding, options.dilation, options.groups};
  return bias.defined() ? conv2d(x, weight, bias, how) : conv2d(x, weight, how);
}
Tensor convolve(const Operand& x, const Tensor& weight, const Tensor& bias,
                const ConvTranspose2dOptions& options) {
  const ebb::ConvTranspose2dOptions how{.stride = options.stride,
                                        .padding = options.padding,
                                        .output_padding = options.output_padding,
                                        .dilation = options.dilation,
                                        .groups = options.groups};
  return bias.defined() ? conv_transpose2d(x, weight, bias, how) : conv_transpose2d(x, weight, how);
}

}  // namespace

template <class Options>
ConvLayer<Options>::ConvLayer(const Parameters& parameters, std::int64_t in, std::int64_t out,
                              const Options& options, CallSite site)
    : options_(options) {
  const ebb::detail::Declaring at(parameters, site);
  const Shape shape = checked_shape(in, out, options);
  const std::int64_t taps = shape.elements() / shape[0] / shape[1];
  std::int64_t fan_in = in / options.groups * taps;
  if constexpr (std::same_as<Options, ConvTranspose2dOptions>)
    for (const std::int64_t stride : {options.stride.height, options.stride.width})
      fan_in = std::max<std::int64_t>(1, fan_in / std::max<std::int64_t>(1, stride));
  weight_ =
      parameters.declare("weight", shape,
                         is_rectifier(options.activation)
                             ? initializers::he_normal(fan_in)
                             : initializers::glorot_uniform(fan_in, out / options.groups * taps));
  if (options.bias) bias_ = parameters.declare("bias", {out}, initializers::zeros());
}

template <class Options>
Tensor ConvLayer<Options>::operator()(const Tensor& x, CallSite site) const {
  site = in_layer_of(weight_, site);
  Tensor y = convolve({x, site}, weight_, bias_, options_);
  return ebb::detail::activate({std::move(y), site}, options_.activation);
}

template class ConvLayer<Conv1dOptions>;
template class ConvLayer<Conv2dOptions>;
template class ConvLayer<ConvTranspose2dOptions>;

}  // namespace ebb::models
