#include "ebb/core/kernels/where.h"

#include "ebb/core/kernels/for_dtype.h"
#include "ebb/kernels/cpu/chunks.h"

namespace ebb::cpu {
namespace {

using Flag = std::uint8_t;

template <class W>
void choose_run(const Flag* condition, const W* a, const W* b, W* out,
                std::int64_t count) noexcept {
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (std::int64_t i = 0; i < count; ++i) {
    const W x = a[i], y = b[i];  // both, so that there is no branch
    out[i] = condition[i] != 0 ? x : y;
  }
}

template <class W>
void choose(const KernelContext& context) {
  const Buffer &condition = context.inputs[0], &first = context.inputs[1],
               &out = context.outputs[0];
  const auto& number = context.attribute<NumberOperand>();
  const std::uint64_t element = element_of(out.spec.dtype, number.value);
  W value;
  std::memcpy(&value, &element, sizeof(W));
  const W *a = first.as<const W>(), *b = a;
  const Shape one;
  const Shape *shape_a = &first.spec.shape, *shape_b = shape_a;
  if (number.position == NumberOperand::left) {
    a = &value;
    shape_a = &one;
  } else if (number.position == NumberOperand::right) {
    b = &value;
    shape_b = &one;
  } else {
    b = context.inputs[2].as<const W>();
    shape_b = &context.inputs[2].spec.shape;
  }
  const Flag* flags = condition.as<const Flag>();
  W* to = out.as<W>();
  const BroadcastWalk walk(out.spec.shape, condition.spec.shape, *shape_a, *shape_b);
  for_rows(walk, [&](const std::int64_t(&from)[3], std::int64_t begin, std::int64_t count) {
    Chunks<Flag> chunks(flags + from[0], walk.one(0), count);
    Chunks<W> of_a(a + from[1], walk.one(1), count), of_b(b + from[2], walk.one(2), count);
    for (std::int64_t i = 0; i < count; i += kChunk) {
      const std::int64_t some = std::min(kChunk, count - i);
      choose_run(chunks.at(i, some), of_a.at(i, some), of_b.at(i, some), to + begin + i, some);
    }
  });
}

}  // namespace

Status where(const KernelContext& context) {
  return for_word(context.outputs[0].spec.dtype,
                  [&](auto type) { choose<decltype(type)>(context); });
}

}  // namespace ebb::cpu
