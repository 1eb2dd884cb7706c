#include <cstring>

#include "ebb/core/kernels/for_dtype.h"
#include "ebb/core/kernels/pointwise.h"
#include "ebb/kernels/cpu/chunks.h"

namespace ebb::cpu {
namespace {

using Flag = std::uint8_t;

template <class W>
void choose_run(const Flag* condition, const W* a, const W* b, W* out,
                std::int64_t count) noexcept {
  EBB_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < count; ++i) {
    const W x = a[i], y = b[i];  // both, so that there is no branch
    out[i] = condition[i] != 0 ? x : y;
  }
}

template <class W>
void choose(const KernelContext& context) {
  const Buffer &condition = context.inputs[0], &out = context.outputs[0];
  const auto& number = context.attribute<NumberOperand>();
  const auto [a, b] = TwoOperands(context.inputs.subspan(1), number.position);
  const std::uint64_t element = element_of(out.spec.dtype, number.value);
  W value;
  std::memcpy(&value, &element, sizeof(W));
  for_chunks(
      BroadcastWalk(out.spec.shape, condition.spec.shape, shape_of(a), shape_of(b)),
      [](auto... arrays) { choose_run<W>(arrays...); }, out.as<W>(), condition.as<const Flag>(),
      a == nullptr ? &value : a->as<const W>(), b == nullptr ? &value : b->as<const W>());
}

}  // namespace

Status where(const KernelContext& context) {
  return for_word(context.outputs[0].spec.dtype, [&]<class T>(T) { choose<T>(context); });
}

}  // namespace ebb::cpu
