#pragma once
#include <concepts>
#include <vector>

#include "ebb/core/ops/attention.h"
#include "ebb/core/parameters/declaring.h"
#include "ebb/models/dense.h"

namespace ebb::models {

struct MultiHeadAttentionOptions {
  std::int64_t heads = 1;  // each of features / heads columns
  // One product for queries, keys and values: a Dense layer "qkv" [features, 3 features] in place
  // of the three. Such a layer attends to its own x only. For a moment the product and its parts
  // are both there: 6 numbers for each feature and position at the forward peak, in place of 4.
  bool fused_qkv = false;
};

// Keys and values of a sequence's steps, [batch, heads, length, features / heads] both. Zeros, or
// anything finite, where there is no step yet.
struct AttentionCache {
  Tensor keys;
  Tensor values;
};

struct CachedAttention {
  Tensor output;  // [batch, steps, features]
  AttentionCache cache;
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
  // Attention of x to a memory [batch, keys, features], which gives keys and values. Throws Error
  // for a fused layer.
  Tensor operator()(const Tensor& x, const Tensor& memory, const AttentionOptions& options = {},
                    CallSite site = CallSite::here()) const;
  // Writing token by token: causal attention of a sequence's next steps x [batch, steps, features]
  // to themselves and to the steps before, whose keys and values `cache` has. The first of x stands
  // at `position` (i64[]). Writes x's keys and values into the cache, in place as assign_slice
  // does, and returns it in its new version. So in a graph or a compiled step the cache is state or
  // captured, not fed. A gradient through several steps needs a clone() of the cache for each. The
  // cache's length is the most that a sequence can have, and attention costs the same at each
  // position: one plan serves all of them. A step behind its end is an Error on the CPU and gives
  // NaN on a GPU. Throws ShapeError, also where steps or the cache's length are open.
  CachedAttention operator()(const Tensor& x, AttentionCache cache, const Tensor& position,
                             CallSite site = CallSite::here()) const;

 private:
  // [batch, heads, length, features / heads] each.
  struct Heads {
    Tensor query, key, value;
  };

  // Runs while the public constructor's Declaring lives.
  MultiHeadAttention(const ebb::detail::Declaring&, const Parameters& parameters,
                     std::int64_t features, const MultiHeadAttentionOptions& options);
  Heads heads_of(const Tensor& x, const Tensor& memory) const;
  Tensor attend(Heads of, const AttentionOptions& options) const;

  unsigned layer_;
  std::int64_t heads_;
  std::vector<Dense> inputs_;  // "qkv", or "query", "key" and "value"
  Dense output_;
};

}  // namespace ebb::models
