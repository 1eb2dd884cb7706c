#include "ebb/core/kernels/device_figures.h"

namespace ebb::cpu {
namespace {

Status give(const KernelContext& context,
            std::int64_t (DeviceFigures::*figure)() const noexcept) noexcept {
  const auto& figures = *static_cast<const DeviceFigures*>(context.prepared);
  *context.outputs[0].as<std::int64_t>() = (figures.*figure)();
  return {};
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

}  // namespace ebb::cpu
