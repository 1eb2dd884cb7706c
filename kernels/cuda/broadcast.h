#pragma once
#include <type_traits>
#include <utility>

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

// out[i] = f(in[0][..], in[1][..], ..), with the offsets of the walk.
template <class F, class T, class Out, class Offsets, int kInputs>
struct Pointwise {
  using Result = std::conditional_t<std::is_same_v<Out, T>, Accumulate<T>, Out>;

  Operand<T> in[kInputs];
  Out* out;
  Offsets walk;
  F f;

  template <int N>
  __device__ void at(std::int64_t i) const {
    std::int64_t from[kInputs];
    walk.offsets(i, from);
    Pack<Accumulate<T>, N> x[kInputs];
    for (int k = 0; k < kInputs; ++k) x[k] = in[k].template at<N>(from[k]);
    Pack<Out, N> result;
    for (int j = 0; j < N; ++j) result[j] = value(x, j, std::make_integer_sequence<int, kInputs>());
    store(out + i, result);
  }

 private:
  template <class P, int... K>
  __device__ Out value(const P (&x)[kInputs], int j, std::integer_sequence<int, K...>) const {
    return static_cast<Out>(static_cast<Result>(f(x[K][j]...)));
  }
};

// Computes `count` elements, in packs where rows and all arrays take them.
template <class F, class T, class Out, class Offsets, int kInputs>
Status compute_each(const F& f, cudaStream_t stream, const Operand<T> (&in)[kInputs], Out* out,
                    std::int64_t count, const Offsets& walk, bool rows_take_packs) noexcept {
  constexpr int N = kPack<T>;
  Pointwise<F, T, Out, Offsets, kInputs> body{{}, out, walk, f};
  bool packed = rows_take_packs && takes_packs<N>(out);
  for (int k = 0; k < kInputs; ++k) {
    body.in[k] = in[k];
    packed = packed && in[k].template takes_packs<N>();
  }
  return for_each<N>(stream, body, count, packed);
}

// out[i] = f(a[i], b[i]) for count elements; a or b may be a single element for all.
template <class F, class T, class Out>
Status zip_flat(const F& f, cudaStream_t stream, const Operand<T>& a, const Operand<T>& b, Out* out,
                std::int64_t count) noexcept {
  return compute_each(f, stream, {a, b}, out, count, FlatWalk<2>{{a.one, b.one}}, true);
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
  return with_index(count, [&]<class Index>(Index) {
    Walk<Index, kMaxRank, kInputs> offsets;
    for (int axis = 0; axis < walk.axes(); ++axis) offsets.add(walk.size(axis), walk.steps(axis));
    return f(offsets, walk.row_elements() % N == 0);
  });
}

// out = f(in..) with NumPy's broadcasting; out may be an input of out's own shape.
template <class F, class T, class Out, int kInputs>
Status broadcast(const F& f, cudaStream_t stream, const Operand<T> (&in)[kInputs], Out* out,
                 const BroadcastWalk<kInputs>& walk, std::int64_t count) noexcept {
  if (count == 0) return {};
  Operand<T> of_row[kInputs];
  for (int k = 0; k < kInputs; ++k) of_row[k] = {in[k].data, in[k].number, walk.one(k)};
  return with_offsets<kPack<T>>(walk, count, [&](const auto& offsets, bool rows_take_packs) {
    return compute_each(f, stream, of_row, out, count, offsets, rows_take_packs);
  });
}

}  // namespace ebb::cuda
