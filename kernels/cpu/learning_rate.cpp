#include "ebb/optim/kernels/learning_rate.h"

#include <cmath>
#include <numbers>

namespace ebb::cpu {

Status schedule(const KernelContext& context) {
  using Schedule = optim::ScheduleAttributes;
  const auto& s = context.attribute<Schedule>();
  const std::int64_t step = *context.inputs[0].as<const std::int64_t>() + 1;
  double rate = s.base;
  if (s.kind == Schedule::cosine) {
    if (step <= s.warm_up) {
      rate = s.base * static_cast<double>(step) / static_cast<double>(s.warm_up);
    } else if (step >= s.steps) {
      rate = s.end;
    } else {
      const double part =
          static_cast<double>(step - s.warm_up) / static_cast<double>(s.steps - s.warm_up);
      rate = s.end + (s.base - s.end) * (1 + std::cos(std::numbers::pi * part)) / 2;
    }
  }
  *context.outputs[0].as<double>() = rate;
  return {};
}

}  // namespace ebb::cpu
