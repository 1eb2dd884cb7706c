#include "ebb/core/kernels/random.h"
#include "ebb/kernels/cuda/launch.h"

namespace ebb::cuda {
namespace {

__global__ void draw_kernel(const std::int64_t* state, std::int64_t* out, std::uint64_t node) {
  const auto run = static_cast<std::uint64_t>(state[1]);
  out[0] = state[0];
  out[1] = static_cast<std::int64_t>(run << 32 | node);
}

__global__ void next_run_kernel(std::int64_t* state) { ++state[1]; }

}  // namespace

Status draw(const KernelContext& context) {
  return launch(stream_of(context), draw_kernel, 1, 1, context.inputs[0].as<const std::int64_t>(),
                context.outputs[0].as<std::int64_t>(), context.attribute<DrawAttributes>().node);
}

Status next_run(const KernelContext& context) {
  return launch(stream_of(context), next_run_kernel, 1, 1, context.inputs[0].as<std::int64_t>());
}

}  // namespace ebb::cuda
