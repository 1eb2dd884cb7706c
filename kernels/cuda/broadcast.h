#pragma once
#include "ebb/core/kernels/broadcast_walk.h"
#include "ebb/kernels/cuda/for_each.h"
#include "ebb/kernels/cuda/host/dispatch.h"
#include "ebb/kernels/cuda/pack.h"
#include "ebb/kernels/cuda/walk.h"

namespace ebb::cuda {

// What a functor is given: an array, or a number, in what it computes in.
template <class T>
struct Operand {
  using A = Accumulate<T>;

  const T* data = nullptr;  // null: the number
  A number = {};
  bool one = false;  // one element stands for a whole row of the output

  static Operand of(double number) noexcept { return {nullptr, static_cast<A>(number), true}; }

  template <int N>
  __device__ Pack<A, N> at(std::int64_t i) const {
    if (data == nullptr) return splat<N>(number);
    if (one) return splat<N>(static_cast<A>(data[i]));
    return as_pack<A>(load<N>(data + i));
  }
};

// A single row.
struct FlatWalk {
  bool one_a, one_b;

  __device__ void offsets(std::int64_t i, std::int64_t (&at)[2]) const {
    at[0] = one_a ? 0 : i;
    at[1] = one_b ? 0 : i;
  }
};

// out[i] = f(a[..], b[..]), where the walk says.
template <class F, class T, class Offsets>
struct Zip {
  Operand<T> a, b;
  T* out;
  Offsets walk;
  [[no_unique_address]] F f;

  template <int N>
  __device__ void at(std::int64_t i) const {
    std::int64_t from[2];
    walk.offsets(i, from);
    const auto x = a.template at<N>(from[0]), y = b.template at<N>(from[1]);
    Pack<T, N> result;
    for (int j = 0; j < N; ++j) result[j] = static_cast<T>(f(x[j], y[j]));
    store(out + i, result);
  }
};

template <class F, class T, class Offsets>
Status zip_each(F f, cudaStream_t stream, const Operand<T>& a, const Operand<T>& b, T* out,
                std::int64_t count, const Offsets& walk, bool rows_take_packs) noexcept {
  constexpr int N = kPack<T>;
  const bool packed = rows_take_packs && takes_packs<N>(out) && (a.one || takes_packs<N>(a.data)) &&
                      (b.one || takes_packs<N>(b.data));
  return for_each<N>(stream, Zip<F, T, Offsets>{a, b, out, walk, f}, count, packed);
}

// out[i] = f(a[i], b[i]) for count elements; a or b may be one that stands for all.
template <class F, class T>
Status zip_flat(F f, cudaStream_t stream, const Operand<T>& a, const Operand<T>& b, T* out,
                std::int64_t count) noexcept {
  return zip_each(f, stream, a, b, out, count, FlatWalk{a.one, b.one}, true);
}

template <class Index, class F, class T>
Status zip_walk(F f, cudaStream_t stream, const Operand<T>& a, const Operand<T>& b, T* out,
                std::int64_t count, const BroadcastWalk& walk) noexcept {
  Walk<Index, kMaxRank, 2> offsets;
  for (int axis = 0; axis < walk.axes(); ++axis)
    offsets.add(walk.size(axis), {walk.step_a(axis), walk.step_b(axis)});
  return zip_each(f, stream, a, b, out, count, offsets, walk.row_elements() % kPack<T> == 0);
}

// out = f(a, b) with NumPy's broadcasting; out may be an input of out's own shape.
template <class F, class T>
Status broadcast(F f, cudaStream_t stream, Operand<T> a, const Shape& shape_a, Operand<T> b,
                 const Shape& shape_b, T* out, const Shape& shape, std::int64_t count) noexcept {
  if (count == 0) return {};
  const BroadcastWalk walk(shape, shape_a, shape_b);
  a.one = walk.one_a();
  b.one = walk.one_b();
  if (walk.rows() == 1) return zip_flat(f, stream, a, b, out, count);
  return is_short(count) ? zip_walk<std::uint32_t>(f, stream, a, b, out, count, walk)
                         : zip_walk<std::uint64_t>(f, stream, a, b, out, count, walk);
}

}  // namespace ebb::cuda
