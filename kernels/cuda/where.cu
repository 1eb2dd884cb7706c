#include <cstring>
#include <type_traits>

#include "ebb/core/kernels/convert.h"
#include "ebb/core/kernels/pointwise.h"
#include "ebb/kernels/cuda/broadcast.h"

namespace ebb::cuda {
namespace {

using Flag = std::uint8_t;

// out = condition ? a : b, on words of the elements' size.
template <class W, class Offsets>
struct Choose {
  Operand<Flag> condition;
  Operand<W> a, b;
  W* out;
  Offsets walk;

  template <int N>
  __device__ void at(std::int64_t i) const {
    std::int64_t from[3];
    walk.offsets(i, from);
    const auto flags = condition.template at<N>(from[0]);
    const auto x = a.template at<N>(from[1]), y = b.template at<N>(from[2]);
    Pack<W, N> result;
    for (int j = 0; j < N; ++j) result[j] = flags[j] != 0 ? x[j] : y[j];
    store(out + i, result);
  }
};

template <class W>
Status choose(const KernelContext& context) noexcept {
  constexpr int N = kPack<W>;
  const Buffer &given = context.inputs[0], &out = context.outputs[0];
  const auto& number = context.attribute<NumberOperand>();
  const std::int64_t count = out.elements();
  if (count == 0) return {};
  const auto [left, right] = TwoOperands(context.inputs.subspan(1), number.position);
  const BroadcastWalk walk(out.spec.shape, given.spec.shape, shape_of(left), shape_of(right));
  const std::uint64_t element = element_of(out.spec.dtype, number.value);
  const auto operand = [&](const Buffer* of, int input) {
    Operand<W> made{of == nullptr ? nullptr : of->as<const W>(), {}, walk.one(input)};
    std::memcpy(&made.number, &element, sizeof(W));
    return made;
  };
  const Operand<Flag> condition{given.as<const Flag>(), {}, walk.one(0)};
  const Operand<W> a = operand(left, 1), b = operand(right, 2);
  W* to = out.as<W>();
  return with_offsets<N>(walk, count, [&](const auto& offsets, bool rows_take_packs) {
    const bool packed = rows_take_packs && takes_packs<N>(to) &&
                        condition.template takes_packs<N>() && a.template takes_packs<N>() &&
                        b.template takes_packs<N>();
    using Body = Choose<W, std::remove_cvref_t<decltype(offsets)>>;
    return for_each<N>(stream_of(context), Body{condition, a, b, to, offsets}, count, packed);
  });
}

}  // namespace

Status where(const KernelContext& context) {
  return for_word(context.outputs[0].spec.dtype, [&]<class W>(W) { return choose<W>(context); });
}

}  // namespace ebb::cuda
