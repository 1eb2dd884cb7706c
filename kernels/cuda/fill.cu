#include "ebb/kernels/cuda/fill.h"
#include "ebb/kernels/cuda/stream_memory.h"

#include <type_traits>

#include "ebb/core/kernels/convert.h"
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/core/kernels/pointwise.h"

namespace ebb::cuda {
namespace {

template <class To, class From>
struct Cast {
  const From* in;
  To* out;

  template <int N>
  __device__ void at(std::int64_t i) const {
    const Pack<From, N> from = load<N>(in + i);
    Pack<To, N> to;
    for (int j = 0; j < N; ++j) to[j] = convert<To>(from[j]);
    store(out + i, to);
  }
};

}  // namespace

Status fill(const KernelContext& context) {
  const Buffer& out = context.outputs[0];
  const double value = context.attribute<FillAttributes>().value;
  return for_number(out.spec.dtype, [&]<class T>(T) {
    return fill_with(stream_of(context), out.as<T>(), convert<T>(value), out.elements());
  });
}

Status copy(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  return copy(stream_of(context), out.data, in.data, out.spec.bytes());
}

Status cast(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  if (in.spec.dtype == out.spec.dtype) return copy(context);
  return for_number(in.spec.dtype, [&]<class From>(From) {
    return for_number(out.spec.dtype, [&]<class To>(To) -> Status {
      if constexpr (std::is_same_v<From, To>) {
        return {};  // copied above
      } else {
        constexpr int N = sizeof(From) > sizeof(To) ? kPack<From> : kPack<To>;
        const Cast<To, From> body{in.as<const From>(), out.as<To>()};
        const bool packed = takes_packs<N>(body.in) && takes_packs<N>(body.out);
        return for_each<N>(stream_of(context), body, out.elements(), packed);
      }
    });
  });
}

}  // namespace ebb::cuda
