#include "ebb/core/ops/loss.h"

#include "ebb/core/base/error.h"
#include "ebb/core/kernels/functors/arithmetic.h"
#include "ebb/core/kernels/functors/losses.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/pointwise_rules.h"
#include "ebb/core/ops/reduce.h"

namespace ebb {

using detail::Gradient;

namespace {

Tensor reduce_losses(const Operand& losses, LossReduction reduction) {
  switch (reduction) {
    case LossReduction::mean:
      return mean(losses);
    case LossReduction::sum:
      return sum(losses);
    case LossReduction::none:
      break;
  }
  return losses.take();
}

// The losses of a and b by an operator of pairs, reduced.
Tensor pair_loss(const OpDef& op, const Operand& a, const Operand& b, LossReduction reduction,
                 const Attributes& attributes = {}) {
  const detail::CalledScope called(op.name);
  return reduce_losses({detail::apply_to(op, {a, b}, attributes), a.site()}, reduction);
}

void require_above_zero(const OpDef& op, const char* what, double value, CallSite site) {
  if (!(value > 0)) detail::refuse(op.name, std::string("takes a ") + what + " above 0", site);
}

// The gradients of a function of a - b, of which da is given: db = -da.
Tensors of_difference(Gradient g, Tensor da) {
  Tensor db = g.wants(1) ? -da : Tensor();
  return {g.wants(0) ? std::move(da) : Tensor(), std::move(db)};
}

// Throws where `factor` does not broadcast to the shape of x, as far as sizes are known.
void require_factor(const OpDef& op, const char* what, const Tensor& factor, const Tensor& x,
                    CallSite site) {
  if (factor.dtype() != x.dtype() || !detail::broadcasts_to(factor.shape(), x.shape()))
    detail::fail(op,
                 std::string("the ") + what + ", " +
                     Spec{factor.dtype(), factor.shape()}.to_string() +
                     ", must have the logits' dtype and broadcast to their shape",
                 {x, site});
}

}  // namespace

Tensor mse(const Operand& a, const Operand& b, const LossOptions& options) {
  const detail::CalledScope called("mse");
  const CallSite site = a.site();
  Tensor squares = square({detail::apply_to(difference_op, {a, b}), site});
  return reduce_losses({std::move(squares), site}, options.reduction);
}

Tensor mae(const Operand& a, const Operand& b, const LossOptions& options) {
  return pair_loss(mae_op, a, b, options.reduction);
}

Tensor huber(const Operand& a, const Operand& b, const HuberOptions& options) {
  require_above_zero(huber_op, "delta", options.delta, a.site());
  return pair_loss(huber_op, a, b, options.reduction, functors::Delta{options.delta});
}

Tensor smooth_l1(const Operand& a, const Operand& b, const SmoothL1Options& options) {
  const detail::CalledScope called("smooth_l1");
  require_above_zero(smooth_l1_op, "beta", options.beta, a.site());
  Tensor losses = pair_loss(smooth_l1_op, a, b, options.reduction, functors::Delta{options.beta});
  return Operand(std::move(losses), a.site()) * (1 / options.beta);
}

// A positive weight w adds (w - 1) z softplus(-x) to the loss.
Tensor binary_cross_entropy_with_logits(const Operand& logits, const Operand& targets,
                                        const BinaryCrossEntropyOptions& options) {
  const detail::CalledScope called("binary_cross_entropy_with_logits");
  const OpDef& op = binary_cross_entropy_with_logits_op;
  const CallSite site = logits.site();
  const auto at_site = [&](Tensor&& x) { return Operand(std::move(x), site); };
  const Tensor &x = detail::tensor_of(op, logits), &weight = options.positive_weight;
  if (weight.defined()) require_factor(op, "positive weight", weight, x, site);
  if (options.weights.defined()) require_factor(op, "weights", options.weights, x, site);
  Tensor losses;
  if (weight.defined()) {
    const Tensor logits_held = x, targets_held = detail::tensor_of(op, targets);
    losses = detail::apply_to(op, {{logits_held, site}, targets_held});
    // The weight is multiplied last: where it is constant, its other factor is then not kept.
    Tensor others = at_site(softplus(at_site(-Operand(logits_held, site)))) * targets_held;
    others = at_site(std::move(others)) * at_site(Operand(weight, site) - 1);
    losses = at_site(std::move(losses)) + at_site(std::move(others));
  } else {
    losses = detail::apply_to(op, {logits, targets});
  }
  if (options.weights.defined()) losses = at_site(std::move(losses)) * options.weights;
  return reduce_losses(at_site(std::move(losses)), options.reduction);
}

Tensor kl_divergence(const Operand& log_p, const Operand& log_q, const LossOptions& options) {
  const detail::CalledScope called("kl_divergence");
  const CallSite site = log_p.site();
  if (detail::tensor_of(kl_divergence_op, log_p).rank() == 0)
    detail::fail(kl_divergence_op, "takes log p and log q [.., classes]", log_p);
  Tensor divergences =
      sum({detail::apply_to(kl_divergence_op, {log_p, log_q}), site}, ReduceOptions{.axis = -1});
  return reduce_losses({std::move(divergences), site}, options.reduction);
}

// A subtraction without broadcasting, also for open shapes once they are fed.
constinit const OpDef difference_op = detail::pair<functors::Subtract>(
    "mse", {.gradient = [](Gradient g) -> Tensors { return of_difference(g, g.take_dy()); }},
    cpu::zip<functors::Subtract>, cuda::zip<functors::Subtract>);

constinit const OpDef mae_op = detail::pair<functors::AbsoluteDifference>(
    "mae", {.gradient = [](Gradient g) -> Tensors {
              return of_difference(g, g.take_dy() * sign(g.x(0) - g.x(1)));
            },
            .keeps = input(0) | input(1)});

namespace {
constexpr detail::GradientRule kHuberRule = {
    .gradient = [](Gradient g) -> Tensors {
      const double delta = g.attribute<functors::Delta>().delta;
      return of_difference(g, g.take_dy() * clamp(g.x(0) - g.x(1), -delta, delta));
    },
    .keeps = input(0) | input(1)};
}  // namespace

constinit const OpDef huber_op = detail::pair<functors::Huber>("huber", kHuberRule);
// huber under its own name; smooth_l1() divides by beta.
constinit const OpDef smooth_l1_op = detail::pair<functors::Huber>("smooth_l1", kHuberRule);

constinit const OpDef binary_cross_entropy_with_logits_op =
    detail::pair<functors::BinaryCrossEntropy>(
        "binary_cross_entropy_with_logits",
        {.gradient = [](Gradient g) -> Tensors {
           Tensor dx, dz;
           if (g.wants(1)) dz = -g.dy() * g.x(0);
           if (g.wants(0)) dx = g.take_dy() * (sigmoid(g.take_x(0)) - g.x(1));
           return {dx, dz};
         },
         .keeps_input = [](std::size_t i,
                           const IndexSet& wants) { return i == 0 || wants.has(0); }});

// With y = p (log p - log q), the derivative by log p is y + p, by log q -p.
constinit const OpDef kl_divergence_op = detail::pair<functors::Divergence>(
    "kl_divergence",
    {.gradient = [](Gradient g) -> Tensors {
       const Tensor p = exp(g.take_x(0));
       Tensor d_log_p, d_log_q;
       if (g.wants(1)) d_log_q = -g.dy() * p;
       if (g.wants(0)) d_log_p = g.take_dy() * (g.take_y() + p);
       return {d_log_p, d_log_q};
     },
     .keeps = input(0),
     .keeps_output = [](std::size_t, const IndexSet& wants) { return wants.has(0); }});

}  // namespace ebb
