#include "ebb/core/kernels/where.h"

#include <type_traits>

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
  const Buffer &given = context.inputs[0], &first = context.inputs[1], &out = context.outputs[0];
  const auto& number = context.attribute<NumberOperand>();
  const std::int64_t count = out.elements();
  if (count == 0) return {};
  const std::uint64_t element = element_of(out.spec.dtype, number.value);
  Operand<Flag> condition{given.as<const Flag>()};
  Operand<W> a{first.as<const W>()}, b = a, value;
  std::memcpy(&value.number, &element, sizeof(W));
  const Shape one;
  const Shape *shape_a = &first.spec.shape, *shape_b = shape_a;
  if (number.position == NumberOperand::left) {
    a = value;
    shape_a = &one;
  } else if (number.position == NumberOperand::right) {
    b = value;
    shape_b = &one;
  } else {
    b.data = context.inputs[2].as<const W>();
    shape_b = &context.inputs[2].spec.shape;
  }
  const BroadcastWalk walk(out.spec.shape, given.spec.shape, *shape_a, *shape_b);
  condition.one = walk.one(0);
  a.one = walk.one(1);
  b.one = walk.one(2);
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
