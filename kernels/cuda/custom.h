// The kernel of a functor, ebb's or a user's, for any number of inputs. Files outside the library
// have their own copy of CUDA's runtime. It shares context and streams with the CUDA part's
// copy, so the kernel can be launched into the device's stream.
#pragma once
#include <cstddef>
#include <span>
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
  return for_floating(out.spec.dtype, [&]<class T>(T) {
    const std::span<const Buffer> inputs = context.inputs;
    const Operand<T> in[] = {{inputs[static_cast<std::size_t>(K)].template as<const T>()}...};
    if constexpr (kBroadcasts) {
      const BroadcastWalk walk(out.spec.shape, inputs[static_cast<std::size_t>(K)].spec.shape...);
      return broadcast(f, stream_of(context), in, out.as<T>(), walk, count);
    } else {
      return compute_each(f, stream_of(context), in, out.as<T>(), count, FlatWalk<sizeof...(K)>{},
                          true);
    }
  });
}

}  // namespace ebb::cuda
