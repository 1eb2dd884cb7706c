// The optimizers that come with ebb: for each, its rule from its options, and its operators.
#include "ebb/optim/kernels/rules.h"
#include "ebb/optim/adagrad.h"
#include "ebb/optim/adam.h"
#include "ebb/optim/all_operators.h"
#include "ebb/optim/detail/update_rule.h"
#include "ebb/optim/lion.h"
#include "ebb/optim/rmsprop.h"
#include "ebb/optim/sgd.h"

namespace ebb::optim {

using ebb::detail::CallSiteScope;

namespace {

using Names = std::span<const char* const>;
using RulePointer = std::shared_ptr<const Rule>;

RulePointer make_rule(const SgdOptions& options, CallSite site) {
  const CallSiteScope at(site);
  require_fraction("sgd", "momentum", options.momentum);
  if (options.nesterov && options.momentum == 0)
    ebb::detail::refuse("sgd", "nesterov needs a momentum above 0");
  const SgdAttributes attributes = {.momentum = options.momentum,
                                    .weight_decay = options.weight_decay,
                                    .nesterov = options.nesterov};
  static constexpr const char* kSlots[] = {"velocity"};
  if (options.momentum == 0)
    return std::make_shared<UpdateRule<SgdUpdate<false>>>("sgd", Names(), sgd_update_op, attributes,
                                                          options);
  return std::make_shared<UpdateRule<SgdUpdate<true>>>("sgd", kSlots, sgd_momentum_update_op,
                                                       attributes, options);
}

// Adam and AdamW, which differ in where the weight decay goes.
template <class Options>
RulePointer make_adam(const char* name, const Options& options, bool decoupled, CallSite site) {
  const CallSiteScope at(site);
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

RulePointer make_rule(const AdamOptions& options, CallSite site) {
  return make_adam("adam", options, false, site);
}
RulePointer make_rule(const AdamWOptions& options, CallSite site) {
  return make_adam("adamw", options, true, site);
}

template <int kForm>
RulePointer make_rule(const OpDef& op, Names slots, const RmspropOptions& options) {
  return std::make_shared<UpdateRule<RmspropUpdate<kForm>>>(
      "rmsprop", slots, op,
      RmspropAttributes{.decay = options.decay,
                        .epsilon = options.epsilon,
                        .momentum = options.momentum,
                        .weight_decay = options.weight_decay},
      options);
}

RulePointer make_rule(const RmspropOptions& options, CallSite site) {
  const CallSiteScope at(site);
  require_fraction("rmsprop", "decay", options.decay);
  require_not_negative("rmsprop", "epsilon", options.epsilon);
  require_fraction("rmsprop", "momentum", options.momentum);
  static constexpr const char* kAll[] = {"square_mean", "mean", "velocity"};
  static constexpr const char* kVelocity[] = {"square_mean", "velocity"};
  const Names all = kAll;
  if (options.momentum == 0)
    return options.centered
               ? make_rule<kCentered>(rmsprop_centered_update_op, all.first(2), options)
               : make_rule<0>(rmsprop_update_op, all.first(1), options);
  return options.centered
             ? make_rule<kCentered | kMomentum>(rmsprop_centered_momentum_update_op, all, options)
             : make_rule<kMomentum>(rmsprop_momentum_update_op, kVelocity, options);
}

RulePointer make_rule(const AdagradOptions& options, CallSite site) {
  const CallSiteScope at(site);
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

RulePointer make_rule(const LionOptions& options, CallSite site) {
  const CallSiteScope at(site);
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

template <class Options>
OptimizerOf<Options>::OptimizerOf(const Options& options, CallSite site)
    : Optimizer(make_rule(options, site), options.learning_rate, options.name, options.clip, site,
                options.world) {}
template class OptimizerOf<SgdOptions>;
template class OptimizerOf<AdamOptions>;
template class OptimizerOf<AdamWOptions>;
template class OptimizerOf<RmspropOptions>;
template class OptimizerOf<AdagradOptions>;
template class OptimizerOf<LionOptions>;

#define EBB_OPERATOR(text, name, ...) \
  constinit const OpDef name##_op =   \
      update_operator<__VA_ARGS__>(text, cpu::name, cuda::name, cuda::name##_merged);
EBB_OPERATOR("sgd_update", sgd_update, SgdUpdate<false>)
EBB_OPERATOR("sgd_update", sgd_momentum_update, SgdUpdate<true>)
EBB_OPERATOR("adam_update", adam_update, AdamUpdate)
EBB_OPERATOR("rmsprop_update", rmsprop_update, RmspropUpdate<0>)
EBB_OPERATOR("rmsprop_update", rmsprop_centered_update, RmspropUpdate<kCentered>)
EBB_OPERATOR("rmsprop_update", rmsprop_momentum_update, RmspropUpdate<kMomentum>)
EBB_OPERATOR("rmsprop_update", rmsprop_centered_momentum_update,
             RmspropUpdate<kCentered | kMomentum>)
EBB_OPERATOR("adagrad_update", adagrad_update, AdagradUpdate)
EBB_OPERATOR("lion_update", lion_update, LionUpdate)
#undef EBB_OPERATOR

}  // namespace ebb::optim
