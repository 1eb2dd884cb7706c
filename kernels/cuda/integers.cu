#include "ebb/core/kernels/integers.h"

#include <type_traits>

#include "ebb/core/kernels/convert.h"
#include "ebb/kernels/cuda/broadcast.h"

namespace ebb::cuda {
namespace {

// out[i] = a[..] operation b[..], with the offsets of the walk.
template <class T, class Offsets>
struct OfTwo {
  Operand<T> a, b;
  T* out;
  Offsets walk;
  IntegerOperation operation;

  template <int N>
  __device__ void at(std::int64_t i) const {
    std::int64_t from[2];
    walk.offsets(i, from);
    const auto x = a.template at<N>(from[0]), y = b.template at<N>(from[1]);
    Pack<T, N> result;
    for (int j = 0; j < N; ++j) result[j] = computed(x[j], y[j]);
    store(out + i, result);
  }

 private:
  __device__ T computed(T x, T y) const {
    using enum IntegerOperation;
    switch (operation) {
      case add:
        return OnIntegers<T, add>()(x, y);
      case subtract:
        return OnIntegers<T, subtract>()(x, y);
      case multiply:
        return OnIntegers<T, multiply>()(x, y);
      case floor_divide:
        return OnIntegers<T, floor_divide>()(x, y);
      case remainder:
        return OnIntegers<T, remainder>()(x, y);
      case maximum:
        return OnIntegers<T, maximum>()(x, y);
      case minimum:
        return OnIntegers<T, minimum>()(x, y);
      case negate:
        return OnIntegers<T, negate>()(x, y);
      case abs:
        return OnIntegers<T, abs>()(x, y);
      default:
        return OnIntegers<T, sign>()(x, y);
    }
  }
};

template <class T>
Status run(const KernelContext& context) noexcept {
  constexpr int N = kPack<T>;
  const auto& told = context.attribute<NumberAndOperation>();
  const NumberOperand& number = told.number;
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  T* to = out.as<T>();
  const std::int64_t count = out.elements();
  if (count == 0) return {};
  Operand<T> a{in.as<const T>()}, b = a;
  const Operand<T> value{nullptr, convert<T>(number.value), true};
  const Shape one;
  const Shape *shape_a = &in.spec.shape, *shape_b = shape_a;
  if (context.inputs.size() == 2) {
    b.data = context.inputs[1].as<const T>();
    shape_b = &context.inputs[1].spec.shape;
  } else if (number.position == NumberOperand::left) {
    a = value;
    shape_a = &one;
  } else if (number.position == NumberOperand::right) {
    b = value;
    shape_b = &one;
  }
  const BroadcastWalk walk(out.spec.shape, *shape_a, *shape_b);
  a.one = walk.one(0);
  b.one = walk.one(1);
  const IntegerOperation operation{told.operation};
  return with_offsets<N>(walk, count, [&](const auto& offsets, bool rows_take_packs) {
    const bool packed = rows_take_packs && takes_packs<N>(to) && a.template takes_packs<N>() &&
                        b.template takes_packs<N>();
    using Body = OfTwo<T, std::remove_cvref_t<decltype(offsets)>>;
    return for_each<N>(stream_of(context), Body{a, b, to, offsets, operation}, count, packed);
  });
}

}  // namespace

Status integers(const KernelContext& context) {
  switch (context.outputs[0].spec.dtype) {
    case DType::i32:
      return run<std::int32_t>(context);
    case DType::i64:
      return run<std::int64_t>(context);
    case DType::u8:
      return run<std::uint8_t>(context);
    default:
      return kNoKernel;
  }
}

}  // namespace ebb::cuda
