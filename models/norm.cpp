#include "ebb/models/norm.h"

#include "ebb/core/ops/collective.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/update.h"
#include "ebb/core/ops/where.h"
#include "ebb/core/parameters/declaring.h"
#include "ebb/core/random/random.h"
#include "ebb/core/tensor/launch_row.h"
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

// Statistics of all ranks' elements, from sums of what each has: first the mean, then the squared
// distances from it.
Tensor BatchNorm::over_ranks(const Tensor& x) const {
  const distributed::World& world = *options_.world;
  const int axis = options_.axis < 0 ? options_.axis + x.rank() : options_.axis;
  Axes others;
  Tensor elements = fill_like(size(x, axis), 1);
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) {
    shape.push_back(i == axis ? -1 : 1);
    if (i == axis) continue;
    others.push_back(i);
    elements = elements * size(x, i);
  }
  const DType dtype = running_mean_.dtype();
  const Tensor wide = cast(x, dtype), own = reshape(cast(elements, dtype), {1});
  const auto along = [&](const Tensor& statistic) { return reshape(statistic, shape); };
  // An optimizer weighs a rank's gradient by its rows, so the gradients that meet in a sum are
  // weighed likewise, and what comes back is divided by this rank's.
  const Tensor weight = maximum(cast(ebb::detail::rows_in_use(x, world), dtype), 1);
  const auto weighed = [](const Tensor& value, const Tensor& by) {
    const Tensor constant = value.detach();
    return constant + (value - constant) * by;
  };
  const auto over_all = [&](const Tensor& part) {
    return weighed(distributed::all_reduce(weighed(part, 1 / weight), world), weight);
  };
  const Tensor sums = over_all(concat({sum(wide, {.axes = others}), own}));
  const std::int64_t channels = scale_.shape()[0];
  const Tensor count = slice(sums, channels, channels + 1);
  const Tensor mean = slice(sums, 0, channels) / count;
  const Tensor centered = wide - along(mean);
  const Tensor squares = over_all(sum(square(centered), {.axes = others}));
  const Tensor variance = squares / count;
  const Tensor y =
      cast(centered * along(rsqrt(variance + options_.epsilon)), x.dtype()) * along(scale_) +
      along(shift_);
  // One element has no variance, and leaves the running ones as they were.
  const auto next = [&](const Tensor& running, const Tensor& now) {
    const double momentum = options_.momentum;
    return where(count.detach() > 1, running * (1 - momentum) + now.detach() * momentum, running);
  };
  const Tensor next_mean = next(running_mean_, mean);
  const Tensor next_variance = next(running_variance_, squares / (count - 1));
  ebb::detail::LaunchRow row;  // both or neither
  const Tensor updates[] = {assign(running_mean_, next_mean),
                            assign(running_variance_, next_variance)};
  row.flush();
  return ebb::detail::with_updates(y, updates);
}

Tensor BatchNorm::operator()(const Tensor& x, Phase phase, CallSite site) const {
  if (options_.world && phase == Phase::training) {
    const ebb::detail::CallScope at(site);
    return over_ranks(x);
  }
  return batch_norm({x, site}, scale_, shift_, running_mean_, running_variance_,
                    {.phase = phase,
                     .axis = options_.axis,
                     .momentum = options_.momentum,
                     .epsilon = options_.epsilon});
}

}  // namespace ebb::models
