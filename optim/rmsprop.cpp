#include "ebb/optim/rmsprop.h"

#include "ebb/optim/detail/fused_rule.h"
#include "ebb/optim/kernels/rmsprop.h"

namespace ebb::optim {

namespace {

template <int kForm>
std::shared_ptr<const Rule> make_rule(const OpDef& op, std::span<const char* const> slots,
                                      const RmspropOptions& options) {
  return std::make_shared<UpdateRule<RmspropUpdate<kForm>>>(
      "rmsprop", slots, op,
      RmspropAttributes{.decay = options.decay,
                        .epsilon = options.epsilon,
                        .momentum = options.momentum,
                        .weight_decay = options.weight_decay},
      options);
}

std::shared_ptr<const Rule> make_rule(const RmspropOptions& options, CallSite site) {
  const ebb::detail::CallSiteScope at(site);
  require_fraction("rmsprop", "decay", options.decay);
  require_not_negative("rmsprop", "epsilon", options.epsilon);
  require_fraction("rmsprop", "momentum", options.momentum);
  static constexpr const char* kAll[] = {"square_mean", "mean", "velocity"};
  static constexpr const char* kVelocity[] = {"square_mean", "velocity"};
  const std::span<const char* const> all = kAll;
  if (options.momentum == 0)
    return options.centered
               ? make_rule<kCentered>(rmsprop_centered_update_op, all.first(2), options)
               : make_rule<0>(rmsprop_update_op, all.first(1), options);
  return options.centered
             ? make_rule<kCentered | kMomentum>(rmsprop_centered_momentum_update_op, all, options)
             : make_rule<kMomentum>(rmsprop_momentum_update_op, kVelocity, options);
}

}  // namespace

Rmsprop::Rmsprop(const RmspropOptions& options, CallSite site)
    : Optimizer(make_rule(options, site), options.learning_rate, options.name, options.clip, site) {
}

constinit const OpDef rmsprop_update_op = update_operator<RmspropUpdate<0>>(
    "rmsprop_update", cpu::rmsprop_update, cuda::rmsprop_update, cuda::rmsprop_update_merged);
constinit const OpDef rmsprop_centered_update_op = update_operator<RmspropUpdate<kCentered>>(
    "rmsprop_update", cpu::rmsprop_centered_update, cuda::rmsprop_centered_update,
    cuda::rmsprop_centered_update_merged);
constinit const OpDef rmsprop_momentum_update_op = update_operator<RmspropUpdate<kMomentum>>(
    "rmsprop_update", cpu::rmsprop_momentum_update, cuda::rmsprop_momentum_update,
    cuda::rmsprop_momentum_update_merged);
constinit const OpDef rmsprop_centered_momentum_update_op =
    update_operator<RmspropUpdate<kCentered | kMomentum>>(
        "rmsprop_update", cpu::rmsprop_centered_momentum_update,
        cuda::rmsprop_centered_momentum_update, cuda::rmsprop_centered_momentum_update_merged);

}  // namespace ebb::optim
