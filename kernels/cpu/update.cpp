#include "ebb/core/kernels/update.h"

#include <cstring>

#include "ebb/core/kernels/for_dtype.h"
#include "ebb/core/kernels/functors/arithmetic.h"
#include "ebb/kernels/cpu/broadcast.h"
#include "ebb/kernels/cpu/pieces.h"

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
  const Buffer &a = context.inputs[0], &b = context.inputs[1];
  return for_floating(a.spec.dtype, [&](auto type) {
    using T = decltype(type);
    zip_flat(functors::Add(), a.as<const T>(), false, b.as<const T>(), false, a.as<T>(),
             a.elements());
  });
}

Status assign(const KernelContext& context) {
  const Buffer &a = context.inputs[0], &b = context.inputs[1];
  if (a.data == b.data || a.elements() == 0) return {};
  const auto* from = b.as<const std::byte>();
  auto* to = a.as<std::byte>();
  for_pieces(static_cast<std::int64_t>(a.spec.bytes()), 256 * 1024,
             [=](std::int64_t begin, std::int64_t end) {
               std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
             });
  return {};
}

Status assign_if(const KernelContext& context) {
  return *context.inputs[2].as<const bool>() ? assign(context) : Status{};
}

}  // namespace ebb::cpu
