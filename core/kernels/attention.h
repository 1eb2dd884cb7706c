#pragma once
#include "ebb/core/kernels/broadcast_walk.h"
#include "ebb/core/kernels/kernel.h"

namespace ebb {

struct AttentionAttributes {
  double scale = 1;
  std::int32_t causal = 0;
  std::int32_t mask = 0;  // whether there is one, the last input
};

// Offsets into the mask, which broadcasts to the scores [batch, length, keys].
struct MaskLayout {
  std::int64_t row = 0, column = 0;  // steps, 0 where it broadcasts
  std::int64_t size[kMaxRank] = {}, step[kMaxRank] = {};
  int axes = 0;

  MaskLayout() = default;
  MaskLayout(const Shape& mask, const Shape& batch) noexcept {
    const int rank = mask.rank();
    const std::int64_t rows = rank < 2 ? 1 : mask.dim(-2), columns = rank < 1 ? 1 : mask.dim(-1);
    row = rows == 1 ? 0 : columns;
    column = columns == 1 ? 0 : 1;
    const BroadcastWalk walk(batch, batch_axes(mask));
    for (; axes < walk.axes(); ++axes) {
      size[axes] = walk.size(axes);
      step[axes] = walk.steps(axes)[0] * rows * columns;
    }
  }
  std::int64_t offset(std::int64_t batch) const {
    std::int64_t at = 0;
    for (int axis = 0; axis < axes; ++axis) {
      at += batch % size[axis] * step[axis];
      batch /= size[axis];
    }
    return at;
  }
};

// q [batch, length, depth], k [batch, keys, depth], v [batch, keys, width], y [batch, length,
// width].
struct AttentionLayout {
  std::int64_t batch = 1, length, keys, depth, width;

  AttentionLayout(const Shape& q, const Shape& v) noexcept
      : length(q.dim(-2)), keys(v.dim(-2)), depth(q.dim(-1)), width(v.dim(-1)) {
    for (int axis = 0; axis + 2 < q.rank(); ++axis) batch *= q.dim(axis);
  }
};

// Inputs of attention_backward; then the mask.
enum AttentionBackwardInput {
  kAttentionQ,
  kAttentionK,
  kAttentionV,
  kAttentionY,
  kAttentionLse,
  kAttentionDy,
  kAttentionMask
};

// Both go through the scores tile by tile. Memory beside the operands is linear in the length at
// most. Floating; the mask is of q's dtype, or bool.
namespace cpu {
// Inputs q, k, v, mask (optional). Outputs y = softmax(scale q k^T + mask) v, and of each row
// log(sum(exp(scores))), f64 for f64, else f32. Where no key counts this is infinite and y is 0.
Status attention(const KernelContext&);
// Outputs dq, dk, dv, except unwanted ones.
Status attention_backward(const KernelContext&);
// out [length, keys] = 0 for keys up to the query's place, else minus infinity. Of the scores
// (input 0) only the shape counts.
Status causal_bias(const KernelContext&);
MemoryFunction attention_memory, attention_backward_memory;
}  // namespace cpu
}  // namespace ebb
