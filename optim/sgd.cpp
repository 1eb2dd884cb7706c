#include "ebb/optim/sgd.h"

#include <array>

#include "ebb/optim/detail/fused_rule.h"
#include "ebb/optim/detail/options.h"

namespace ebb::optim {

namespace {

class SgdRule final : public FusedRule {
 public:
  explicit SgdRule(const SgdOptions& options)
      : attributes_{.momentum = options.momentum,
                    .weight_decay = options.weight_decay,
                    .nesterov = options.nesterov} {
    require_fraction("sgd", "momentum", options.momentum);
    require_not_negative("sgd", "weight_decay", options.weight_decay);
    if (options.nesterov && options.momentum == 0)
      throw Error("[sgd] nesterov needs a momentum above 0");
  }

  const char* name() const noexcept override { return "sgd"; }
  std::span<const char* const> slots() const noexcept override {
    static constexpr std::array kSlots = {"velocity"};
    return std::span(kSlots).first(attributes_.momentum > 0 ? 1 : 0);
  }
  Tensor update_in_place(const FusedInput& in) const override {
    return ebb::detail::sgd_update(in.parameter, in.slots.empty() ? Tensor() : in.slots[0],
                                   in.gradient, in.rate, attributes_, in.gate, in.site);
  }

 private:
  const SgdAttributes attributes_;
};

}  // namespace

Sgd::Sgd(const SgdOptions& options)
    : Optimizer(std::make_shared<SgdRule>(options), options.learning_rate, options.name) {}

}  // namespace ebb::optim
