#include "ebb/optim/kernels/learning_rate.h"

#include <cmath>
#include <numbers>

namespace ebb::cpu {

Status schedule(const KernelContext& context) {
  const std::int64_t step = *context.inputs[0].as<const std::int64_t>() + 1;
  *context.outputs[0].as<double>() =
      optim::rate_of_step(context.attribute<optim::ScheduleAttributes>(), step,
                          [](double x) { return std::cos(std::numbers::pi * x); });
  return {};
}

}  // namespace ebb::cpu
