#include "ebb/optim/all_operators.h"

#include "ebb/optim/accumulator.h"
#include "ebb/optim/adagrad.h"
#include "ebb/optim/adam.h"
#include "ebb/optim/average.h"
#include "ebb/optim/clip.h"
#include "ebb/optim/learning_rate.h"
#include "ebb/optim/lion.h"
#include "ebb/optim/rmsprop.h"
#include "ebb/optim/sgd.h"

namespace ebb::optim {

std::span<const OpDef* const> all_operators() noexcept {
  static constexpr const OpDef* kAllOperators[] = {
#define EBB_UPDATE(name, rule) &name##_op,
#include "ebb/optim/kernels/rules.inc"
#undef EBB_UPDATE
      &clip_scale_op, &schedule_op, &accumulate_op};
  return kAllOperators;
}

}  // namespace ebb::optim
