#include <cstdint>

#include "ebb/core/kernels/random.h"

namespace ebb::cpu {

void draw(const KernelContext& context) {
  const auto& attributes = context.attribute<DrawAttributes>();
  const auto run = static_cast<std::uint64_t>(*context.inputs[0].as<const std::int64_t>());
  auto* out = context.outputs[0].as<std::int64_t>();
  out[0] = static_cast<std::int64_t>(attributes.key);
  out[1] = static_cast<std::int64_t>((run << 32) | attributes.node);
}

}  // namespace ebb::cpu
