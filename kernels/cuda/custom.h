// The kernel of a user's functor, for any number of inputs that broadcast. Files outside the
// library have their own copy of CUDA's runtime. It shares context and streams with the CUDA part's
// copy, so the kernel can be launched into the device's stream.
#pragma once
#include <cstddef>
#include <utility>

#include "ebb/kernels/cuda/broadcast.h"

namespace ebb::cuda {

// out[i] = f(in[0][..], in[1][..], ..), with the offsets of the walk.
template <class F, class T, class Offsets, int kInputs>
struct Pointwise {
  Operand<T> in[kInputs];
  T* out;
  Offsets walk;
  F f;

  template <int N>
  __device__ void at(std::int64_t i) const {
    std::int64_t from[kInputs];
    walk.offsets(i, from);
    Pack<Accumulate<T>, N> x[kInputs];
    for (int k = 0; k < kInputs; ++k) x[k] = in[k].template at<N>(from[k]);
    Pack<T, N> result;
    for (int j = 0; j < N; ++j) result[j] = value(x, j, std::make_integer_sequence<int, kInputs>());
    store(out + i, result);
  }

 private:
  template <class P, int... K>
  __device__ T value(const P (&x)[kInputs], int j, std::integer_sequence<int, K...>) const {
    return static_cast<T>(static_cast<Accumulate<T>>(f(x[K][j]...)));
  }
};

// Applies f to inputs of one floating dtype that broadcast to the output by NumPy's rules, or
// (without kBroadcasts) all have its shape. The output may be an input of its own shape.
template <bool kBroadcasts, class F, int... K>
Status pointwise(const KernelContext& context, const F& f,
                 std::integer_sequence<int, K...>) noexcept {
  constexpr int kInputs = sizeof...(K);
  const Buffer& out = context.outputs[0];
  const std::int64_t count = out.elements();
  if (count == 0) return {};
  const BroadcastWalk walk(out.spec.shape,
                           context.inputs[static_cast<std::size_t>(K)].spec.shape...);
  return for_floating(out.spec.dtype, [&](auto type) {
    using T = decltype(type);
    constexpr int N = kPack<T>;
    const Operand<T> in[] = {
        {context.inputs[static_cast<std::size_t>(K)].template as<const T>(), {}, walk.one(K)}...};
    T* const to = out.as<T>();
    const auto each = [&](const auto& offsets, bool rows_take_packs) {
      const bool packed =
          rows_take_packs && takes_packs<N>(to) && (in[K].template takes_packs<N>() && ...);
      using Body = Pointwise<F, T, std::remove_cvref_t<decltype(offsets)>, kInputs>;
      return for_each<N>(stream_of(context), Body{{in[K]...}, to, offsets, f}, count, packed);
    };
    if constexpr (kBroadcasts)
      return with_offsets<N>(walk, count, each);
    else
      return each(FlatWalk<kInputs>{}, true);
  });
}

}  // namespace ebb::cuda
