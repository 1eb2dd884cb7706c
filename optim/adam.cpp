#include "ebb/optim/adam.h"

#include <array>

#include "ebb/core/ops/shape_rules.h"
#include "ebb/optim/detail/fused_rule.h"
#include "ebb/optim/detail/options.h"
#include "ebb/optim/kernels/adam.h"

namespace ebb::optim {

namespace {

// Adam and AdamW, which differ in where the weight decay goes.
class AdamRule final : public FusedRule {
 public:
  AdamRule(const char* name, const AdamAttributes& attributes, std::optional<DType> state_dtype)
      : FusedRule(state_dtype), name_(name), attributes_(attributes) {
    require_fraction(name, "beta1", attributes.beta1);
    require_fraction(name, "beta2", attributes.beta2);
    require_not_negative(name, "epsilon", attributes.epsilon);
    require_not_negative(name, "weight_decay", attributes.weight_decay);
    require_state_dtype(name, "state_dtype", state_dtype);
  }

  const char* name() const noexcept override { return name_; }
  std::span<const char* const> slots() const noexcept override {
    static constexpr std::array kSlots = {"first_moment", "second_moment"};
    return kSlots;
  }
  Tensor update_in_place(const FusedInput& in) const override {
    AdamAttributes attributes = attributes_;
    attributes.gated = in.gate.defined();
    return apply_update(adam_update_op,
                        {in.parameter, in.slots[0], in.slots[1], in.gradient, in.step, in.rate},
                        attributes, in.gate);
  }

 private:
  const char* const name_;
  const AdamAttributes attributes_;
};

template <class Options>
std::shared_ptr<const Rule> make_rule(const char* name, const Options& options, bool decoupled) {
  return std::make_shared<AdamRule>(name,
                                    AdamAttributes{.beta1 = options.beta1,
                                                   .beta2 = options.beta2,
                                                   .epsilon = options.epsilon,
                                                   .weight_decay = options.weight_decay,
                                                   .decoupled = decoupled},
                                    options.state_dtype);
}

}  // namespace

Adam::Adam(const AdamOptions& options)
    : Optimizer(make_rule("adam", options, false), options.learning_rate, options.name) {}

AdamW::AdamW(const AdamWOptions& options)
    : Optimizer(make_rule("adamw", options, true), options.learning_rate, options.name) {}

constinit const OpDef adam_update_op{
    .name = "adam_update",
    .infer =
        [](Inference& inference) {
          infer_update(inference, 4);
          ebb::detail::require_scalar(inference, 4, DType::i64, "the step");
          ebb::detail::require_scalar(inference, 5, DType::f64, "the rate");
          require_gate(inference, inference.attribute<AdamAttributes>().gated);
        },
    .updates = bit(0) | bit(1) | bit(2),
    .stateful = true,
    .cpu = {cpu::adam_update},
    .cuda = {.run = cuda::adam_update, .run_merged = cuda::adam_update_merged}};

}  // namespace ebb::optim
