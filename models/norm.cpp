#include "ebb/models/norm.h"

#include "ebb/core/parameters/declaring.h"
#include "ebb/models/detail/layers.h"

namespace ebb::models {
namespace {

void declare_scaling(const Parameters& parameters, const Shape& shape, Tensor& scale,
                     Tensor& shift) {
  scale = parameters.declare("scale", shape, initializers::constant(1));
  shift = parameters.declare("shift", shape, initializers::zeros());
}

}  // namespace

template <bool kHasShift>
LastAxesNorm<kHasShift>::LastAxesNorm(const Parameters& parameters, const Shape& sizes,
                                      double epsilon, CallSite site)
    : options_{.axes = sizes.rank(), .epsilon = epsilon} {
  const ebb::detail::Declaring at(parameters, site);
  const char* const layer = kHasShift ? "layer_norm" : "rms_norm";
  require_size(layer, "the number of axes", sizes.rank());
  for (const std::int64_t size : sizes.dims()) require_size(layer, "a size", size);
  scale_ = parameters.declare("scale", sizes, initializers::constant(1));
  if (kHasShift) shift_ = parameters.declare("shift", sizes, initializers::zeros());
}

template <bool kHasShift>
Tensor LastAxesNorm<kHasShift>::operator()(const Tensor& x, CallSite site) const {
  return kHasShift ? layer_norm({x, site}, scale_, shift_, options_)
                   : rms_norm({x, site}, scale_, options_);
}

template class LastAxesNorm<true>;
template class LastAxesNorm<false>;

GroupNorm::GroupNorm(const Parameters& parameters, int groups, std::int64_t channels,
                     double epsilon, CallSite site)
    : groups_(groups), options_{.epsilon = epsilon} {
  const ebb::detail::Declaring at(parameters, site);
  require_size("group_norm", "groups", groups);
  require_size("group_norm", "channels", channels);
  if (channels % groups != 0)
    ebb::detail::refuse("group_norm", "channels = " + std::to_string(channels) +
                                          " is no multiple of groups = " + std::to_string(groups));
  declare_scaling(parameters, {channels}, scale_, shift_);
}

Tensor GroupNorm::operator()(const Tensor& x, CallSite site) const {
  return group_norm({x, site}, groups_, scale_, shift_, options_);
}

BatchNorm::BatchNorm(const Parameters& parameters, std::int64_t channels,
                     const BatchNormLayerOptions& options, CallSite site)
    : options_(options) {
  const ebb::detail::Declaring at(parameters, site);
  require_size("batch_norm", "channels", channels);
  declare_scaling(parameters, {channels}, scale_, shift_);
  const DType dtype = parameters.dtype() == DType::f64 ? DType::f64 : DType::f32;
  running_mean_ = parameters.state("running_mean", {channels}, initializers::zeros(), dtype);
  running_variance_ =
      parameters.state("running_variance", {channels}, initializers::constant(1), dtype);
}

Tensor BatchNorm::operator()(const Tensor& x, Phase phase, CallSite site) const {
  return batch_norm({x, site}, scale_, shift_, running_mean_, running_variance_,
                    {.phase = phase,
                     .axis = options_.axis,
                     .momentum = options_.momentum,
                     .epsilon = options_.epsilon});
}

}  // namespace ebb::models
