#include "ebb/models/attention.h"

#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/shape.h"
#include "ebb/models/detail/layers.h"

namespace ebb::models {
namespace {

std::int64_t checked_heads(std::int64_t features, std::int64_t heads) {
  require_size("multi_head_attention", "features", features);
  require_size("multi_head_attention", "heads", heads);
  if (features % heads != 0)
    ebb::detail::refuse("multi_head_attention", std::to_string(heads) + " heads do not divide " +
                                                    std::to_string(features) + " features");
  return heads;
}

// x [batch, length, features] as [batch, heads, length, features / heads].
Tensor split_heads(Tensor x, std::int64_t heads) {
  const std::int64_t batch = x.shape().dim(0), length = x.shape().dim(1),
                     features = x.shape().dim(2);
  // Two open sizes rule out a reshape, which can leave only one open.
  if (batch == kOpen && length == kOpen)
    return stack(chunk(std::move(x), static_cast<int>(heads), 2), 1);
  return permute(reshape(std::move(x), {batch, length, heads, features / heads}), {0, 2, 1, 3});
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(const Parameters& parameters, std::int64_t features,
                                       const MultiHeadAttentionOptions& options, CallSite site)
    : MultiHeadAttention(ebb::detail::Declaring(parameters, site), parameters, features,
                         options.heads) {}

MultiHeadAttention::MultiHeadAttention(const ebb::detail::Declaring&, const Parameters& parameters,
                                       std::int64_t features, std::int64_t heads)
    : layer_(parameters.layer()),
      heads_(checked_heads(features, heads)),
      query_(parameters.scope("query"), features, features),
      key_(parameters.scope("key"), features, features),
      value_(parameters.scope("value"), features, features),
      output_(parameters.scope("output"), features, features) {}

Tensor MultiHeadAttention::operator()(const Tensor& x, const AttentionOptions& options,
                                      CallSite site) const {
  return (*this)(x, x, options, site);
}

Tensor MultiHeadAttention::operator()(const Tensor& x, const Tensor& memory,
                                      const AttentionOptions& options, CallSite site) const {
  const ebb::detail::CallScope at(site.in(layer_));
  for (const Tensor* given : {&x, &memory})
    if (given->rank() != 3)
      ebb::detail::refuse<ShapeError>("multi_head_attention",
                                      "takes x [batch, length, features]; the input is " +
                                          Spec{given->dtype(), given->shape()}.to_string());
  Tensor heads = scaled_dot_product_attention(split_heads(query_(x), heads_),
                                              split_heads(key_(memory), heads_),
                                              split_heads(value_(memory), heads_), options);
  // [batch, heads, length, ..] as [batch, length, features]
  return output_(ebb::detail::merge_axes(permute(std::move(heads), {0, 2, 1, 3}), 2));
}

}  // namespace ebb::models
