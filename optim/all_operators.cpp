#include "ebb/optim/all_operators.h"

namespace ebb::optim {

std::span<const OpDef* const> all_operators() noexcept {
  static constexpr const OpDef* kAllOperators[] = {
#define EBB_UPDATE(name, rule) &name##_op,
#include "ebb/optim/kernels/rules.inc"
      &clip_scale_op, &schedule_op, &accumulate_op};
  return kAllOperators;
}

}  // namespace ebb::optim
