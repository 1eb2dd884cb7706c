#include "ebb/optim/adagrad.h"

#include "ebb/optim/detail/fused_rule.h"
#include "ebb/optim/kernels/adagrad.h"

namespace ebb::optim {

namespace {

std::shared_ptr<const Rule> make_rule(const AdagradOptions& options) {
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

Adagrad::Adagrad(const AdagradOptions& options)
    : Optimizer(make_rule(options), options.learning_rate, options.name, options.clip) {}

constinit const OpDef adagrad_update_op = update_operator<AdagradUpdate>(
    "adagrad_update", cpu::adagrad_update, cuda::adagrad_update, cuda::adagrad_update_merged);

}  // namespace ebb::optim
