#pragma once
#include <type_traits>
#include <utility>

#include "ebb/core/kernels/broadcast_walk.h"
#include "ebb/core/kernels/pointwise.h"
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
// So that packs stay in registers, whatever the functor.
#pragma unroll
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

// out = f(a, b) with NumPy's broadcasting, for two inputs, or one input and a number on either
// side. Of one input without a number f gets the elements twice.
template <class T, class Out, class F>
Status broadcast_two(const F& f, const KernelContext& context, NumberOperand::Position number_at,
                     Accumulate<T> number) noexcept {
  const Buffer &a = context.inputs.front(), &b = context.inputs.back(), &out = context.outputs[0];
  const bool is_left = number_at == NumberOperand::left,
             is_right = number_at == NumberOperand::right;
  const Shape one;
  const Operand<T> in[] = {{is_left ? nullptr : a.as<const T>(), number},
                           {is_right ? nullptr : b.as<const T>(), number}};
  return broadcast(
      f, stream_of(context), in, out.as<Out>(),
      BroadcastWalk(out.spec.shape, is_left ? one : a.spec.shape, is_right ? one : b.spec.shape),
      out.elements());
}

}  // namespace ebb::cuda
