#include "ebb/optim/kernels/learning_rate.h"

#include "ebb/kernels/cuda/launch.h"

namespace ebb::cuda {
namespace {

struct CosPi {
  __device__ double operator()(double x) const { return cospi(x); }
};

__global__ void schedule_kernel(optim::ScheduleAttributes schedule, const std::int64_t* last,
                                double* out) {
  *out = optim::rate_of_step(schedule, *last + 1, CosPi());
}

}  // namespace

Status schedule(const KernelContext& context) {
  return launch(stream_of(context), schedule_kernel, 1, 1,
                context.attribute<optim::ScheduleAttributes>(),
                context.inputs[0].as<const std::int64_t>(), context.outputs[0].as<double>());
}

}  // namespace ebb::cuda
