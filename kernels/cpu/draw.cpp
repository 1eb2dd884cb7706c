#include <cstdint>

#include "ebb/core/kernels/random.h"

namespace ebb::cpu {

Status draw(const KernelContext& context) {
  const auto* state = context.inputs[0].as<const std::int64_t>();
  const auto run = static_cast<std::uint64_t>(state[1]);
  auto* out = context.outputs[0].as<std::int64_t>();
  out[0] = state[0];
  out[1] = static_cast<std::int64_t>((run << 32) | context.attribute<DrawAttributes>().node);
  return {};
}

Status next_run(const KernelContext& context) {
  ++context.inputs[0].as<std::int64_t>()[1];
  return {};
}

}  // namespace ebb::cpu
