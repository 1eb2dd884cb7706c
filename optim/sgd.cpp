#include "ebb/optim/sgd.h"

#include "ebb/optim/detail/fused_rule.h"
#include "ebb/optim/kernels/sgd.h"

namespace ebb::optim {

namespace {

std::shared_ptr<const Rule> make_rule(const SgdOptions& options, CallSite site) {
  const ebb::detail::CallSiteScope at(site);
  require_fraction("sgd", "momentum", options.momentum);
  if (options.nesterov && options.momentum == 0)
    ebb::detail::refuse("sgd", "nesterov needs a momentum above 0");
  const SgdAttributes attributes = {.momentum = options.momentum,
                                    .weight_decay = options.weight_decay,
                                    .nesterov = options.nesterov};
  static constexpr const char* kSlots[] = {"velocity"};
  if (options.momentum == 0)
    return std::make_shared<UpdateRule<SgdUpdate<false>>>("sgd", std::span<const char* const>(),
                                                          sgd_update_op, attributes, options);
  return std::make_shared<UpdateRule<SgdUpdate<true>>>("sgd", kSlots, sgd_momentum_update_op,
                                                       attributes, options);
}

}  // namespace

Sgd::Sgd(const SgdOptions& options, CallSite site)
    : Optimizer(make_rule(options, site), options.learning_rate, options.name, options.clip, site) {
}

constinit const OpDef sgd_update_op = update_operator<SgdUpdate<false>>(
    "sgd_update", cpu::sgd_update, cuda::sgd_update, cuda::sgd_update_merged);
constinit const OpDef sgd_momentum_update_op =
    update_operator<SgdUpdate<true>>("sgd_update", cpu::sgd_momentum_update,
                                     cuda::sgd_momentum_update, cuda::sgd_momentum_update_merged);

}  // namespace ebb::optim
