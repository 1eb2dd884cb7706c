// The kernel of a user's functor, for any number of inputs that broadcast. Files outside the
// library have their own copy of CUDA's runtime. It shares context and streams with the CUDA part's
// copy, so the kernel can be launched into the device's stream.
#pragma once
#include <cstddef>
#include <utility>

#include "ebb/kernels/cuda/broadcast.h"

namespace ebb::cuda {

// Applies f to inputs of one floating dtype that broadcast to the output by NumPy's rules, or
// (without kBroadcasts) all have its shape. The output may be an input of its own shape.
template <bool kBroadcasts, class F, int... K>
Status pointwise(const KernelContext& context, const F& f,
                 std::integer_sequence<int, K...>) noexcept {
  const Buffer& out = context.outputs[0];
  const std::int64_t count = out.elements();
  if (count == 0) return {};
  const BroadcastWalk walk(out.spec.shape,
                           context.inputs[static_cast<std::size_t>(K)].spec.shape...);
  return for_floating(out.spec.dtype, [&](auto type) {
    using T = decltype(type);
    const Operand<T> in[] = {
        {context.inputs[static_cast<std::size_t>(K)].template as<const T>(), {}, walk.one(K)}...};
    if constexpr (kBroadcasts)
      return broadcast(f, stream_of(context), in, out.as<T>(), walk, count);
    else
      return compute_each(f, stream_of(context), in, out.as<T>(), count, FlatWalk<sizeof...(K)>{},
                          true);
  });
}

}  // namespace ebb::cuda
