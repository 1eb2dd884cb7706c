#pragma once
#include <concepts>

#include "ebb/core/ops/attention.h"
#include "ebb/core/parameters/declaring.h"
#include "ebb/models/dense.h"

namespace ebb::models {

struct MultiHeadAttentionOptions {
  std::int64_t heads = 1;  // each of features / heads columns
};

// Attention of several heads side by side (Vaswani et al. 2017): Dense layers "query", "key" and
// "value" [features, features], scaled_dot_product_attention for each head, and a Dense layer
// "output" of the heads' results.
class MultiHeadAttention {
 public:
  // Throws Error for a size below 1, features that the heads do not divide, or names that
  // `parameters` has already.
  MultiHeadAttention(const Parameters& parameters, std::int64_t features,
                     const MultiHeadAttentionOptions& options = {},
                     CallSite site = CallSite::here());
  MultiHeadAttention(const Parameters& parameters, std::int64_t features, std::integral auto heads,
                     CallSite site = CallSite::here())
      : MultiHeadAttention(parameters, features,
                           MultiHeadAttentionOptions{.heads = static_cast<std::int64_t>(heads)},
                           site) {}

  // Attention of x [batch, length, features] to itself. Returns [batch, length, features], of the
  // parameters' dtype. The mask broadcasts to [batch, heads, length, keys]. Throws ShapeError.
  Tensor operator()(const Tensor& x, const AttentionOptions& options = {},
                    CallSite site = CallSite::here()) const;
  // Attention of x to a memory [batch, keys, features], which gives keys and values.
  Tensor operator()(const Tensor& x, const Tensor& memory, const AttentionOptions& options = {},
                    CallSite site = CallSite::here()) const;

 private:
  MultiHeadAttention(const ebb::detail::Declaring&, const Parameters& parameters,
                     std::int64_t features, std::int64_t heads);

  unsigned layer_;
  std::int64_t heads_;
  Dense query_, key_, value_, output_;
};

}  // namespace ebb::models
