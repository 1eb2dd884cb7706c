#pragma once
#include <span>

#include "ebb/core/kernels/kernel.h"
#include "ebb/core/kernels/strided_walk.h"

namespace ebb {

// Axis i of the result is axis axes[i] of the input; none is negative.
struct PermuteAttributes {
  std::int32_t axes[kMaxRank] = {};
  std::int32_t rank = 0;
};

// The walk through the input of `permute` in the order of its result.
inline StridedWalk permuted(const Spec& in, const PermuteAttributes& attributes) noexcept {
  StridedWalk walk(size_of(in.dtype));
  for (int i = attributes.rank - 1; i >= 0; --i)
    walk.add(in.shape.dim(attributes.axes[i]), bytes_from(in, attributes.axes[i] + 1));
  return walk;
}

// The axis along which tensors are joined; not negative.
struct ConcatAttributes {
  std::int64_t axis = 0;
};

// Calls f(part, walk) for tensors joined in `whole`, without empty ones and ones without data. The
// walk goes through the part's elements in `whole`. Returns the first failure.
template <class F>
Status for_parts(const Spec& whole, const ConcatAttributes& attributes,
                 std::span<const Buffer> parts, const F& f) noexcept {
  const auto axis = static_cast<int>(attributes.axis);
  const std::int64_t rows = detail::product(whole.shape, 0, axis);
  std::int64_t at = 0;
  for (const Buffer& part : parts) {
    const std::int64_t bytes = bytes_from(part.spec, axis);
    StridedWalk walk(static_cast<std::size_t>(bytes), at);
    walk.add(rows, bytes_from(whole, axis));
    if (part.data != nullptr && rows * bytes > 0)
      if (const Status status = f(part, walk); !status.ok()) return status;
    at += bytes;
  }
  return {};
}

// The number of elements of `value` before and after each axis.
struct PadAttributes {
  std::uint32_t before[kMaxRank] = {}, after[kMaxRank] = {};
  std::uint64_t rank = 0;
  double value = 0;
};

// The walk through the input's elements in the padded result.
inline StridedWalk padded(const Spec& in, const Spec& out,
                          const PadAttributes& attributes) noexcept {
  std::int64_t offset = 0;
  for (int axis = 0; axis < out.shape.rank(); ++axis)
    offset += bytes_from(out, axis + 1) * attributes.before[axis];
  StridedWalk walk(size_of(out.dtype), offset);
  for (int axis = out.shape.rank() - 1; axis >= 0; --axis)
    walk.add(in.shape.dim(axis), bytes_from(out, axis + 1));
  return walk;
}

// The walk through an input of broadcasting, by NumPy's rules, in the order of its result.
inline StridedWalk expanded(const Spec& in, const Spec& out) noexcept {
  StridedWalk walk(size_of(in.dtype));
  auto step = static_cast<std::int64_t>(size_of(in.dtype));
  for (int back = 1; back <= out.shape.rank(); ++back) {
    const std::int64_t size = back <= in.shape.rank() ? in.shape.dim(-back) : 1;
    walk.add(out.shape.dim(-back), size == 1 ? 0 : step);
    step *= size;
  }
  return walk;
}

namespace cpu {
// out = in with its axes in the order of PermuteAttributes; any dtype.
Status permute(const KernelContext&);
// out = the inputs joined along ConcatAttributes::axis; any dtype.
Status concat(const KernelContext&);
// The gradient of concat: out[i] = the part of input 0 where input 1 + i (no data) lay, except
// unwanted ones; any dtype.
Status concat_backward(const KernelContext&);
// out = in with the paddings of PadAttributes around it; any dtype.
Status pad(const KernelContext&);
// out = in broadcast to out's shape by NumPy's rules; any dtype. Input 1, if there is one, has the
// shape of out and no data.
Status broadcast(const KernelContext&);
}  // namespace cpu
}  // namespace ebb
