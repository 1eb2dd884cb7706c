#include "ebb/models/attention.h"

#include <limits>

#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/comparison.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/index.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/scan.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/update.h"
#include "ebb/core/ops/where.h"
#include "ebb/models/detail/layers.h"

namespace ebb::models {
namespace {

constexpr const char* kName = "multi_head_attention";

std::int64_t checked_heads(std::int64_t features, std::int64_t heads) {
  require_size(kName, "features", features);
  require_size(kName, "heads", heads);
  if (features % heads != 0)
    ebb::detail::refuse(kName, std::to_string(heads) + " heads do not divide " +
                                   std::to_string(features) + " features");
  return heads;
}

std::vector<Dense> input_layers(const Parameters& parameters, std::int64_t features, bool fused) {
  if (fused) return {Dense(parameters.scope("qkv"), features, 3 * features)};
  std::vector<Dense> layers;
  for (const char* each : {"query", "key", "value"})
    layers.emplace_back(parameters.scope(each), features, features);
  return layers;
}

void require_sequences(const Tensor& x) {
  if (x.rank() != 3)
    ebb::detail::refuse<ShapeError>(kName, "takes x [batch, length, features]; the input is " +
                                               Spec{x.dtype(), x.shape()}.to_string());
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(const Parameters& parameters, std::int64_t features,
                                       const MultiHeadAttentionOptions& options, CallSite site)
    : MultiHeadAttention(ebb::detail::Declaring(parameters, site), parameters, features, options) {}

MultiHeadAttention::MultiHeadAttention(const ebb::detail::Declaring&, const Parameters& parameters,
                                       std::int64_t features,
                                       const MultiHeadAttentionOptions& options)
    : layer_(parameters.layer()),
      heads_(checked_heads(features, options.heads)),
      inputs_(input_layers(parameters, features, options.fused_qkv)),
      output_(parameters.scope("output"), features, features) {}

MultiHeadAttention::Heads MultiHeadAttention::heads_of(const Tensor& x,
                                                       const Tensor& memory) const {
  require_sequences(x);
  if (inputs_.size() == 1) {
    // One copy brings the three apart; each is a view of it.
    const Tensor all = permute(unflatten(inputs_[0](x), 2, {3, heads_, -1}), {2, 0, 3, 1, 4});
    const auto part = [&](std::int64_t i) { return squeeze(slice(all, i, i + 1), 0); };
    return {part(0), part(1), part(2)};
  }
  require_sequences(memory);
  const auto heads = [&](const Dense& layer, const Tensor& of) {
    return permute(unflatten(layer(of), 2, {heads_, -1}), {0, 2, 1, 3});
  };
  return {heads(inputs_[0], x), heads(inputs_[1], memory), heads(inputs_[2], memory)};
}

Tensor MultiHeadAttention::attend(Heads of, const AttentionOptions& options) const {
  Tensor heads = scaled_dot_product_attention(of.query, of.key, of.value, options);
  of = {};
  // [batch, heads, length, ..] as [batch, length, features]
  return output_(ebb::detail::merge_axes(permute(std::move(heads), {0, 2, 1, 3}), 2));
}

Tensor MultiHeadAttention::operator()(const Tensor& x, const AttentionOptions& options,
                                      CallSite site) const {
  const ebb::detail::CallScope at(site.in(layer_));
  return attend(heads_of(x, x), options);
}

Tensor MultiHeadAttention::operator()(const Tensor& x, const Tensor& memory,
                                      const AttentionOptions& options, CallSite site) const {
  const ebb::detail::CallScope at(site.in(layer_));
  if (inputs_.size() == 1)
    ebb::detail::refuse(kName, "with fused_qkv attends to its own input, not to a memory");
  return attend(heads_of(x, memory), options);
}

CachedAttention MultiHeadAttention::operator()(const Tensor& x, AttentionCache cache,
                                               const Tensor& position, CallSite site) const {
  const ebb::detail::CallScope at(site.in(layer_));
  Heads of = heads_of(x, x);
  const std::int64_t steps = x.shape().dim(1);
  const bool has_keys = cache.keys.defined() && cache.keys.rank() == 4;
  const std::int64_t length = has_keys ? cache.keys.shape().dim(2) : kOpen;
  const auto fits = [&](const Tensor& kept) {
    return kept.defined() && kept.rank() == 4 && kept.shape().dim(1) == heads_ &&
           kept.shape().dim(2) == length && kept.shape().dim(3) == of.key.shape().dim(3);
  };
  if (steps == kOpen || length == kOpen || !fits(cache.keys) || !fits(cache.values) ||
      position.rank() != 0)
    ebb::detail::refuse<ShapeError>(kName,
                                    "takes a cache [batch, heads, length, features / heads] and a "
                                    "position [], no open length; x is " +
                                        x.to_string() + ", the keys are " + cache.keys.to_string() +
                                        ", the values are " + cache.values.to_string() +
                                        ", the position is " + position.to_string());
  const auto count_to = [&](std::int64_t end) {
    return cumsum(broadcast_to(fill_like(position, 1), {end}), 0, {.exclusive = true});
  };
  cache.keys = assign_slice(cache.keys, position, std::move(of.key), {.axis = 2});
  cache.values = assign_slice(cache.values, position, std::move(of.value), {.axis = 2});
  // Places of the cache, counted from x's first step. The steps are 0, 1 and so on. They are chosen
  // by their places, so that on a GPU one that has none gives NaN.
  const Tensor places = cast(count_to(length) - position, DType::f32);
  const Tensor step = unsqueeze(index_select(places, count_to(steps) + position), 1);
  const Tensor mask = where(places > step, -std::numeric_limits<double>::infinity(), step * 0);
  Tensor output = attend({std::move(of.query), cache.keys, cache.values},
                         {.mask = cast(mask, cache.keys.dtype())});
  return {std::move(output), std::move(cache)};
}

}  // namespace ebb::models
