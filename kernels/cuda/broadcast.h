#pragma once
#include "ebb/core/kernels/broadcast_walk.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/for_each.h"
#include "ebb/kernels/cuda/pack.h"
#include "ebb/kernels/cuda/walk.h"

namespace ebb::cuda {

// An input of a functor: an array or a number, in the type that is computed in.
template <class T>
struct Operand {
  using A = Accumulate<T>;

  const T* data = nullptr;  // null: `number` is used
  A number = {};
  bool one = false;  // one element serves a whole row of the output

  static Operand of(double number) noexcept { return {nullptr, static_cast<A>(number), true}; }

  template <int N>
  bool takes_packs() const noexcept {
    return one || cuda::takes_packs<N>(data);
  }
  template <int N>
  __device__ Pack<A, N> at(std::int64_t i) const {
    if (data == nullptr) return splat<N>(number);
    if (one) return splat<N>(static_cast<A>(data[i]));
    return as_pack<A>(load<N>(data + i));
  }
};

// Offsets in a single row.
template <int kInputs>
struct FlatWalk {
  bool one[kInputs];

  __device__ void offsets(std::int64_t i, std::int64_t (&at)[kInputs]) const {
    for (int k = 0; k < kInputs; ++k) at[k] = one[k] ? 0 : i;
  }
};

// out[i] = f(a[..], b[..]), with the offsets of the walk.
template <class F, class T, class Offsets>
struct Zip {
  Operand<T> a, b;
  T* out;
  Offsets walk;
  F f;

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
  const bool packed = rows_take_packs && takes_packs<N>(out) && a.template takes_packs<N>() &&
                      b.template takes_packs<N>();
  return for_each<N>(stream, Zip<F, T, Offsets>{a, b, out, walk, f}, count, packed);
}

// out[i] = f(a[i], b[i]) for count elements; a or b may be a single element for all.
template <class F, class T>
Status zip_flat(F f, cudaStream_t stream, const Operand<T>& a, const Operand<T>& b, T* out,
                std::int64_t count) noexcept {
  return zip_each(f, stream, a, b, out, count, FlatWalk<2>{{a.one, b.one}}, true);
}

// Calls f(offsets, rows_take_packs) with a FlatWalk for a single row, else a Walk. Rows take packs
// if their length is a multiple of N.
template <int N, int kInputs, class F>
Status with_offsets(const BroadcastWalk<kInputs>& walk, std::int64_t count, const F& f) noexcept {
  if (walk.rows() == 1) {
    FlatWalk<kInputs> flat;
    for (int k = 0; k < kInputs; ++k) flat.one[k] = walk.one(k);
    return f(flat, true);
  }
  const auto with = [&](auto offsets) {
    for (int axis = 0; axis < walk.axes(); ++axis) offsets.add(walk.size(axis), walk.steps(axis));
    return f(offsets, walk.row_elements() % N == 0);
  };
  return is_short(count) ? with(Walk<std::uint32_t, kMaxRank, kInputs>())
                         : with(Walk<std::uint64_t, kMaxRank, kInputs>());
}

// out = f(a, b) with NumPy's broadcasting; out may be an input of out's own shape.
template <class F, class T>
Status broadcast(F f, cudaStream_t stream, Operand<T> a, const Shape& shape_a, Operand<T> b,
                 const Shape& shape_b, T* out, const Shape& shape, std::int64_t count) noexcept {
  if (count == 0) return {};
  const BroadcastWalk walk(shape, shape_a, shape_b);
  a.one = walk.one(0);
  b.one = walk.one(1);
  return with_offsets<kPack<T>>(walk, count, [&](const auto& offsets, bool rows_take_packs) {
    return zip_each(f, stream, a, b, out, count, offsets, rows_take_packs);
  });
}

}  // namespace ebb::cuda
