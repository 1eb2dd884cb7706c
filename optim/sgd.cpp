#include "ebb/optim/sgd.h"

#include <array>

#include "ebb/core/ops/shape_rules.h"
#include "ebb/optim/detail/fused_rule.h"
#include "ebb/optim/detail/options.h"
#include "ebb/optim/kernels/sgd.h"

namespace ebb::optim {

namespace {

// Inputs p, (velocity)?, g, rate, gate.
template <std::size_t Arrays>
void infer_sgd(Inference& inference) {
  infer_update(inference, Arrays);
  ebb::detail::require_scalar(inference, Arrays, DType::f64, "the rate");
  require_gate(inference, inference.attribute<SgdAttributes>().gated);
}

class SgdRule final : public FusedRule {
 public:
  explicit SgdRule(const SgdOptions& options)
      : FusedRule(options.state_dtype),
        attributes_{.momentum = options.momentum,
                    .weight_decay = options.weight_decay,
                    .nesterov = options.nesterov} {
    require_fraction("sgd", "momentum", options.momentum);
    require_not_negative("sgd", "weight_decay", options.weight_decay);
    require_state_dtype("sgd", "state_dtype", options.state_dtype);
    if (options.nesterov && options.momentum == 0)
      throw Error("[sgd] nesterov needs a momentum above 0");
  }

  const char* name() const noexcept override { return "sgd"; }
  std::span<const char* const> slots() const noexcept override {
    static constexpr std::array kSlots = {"velocity"};
    return std::span(kSlots).first(attributes_.momentum > 0 ? 1 : 0);
  }
  Tensor update_in_place(const FusedInput& in) const override {
    SgdAttributes attributes = attributes_;
    attributes.gated = in.gate.defined();
    if (in.slots.empty())
      return apply_update(sgd_update_op, {in.parameter, in.gradient, in.rate}, attributes, in.gate);
    return apply_update(sgd_momentum_update_op, {in.parameter, in.slots[0], in.gradient, in.rate},
                        attributes, in.gate);
  }

 private:
  const SgdAttributes attributes_;
};

}  // namespace

Sgd::Sgd(const SgdOptions& options)
    : Optimizer(std::make_shared<SgdRule>(options), options.learning_rate, options.name) {}

constinit const OpDef sgd_update_op{
    .name = "sgd_update",
    .infer = infer_sgd<2>,
    .updates = bit(0),
    .stateful = true,
    .cpu = {cpu::sgd_update},
    .cuda = {.run = cuda::sgd_update, .run_merged = cuda::sgd_update_merged}};

constinit const OpDef sgd_momentum_update_op{
    .name = "sgd_update",
    .infer = infer_sgd<3>,
    .updates = bit(0) | bit(1),
    .stateful = true,
    .cpu = {cpu::sgd_update},
    .cuda = {.run = cuda::sgd_update, .run_merged = cuda::sgd_update_merged}};

}  // namespace ebb::optim
