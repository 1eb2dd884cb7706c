#include "ebb/core/kernels/device_figures.h"

#include "ebb/kernels/cuda/launch.h"

namespace ebb::cuda {
namespace {

__global__ void store(std::int64_t value, std::int64_t* to) { *to = value; }

// Stores the figure's value at launch; a capture would repeat that value for good.
Status give(const KernelContext& context,
            std::int64_t (DeviceFigures::*figure)() const noexcept) noexcept {
  const auto& figures = *static_cast<const DeviceFigures*>(context.prepared);
  return launch(stream_of(context), store, 1, 1, (figures.*figure)(),
                context.outputs[0].as<std::int64_t>());
}

}  // namespace

Status bytes_in_use(const KernelContext& context) {
  return give(context, &DeviceFigures::bytes_in_use);
}

Status max_bytes_in_use(const KernelContext& context) {
  return give(context, &DeviceFigures::max_bytes_in_use);
}

Status bytes_limit(const KernelContext& context) {
  return give(context, &DeviceFigures::bytes_limit);
}

}  // namespace ebb::cuda
