#include "ebb/optim/adagrad.h"

#include "ebb/optim/detail/fused_rule.h"
#include "ebb/optim/kernels/adagrad.h"

namespace ebb::optim {

namespace {

std::shared_ptr<const Rule> make_rule(const AdagradOptions& options, CallSite site) {
  const ebb::detail::CallSiteScope at(site);
  require_not_negative("adagrad", "rate_decay", options.rate_decay);
  require_not_negative("adagrad", "initial_sum", options.initial_sum);
  require_not_negative("adagrad", "epsilon", options.epsilon);
  static constexpr const char* kSlots[] = {"square_sum"};
  return std::make_shared<UpdateRule<AdagradUpdate>>(
      "adagrad", kSlots, adagrad_update_op,
      AdagradAttributes{.rate_decay = options.rate_decay,
                        .initial_sum = options.initial_sum,
                        .epsilon = options.epsilon,
                        .weight_decay = options.weight_decay},
      options);
}

}  // namespace

Adagrad::Adagrad(const AdagradOptions& options, CallSite site)
    : Optimizer(make_rule(options, site), options.learning_rate, options.name, options.clip, site) {
}

constinit const OpDef adagrad_update_op = update_operator<AdagradUpdate>(
    "adagrad_update", cpu::adagrad_update, cuda::adagrad_update, cuda::adagrad_update_merged);

}  // namespace ebb::optim
