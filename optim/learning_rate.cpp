#include "ebb/optim/learning_rate.h"

#include "ebb/core/base/error.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/optim/detail/options.h"

namespace ebb::optim {

LearningRate::LearningRate(double rate)
    : schedule_{.kind = ScheduleAttributes::constant, .base = rate} {
  require_not_negative("learning rate", "rate", rate);
}

LearningRate::LearningRate(Tensor rate) : tensor_(std::move(rate)) {
  if (!tensor_.defined() || tensor_.dtype() != DType::f64 || tensor_.rank() != 0)
    throw Error("[learning rate] takes a tensor of f64[], not " + tensor_.to_string());
}

Tensor LearningRate::after(const Tensor& step, CallSite site) const {
  return tensor_.defined() ? tensor_ : apply_one(schedule_op, {step}, schedule_, site);
}

LearningRate cosine(double peak, const CosineOptions& options) {
  require_not_negative("cosine", "peak", peak);
  require_not_negative("cosine", "end", options.end);
  if (options.warm_up < 0 || options.warm_up >= options.steps)
    throw Error("[cosine] takes 0 <= warm_up < steps, not warm_up = " +
                std::to_string(options.warm_up) + ", steps = " + std::to_string(options.steps));
  return LearningRate(ScheduleAttributes{.kind = ScheduleAttributes::cosine,
                                         .base = peak,
                                         .end = options.end,
                                         .warm_up = options.warm_up,
                                         .steps = options.steps});
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
