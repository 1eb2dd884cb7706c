#include "ebb/core/kernels/integers.h"

#include "ebb/core/kernels/for_dtype.h"
#include "ebb/kernels/cpu/chunks.h"

namespace ebb::cpu {
namespace {

template <class T>
using Loop = void (*)(const T* a, const T* b, T* out, std::int64_t count) noexcept;

// out[i] = F()(a[i], b[i]).
template <class F, class T>
void each(const T* a, const T* b, T* out, std::int64_t count) noexcept {
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (std::int64_t i = 0; i < count; ++i) out[i] = F()(a[i], b[i]);
}

// A unary operation is called with a in place of b, and does not read b.
template <class T>
void run(const KernelContext& context) {
  const auto& [number, operation] = context.attribute<NumberAndOperation>();
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const T value = convert<T>(number.value);
  const T *a = in.as<const T>(), *b = a;
  const Shape one;
  const Shape *shape_a = &in.spec.shape, *shape_b = shape_a;
  if (context.inputs.size() == 2) {
    b = context.inputs[1].as<const T>();
    shape_b = &context.inputs[1].spec.shape;
  } else if (number.position == NumberOperand::left) {
    a = &value;
    shape_a = &one;
  } else if (number.position == NumberOperand::right) {
    b = &value;
    shape_b = &one;
  }
  T* to = out.as<T>();
  const BroadcastWalk walk(out.spec.shape, *shape_a, *shape_b);
  const Loop<T> loop = with_operation<T>(IntegerOperation{operation},
                                         [](auto f) -> Loop<T> { return each<decltype(f), T>; });
  for_rows(walk, [&](const std::int64_t(&from)[2], std::int64_t first, std::int64_t count) {
    Chunks<T> of_a(a + from[0], walk.one(0), count), of_b(b + from[1], walk.one(1), count);
    for (std::int64_t i = 0; i < count; i += kChunk) {
      const std::int64_t some = std::min(kChunk, count - i);
      loop(of_a.at(i, some), of_b.at(i, some), to + first + i, some);
    }
  });
}

}  // namespace

Status integers(const KernelContext& context) {
  return for_integer(context.outputs[0].spec.dtype,
                     [&](auto type) { run<decltype(type)>(context); });
}

}  // namespace ebb::cpu
