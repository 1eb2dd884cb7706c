// Kernels that write a number or two.
#include <cmath>
#include <numbers>

#include "ebb/core/kernels/device_figures.h"
#include "ebb/core/kernels/random.h"
#include "ebb/core/kernels/slice.h"
#include "ebb/optim/kernels/learning_rate.h"

namespace ebb::cpu {
namespace {

Status store(const KernelContext& context, std::int64_t value) noexcept {
  *context.outputs[0].as<std::int64_t>() = value;
  return {};
}

}  // namespace

Status draw(const KernelContext& context) {
  const auto* state = context.inputs[0].as<const std::int64_t>();
  auto* out = context.outputs[0].as<std::int64_t>();
  out[0] = state[0];
  out[1] = static_cast<std::int64_t>(context.attribute<DrawAttributes>().counter(state[1]));
  return {};
}

Status next_run(const KernelContext& context) {
  ++context.inputs[0].as<std::int64_t>()[1];
  return {};
}

Status schedule(const KernelContext& context) {
  const std::int64_t step = *context.inputs[0].as<const std::int64_t>() + 1;
  *context.outputs[0].as<double>() =
      optim::rate_of_step(context.attribute<optim::ScheduleAttributes>(), step,
                          [](double x) { return std::cos(std::numbers::pi * x); });
  return {};
}

Status size(const KernelContext& context) {
  const auto axis = static_cast<int>(context.attribute<SizeAttributes>().axis);
  return store(context, context.inputs[0].spec.shape[axis]);
}

Status device_figure(const KernelContext& context) {
  return store(context, static_cast<const DeviceFigure*>(context.prepared)->read());
}

}  // namespace ebb::cpu
