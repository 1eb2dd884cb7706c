#include "ebb/optim/clip.h"

#include <algorithm>
#include <cmath>

#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/extremes.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/optim/all_operators.h"
#include "ebb/optim/detail/optimizer_step.h"
#include "ebb/optim/kernels/clip.h"
#include "ebb/optim/rule.h"

namespace ebb::optim {

namespace {

void check(const char* what, const Tensors& gradients, double limit) {
  if (!(std::isfinite(limit) && limit > 0))
    refuse(what, "takes a limit that is finite and above 0, not " + std::to_string(limit));
  for (const Tensor& gradient : gradients)
    if (gradient.defined() && !is_floating(gradient.dtype()))
      refuse(what, "takes floating gradients, not " + gradient.to_string());
  if (std::none_of(gradients.begin(), gradients.end(), [](auto& g) { return g.defined(); }))
    refuse(what, "no gradient is defined");
}

Tensor square_sum(const Tensor& gradient) {
  return cast(sum(square(cast(gradient, state_dtype_of(gradient.dtype())))), DType::f64);
}

// Divides in double: an f32 may not hold the norm.
Tensor scaled(const Tensor& gradient, const Tensor& norm, double limit) {
  const DType computed = state_dtype_of(gradient.dtype());
  const Tensor scale = cast(limit / maximum(norm, limit), computed);
  return cast(cast(gradient, computed) * scale, gradient.dtype());
}

Tensor norm_of(const Tensors& gradients) {
  Tensor total;
  for (const Tensor& gradient : gradients) {
    if (!gradient.defined()) continue;
    const Tensor squares = square_sum(gradient);
    total = total.defined() ? total + squares : squares;
  }
  return sqrt(total);
}

// f of each defined gradient; the others stay undefined.
template <class F>
Tensors each(const Tensors& gradients, const F& f) {
  Tensors results;
  for (const Tensor& gradient : gradients)
    results.push_back(gradient.defined() ? f(gradient) : Tensor());
  return results;
}

}  // namespace

Tensors clip_by_value(const Tensors& gradients, double limit, CallSite site) {
  const ebb::detail::CallScope at(site);
  check("clip_by_value", gradients, limit);
  return each(gradients, [&](const Tensor& g) { return clamp(g, -limit, limit); });
}

Tensors clip_by_norm(const Tensors& gradients, double limit, CallSite site) {
  const ebb::detail::CallScope at(site);
  check("clip_by_norm", gradients, limit);
  return each(gradients, [&](const Tensor& g) { return scaled(g, sqrt(square_sum(g)), limit); });
}

ClippedGradients clip_by_global_norm(const Tensors& gradients, double limit, CallSite site) {
  const ebb::detail::CallScope at(site);
  check("clip_by_global_norm", gradients, limit);
  const Tensor norm = norm_of(gradients);
  return {each(gradients, [&](const Tensor& g) { return scaled(g, norm, limit); }), norm};
}

Tensor global_norm(const Tensors& gradients, CallSite site) {
  const ebb::detail::CallScope at(site);
  check("global_norm", gradients, 1);
  return norm_of(gradients);
}

constinit const OpDef clip_scale_op{
    .name = "clip_scale",
    .infer =
        [](Inference& inference) {
          const Spec& work = inference.inputs[0];
          inference.require(work.dtype == DType::f64 && work.shape == Shape({kClipNumbers}),
                            "takes f64[512] to work in");
          const bool gated = inference.attribute<ClipAttributes>().gated != 0;
          if (gated) {
            ebb::detail::require_scalar(inference, 1, DType::boolean, "`ready`");
            ebb::detail::require_scalar(inference, 2, DType::i64, "`count`");
          }
          for (std::size_t i = gated ? 3 : 1; i < inference.inputs.size(); ++i)
            if (!is_floating(inference.inputs[i].dtype))
              inference.fail(ebb::detail::kTakesFloating);
          ebb::detail::output_like_first(inference);
        },
    .updates = bit(0),
    .stateful = true,
    .cpu = {cpu::clip_scale},
    .cuda = {cuda::clip_scale}};

}  // namespace ebb::optim
