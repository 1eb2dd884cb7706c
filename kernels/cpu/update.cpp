#include "ebb/core/kernels/update.h"

#include <cstring>

#include "ebb/core/kernels/functors/arithmetic.h"
#include "ebb/core/kernels/pointwise.h"

namespace ebb::cpu {

Status increment(const KernelContext& context) {
  const auto& attributes = context.attribute<CountAttributes>();
  if (attributes.gated != 0 && !*context.inputs[1].as<const bool>()) return {};
  *context.inputs[0].as<std::int64_t>() += attributes.value;
  return {};
}

Status add_count(const KernelContext& context) {
  *context.inputs[0].as<std::int64_t>() += *context.inputs[1].as<const std::int64_t>();
  return {};
}

Status at_least(const KernelContext& context) {
  *context.outputs[0].as<bool>() =
      *context.inputs[0].as<const std::int64_t>() >= context.attribute<CountAttributes>().value;
  return {};
}

Status clear_if(const KernelContext& context) {
  const Buffer& a = context.inputs[0];
  if (!*context.inputs[1].as<const bool>() || a.elements() == 0) return {};
  std::memset(a.data, 0, a.spec.bytes());
  return {};
}

Status add_assign(const KernelContext& context) {
  return cpu::pair<functors::Add>({.inputs = context.inputs, .outputs = context.inputs.first(1)});
}

Status assign(const KernelContext& context) {
  return copy({.inputs = context.inputs.subspan(1, 1), .outputs = context.inputs.first(1)});
}

Status assign_if(const KernelContext& context) {
  return *context.inputs[2].as<const bool>() ? assign(context) : Status{};
}

}  // namespace ebb::cpu
