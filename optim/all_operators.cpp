#include "ebb/optim/all_operators.h"

#include "ebb/optim/accumulator.h"
#include "ebb/optim/adam.h"
#include "ebb/optim/learning_rate.h"
#include "ebb/optim/sgd.h"

namespace ebb::optim {

std::span<const OpDef* const> all_operators() noexcept {
  static constexpr const OpDef* kAllOperators[] = {&sgd_update_op, &sgd_momentum_update_op,
                                                   &adam_update_op, &schedule_op, &accumulate_op};
  return kAllOperators;
}

}  // namespace ebb::optim
