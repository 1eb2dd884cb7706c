#include "ebb/optim/lion.h"

#include "ebb/optim/detail/fused_rule.h"
#include "ebb/optim/kernels/lion.h"

namespace ebb::optim {

namespace {

std::shared_ptr<const Rule> make_rule(const LionOptions& options, CallSite site) {
  const ebb::detail::CallSiteScope at(site);
  require_fraction("lion", "beta1", options.beta1);
  require_fraction("lion", "beta2", options.beta2);
  static constexpr const char* kSlots[] = {"momentum"};
  return std::make_shared<UpdateRule<LionUpdate>>(
      "lion", kSlots, lion_update_op,
      LionAttributes{
          .beta1 = options.beta1, .beta2 = options.beta2, .weight_decay = options.weight_decay},
      options);
}

}  // namespace

Lion::Lion(const LionOptions& options, CallSite site)
    : Optimizer(make_rule(options, site), options.learning_rate, options.name, options.clip, site) {
}

constinit const OpDef lion_update_op = update_operator<LionUpdate>(
    "lion_update", cpu::lion_update, cuda::lion_update, cuda::lion_update_merged);

}  // namespace ebb::optim
