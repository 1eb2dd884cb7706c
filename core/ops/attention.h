#pragma once
#include <concepts>
#include <optional>

#include "ebb/core/ops/arguments.h"

namespace ebb {

struct AttentionOptions {
  // Broadcasts to the scores [..., length, keys]: bool, true where a key counts, or of q's dtype
  // and added. Holds nothing: no mask.
  Tensor mask = {};
  bool causal = false;  // query i counts keys 0 to i alone
  // The factor of the scores; 1 / sqrt(depth) unless given.
  std::optional<double> scale = {};
};

// softmax(scale q k^T + mask) v over the keys (Vaswani et al. 2017). q [..., length, depth], k
// [..., keys, depth] and v [..., keys, width] have equal leading axes, usually [batch, heads].
// Gives [..., length, width], of their floating dtype. A query for which no key counts gives zeros.
//
// The scores are made tile by tile and never kept. Beside its operands it takes memory for a number
// per query (Dao et al., "FlashAttention", NeurIPS 2022), forward and backward. The second
// derivative and the gradient of a mask are made of matmul and softmax, with all the scores. They
// are NaN where an added mask leaves a query no key. Throws ShapeError, also for a default scale of
// an open depth.
Tensor scaled_dot_product_attention(const Operand& q, const Operand& k, const Operand& v,
                                    const AttentionOptions& options = {});
Tensor scaled_dot_product_attention(const Operand& q, const Operand& k, const Operand& v,
                                    const std::same_as<Tensor> auto& mask) {
  return scaled_dot_product_attention(q, k, v, AttentionOptions{.mask = mask});
}

extern const OpDef attention_op, attention_backward_op, causal_bias_op;

}  // namespace ebb
