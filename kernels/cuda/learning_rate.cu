#include "ebb/optim/kernels/learning_rate.h"

#include "ebb/kernels/cuda/launch.h"

namespace ebb::cuda {
namespace {

using Schedule = optim::ScheduleAttributes;

__global__ void schedule_kernel(Schedule s, const std::int64_t* last, double* out) {
  const std::int64_t step = *last + 1;
  double rate = s.base;
  if (s.kind == Schedule::cosine) {
    if (step <= s.warm_up) {
      rate = s.base * static_cast<double>(step) / static_cast<double>(s.warm_up);
    } else if (step >= s.steps) {
      rate = s.end;
    } else {
      const double part =
          static_cast<double>(step - s.warm_up) / static_cast<double>(s.steps - s.warm_up);
      rate = s.end + (s.base - s.end) * (1 + cospi(part)) / 2;
    }
  }
  *out = rate;
}

}  // namespace

Status schedule(const KernelContext& context) {
  return launch(stream_of(context), schedule_kernel, 1, 1, context.attribute<Schedule>(),
                context.inputs[0].as<const std::int64_t>(), context.outputs[0].as<double>());
}

}  // namespace ebb::cuda
