#include "ebb/core/kernels/integers.h"

#include <array>
#include <utility>

#include "ebb/core/kernels/for_dtype.h"
#include "ebb/kernels/cpu/chunks.h"

namespace ebb::cpu {
namespace {

template <class T>
using Loop = void (*)(const T* a, const T* b, T* out, std::int64_t count) noexcept;

template <class T, IntegerOperation operation>
void each(const T* a, const T* b, T* out, std::int64_t count) noexcept {
  EBB_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < count; ++i) out[i] = OnIntegers<T>{operation}(a[i], b[i]);
}

// A loop for each operation, in their order.
template <class T, std::size_t... I>
constexpr auto loops_of(std::index_sequence<I...>) noexcept {
  return std::array<Loop<T>, sizeof...(I)>{each<T, IntegerOperation{I}>...};
}

template <class T>
void run(const KernelContext& context) {
  constexpr auto kLoops = loops_of<T>(std::make_index_sequence<kIntegerOperations>());
  const auto& [number, operation] = context.attribute<NumberAndOperation>();
  const Buffer& out = context.outputs[0];
  const auto [a, b] = TwoOperands(context.inputs, number.position);
  const T value = convert<T>(number.value);
  for_chunks(BroadcastWalk(out.spec.shape, shape_of(a), shape_of(b)),
             kLoops[static_cast<std::size_t>(operation)], out.as<T>(),
             a == nullptr ? &value : a->as<const T>(), b == nullptr ? &value : b->as<const T>());
}

}  // namespace

Status integers(const KernelContext& context) {
  return for_integer(context.outputs[0].spec.dtype, [&]<class T>(T) { run<T>(context); });
}

}  // namespace ebb::cpu
