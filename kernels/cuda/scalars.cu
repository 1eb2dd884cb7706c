// Kernels that write a number or two.
#include "ebb/core/kernels/device_figures.h"
#include "ebb/core/kernels/random.h"
#include "ebb/core/kernels/slice.h"
#include "ebb/kernels/cuda/fill.h"
#include "ebb/optim/kernels/learning_rate.h"

namespace ebb::cuda {
namespace {

__global__ void draw_kernel(const std::int64_t* state, std::int64_t* out, DrawAttributes draw) {
  out[0] = state[0];
  out[1] = static_cast<std::int64_t>(draw.counter(state[1]));
}

__global__ void next_run_kernel(std::int64_t* state) { ++state[1]; }

struct CosPi {
  __device__ double operator()(double x) const { return cospi(x); }
};

__global__ void schedule_kernel(optim::ScheduleAttributes schedule, const std::int64_t* last,
                                double* out) {
  *out = optim::rate_of_step(schedule, *last + 1, CosPi());
}

Status store(const KernelContext& context, std::int64_t value) noexcept {
  return fill_with(stream_of(context), context.outputs[0].as<std::int64_t>(), value, 1);
}

}  // namespace

Status draw(const KernelContext& context) {
  return launch(stream_of(context), draw_kernel, 1, 1, context.inputs[0].as<const std::int64_t>(),
                context.outputs[0].as<std::int64_t>(), context.attribute<DrawAttributes>());
}

Status next_run(const KernelContext& context) {
  return launch(stream_of(context), next_run_kernel, 1, 1, context.inputs[0].as<std::int64_t>());
}

Status schedule(const KernelContext& context) {
  return launch(stream_of(context), schedule_kernel, 1, 1,
                context.attribute<optim::ScheduleAttributes>(),
                context.inputs[0].as<const std::int64_t>(), context.outputs[0].as<double>());
}

Status size(const KernelContext& context) {
  const auto axis = static_cast<int>(context.attribute<SizeAttributes>().axis);
  return store(context, context.inputs[0].spec.shape.dim(axis));
}

// As it is at the launch: a capture would repeat it for good.
Status device_figure(const KernelContext& context) {
  return store(context, static_cast<const DeviceFigure*>(context.prepared)->read());
}

}  // namespace ebb::cuda
