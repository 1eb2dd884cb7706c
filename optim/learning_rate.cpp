#include "ebb/optim/learning_rate.h"

#include "ebb/core/base/error.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/optim/all_operators.h"
#include "ebb/optim/detail/options.h"

namespace ebb::optim {

LearningRate::LearningRate(double rate, CallSite site)
    : schedule_{.kind = ScheduleAttributes::constant, .base = rate} {
  const ebb::detail::CallSiteScope at(site);
  require_not_negative("learning rate", "rate", rate);
}

LearningRate::LearningRate(Tensor rate, CallSite site) : tensor_(std::move(rate)) {
  const ebb::detail::CallSiteScope at(site);
  if (!tensor_.defined() || tensor_.dtype() != DType::f64 || tensor_.rank() != 0)
    ebb::detail::refuse("learning rate", "takes a tensor of f64[], not " + tensor_.to_string());
}

Tensor LearningRate::after(const Tensor& step, CallSite site) const {
  return tensor_.defined() ? tensor_ : apply_one(schedule_op, {step}, schedule_, site);
}

namespace {

void require_positive(const char* name, const char* option, double value) {
  if (!(std::isfinite(value) && value > 0)) reject(name, option, value, "not finite and > 0");
}
void require_at_least(const char* name, const char* option, std::int64_t value,
                      std::int64_t least) {
  if (value < least)
    ebb::detail::refuse(name, std::string(option) + " = " + std::to_string(value) + " is below " +
                                  std::to_string(least));
}

// A schedule that ends after options.steps steps.
LearningRate ending(const char* name, ScheduleAttributes::Kind kind, double peak, double shape,
                    const DecayOptions& options, CallSite site) {
  const ebb::detail::CallSiteScope at(site);
  require_positive(name, "power", shape);
  require_not_negative(name, "peak", peak);
  require_not_negative(name, "end", options.end);
  if (options.warm_up < 0 || options.warm_up >= options.steps)
    ebb::detail::refuse(
        name, "takes 0 <= warm_up < steps, not warm_up = " + std::to_string(options.warm_up) +
                  ", steps = " + std::to_string(options.steps));
  return LearningRate(ScheduleAttributes{.kind = kind,
                                         .base = peak,
                                         .end = options.end,
                                         .shape = shape,
                                         .warm_up = options.warm_up,
                                         .steps = options.steps});
}

LearningRate geometric(const char* name, ScheduleAttributes::Kind kind, double base,
                       const GeometricOptions& options, CallSite site) {
  const ebb::detail::CallSiteScope at(site);
  require_not_negative(name, "base", base);
  require_positive(name, "factor", options.factor);
  require_at_least(name, "every", options.every, 1);
  require_at_least(name, "warm_up", options.warm_up, 0);
  return LearningRate(ScheduleAttributes{.kind = kind,
                                         .base = base,
                                         .shape = options.factor,
                                         .warm_up = options.warm_up,
                                         .steps = options.every});
}

}  // namespace

LearningRate cosine(double peak, const DecayOptions& options, CallSite site) {
  return ending("cosine", ScheduleAttributes::cosine, peak, 1, options, site);
}

LearningRate linear_decay(double peak, const DecayOptions& options, CallSite site) {
  return ending("linear_decay", ScheduleAttributes::polynomial, peak, 1, options, site);
}

LearningRate polynomial_decay(double peak, double power, const DecayOptions& options,
                              CallSite site) {
  return ending("polynomial_decay", ScheduleAttributes::polynomial, peak, power, options, site);
}

LearningRate exponential_decay(double base, const GeometricOptions& options, CallSite site) {
  return geometric("exponential_decay", ScheduleAttributes::exponential, base, options, site);
}

LearningRate step_decay(double base, const GeometricOptions& options, CallSite site) {
  return geometric("step_decay", ScheduleAttributes::staircase, base, options, site);
}

LearningRate linear_warm_up(double rate, std::int64_t steps, CallSite site) {
  const ebb::detail::CallSiteScope at(site);
  require_not_negative("linear_warm_up", "rate", rate);
  require_at_least("linear_warm_up", "steps", steps, 0);
  return LearningRate(
      ScheduleAttributes{.kind = ScheduleAttributes::constant, .base = rate, .warm_up = steps});
}

constinit const OpDef schedule_op{.name = "schedule",
                                  .infer =
                                      [](Inference& inference) {
                                        ebb::detail::require_scalar(inference, 0, DType::i64,
                                                                    "the step");
                                        inference.output(DType::f64, {});
                                      },
                                  .cpu = {cpu::schedule},
                                  .cuda = {cuda::schedule}};

}  // namespace ebb::optim
