#include "ebb/optim/adam.h"

#include "ebb/optim/detail/fused_rule.h"
#include "ebb/optim/kernels/adam.h"

namespace ebb::optim {

namespace {

// Adam and AdamW, which differ in where the weight decay goes.
template <class Options>
std::shared_ptr<const Rule> make_rule(const char* name, const Options& options, bool decoupled,
                                      CallSite site) {
  const ebb::detail::CallSiteScope at(site);
  require_fraction(name, "beta1", options.beta1);
  require_fraction(name, "beta2", options.beta2);
  require_not_negative(name, "epsilon", options.epsilon);
  static constexpr const char* kSlots[] = {"first_moment", "second_moment"};
  return std::make_shared<UpdateRule<AdamUpdate>>(
      name, kSlots, adam_update_op,
      AdamAttributes{.beta1 = options.beta1,
                     .beta2 = options.beta2,
                     .epsilon = options.epsilon,
                     .weight_decay = options.weight_decay,
                     .decoupled = decoupled},
      options);
}

}  // namespace

Adam::Adam(const AdamOptions& options, CallSite site)
    : Optimizer(make_rule("adam", options, false, site), options.learning_rate, options.name,
                options.clip, site) {}

AdamW::AdamW(const AdamWOptions& options, CallSite site)
    : Optimizer(make_rule("adamw", options, true, site), options.learning_rate, options.name,
                options.clip, site) {}

constinit const OpDef adam_update_op = update_operator<AdamUpdate>(
    "adam_update", cpu::adam_update, cuda::adam_update, cuda::adam_update_merged);

}  // namespace ebb::optim
