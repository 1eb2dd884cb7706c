#include "ebb/core/ops/attention.h"

#include <cmath>

#include "ebb/core/kernels/attention.h"
#include "ebb/core/kernels/in_float.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/elementary.h"
#include "ebb/core/ops/extremes.h"
#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/loss.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

using Gradient = const GradientContext&;

void require_operands(const Inference& inference, std::size_t mask) {
  detail::require_arithmetic(inference, 3);
  const Shape &q = inference.inputs[0].shape, &k = inference.inputs[1].shape,
              &v = inference.inputs[2].shape;
  inference.require(q.rank() >= 2 && k.rank() == q.rank() && v.rank() == q.rank(),
                    "takes q [..., length, depth], k [..., keys, depth], v [..., keys, width]");
  for (int axis = 0; axis + 2 < q.rank(); ++axis)
    inference.require(detail::may_equal(q.dim(axis), k.dim(axis)) &&
                          detail::may_equal(q.dim(axis), v.dim(axis)) &&
                          detail::may_equal(k.dim(axis), v.dim(axis)),
                      "q, k and v must have equal leading axes");
  inference.require(detail::may_equal(q.dim(-1), k.dim(-1)), "q and k must have one depth");
  inference.require(detail::may_equal(k.dim(-2), v.dim(-2)), "k and v must have as many keys");
  if (inference.attribute<AttentionAttributes>().mask == 0) return;
  const Spec& of = inference.inputs[mask];
  inference.require(of.dtype == DType::boolean || of.dtype == inference.inputs[0].dtype,
                    "the mask must be bool, or of the dtype of q");
  Shape scores = q;
  scores.set(-1, k.dim(-2));
  inference.require(detail::broadcasts_to(of.shape, scores),
                    "the mask must broadcast to [..., length, keys]");
}

void infer_attention(Inference& inference) {
  require_operands(inference, 3);
  const Spec &q = inference.inputs[0], &k = inference.inputs[1], &v = inference.inputs[2];
  Shape y = q.shape;
  for (int axis = 0; axis + 2 < y.rank(); ++axis)
    for (const Spec* other : {&k, &v})
      if (y.dim(axis) == kOpen) y.set(axis, other->shape.dim(axis));
  y.set(-1, v.shape.dim(-1));
  inference.output(q.dtype, y);
  inference.output(q.dtype == DType::f64 ? DType::f64 : DType::f32, detail::without_last(y));
}

void infer_attention_backward(Inference& inference) {
  require_operands(inference, kAttentionMask);
  for (std::size_t i = 0; i < 3; ++i)
    inference.output(inference.inputs[i].dtype, inference.inputs[i].shape);
}

void infer_causal_bias(Inference& inference) {
  detail::require_arithmetic(inference);
  const Spec& scores = inference.inputs[0];
  inference.require(scores.shape.rank() >= 2, "takes scores [..., length, keys]");
  inference.output(scores.dtype, {scores.shape.dim(-2), scores.shape.dim(-1)});
}

// The lowest finite number of a dtype, or nearly.
double lowest(DType dtype) {
  return dtype == DType::f16 ? -65504 : dtype == DType::f64 ? -1e308 : -1e38;
}

// Probabilities and score gradients of the composed gradients, in memory for all the scores.
struct Composed {
  Tensor probabilities, d_scores;  // of the scores before they are scaled: times scale

  Composed(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& dy, const Tensor& mask,
           const AttentionAttributes& attributes) {
    Tensor scores = matmul(q, k, {.transpose_b = true}) * attributes.scale;
    Tensor bias;  // 0 where a key counts, else minus infinity
    if (mask.defined() && !is_floating(mask.dtype())) bias = log(cast(mask, q.dtype()));
    if (mask.defined() && is_floating(mask.dtype())) scores = scores + mask;
    if (attributes.causal != 0) {
      const Tensor causal = apply_one(causal_bias_op, {scores}, {}, CallSite());
      bias = bias.defined() ? bias + causal : causal;
    }
    if (bias.defined()) {
      // Kept finite, so that a query for which no key counts has probabilities, which exp(bias)
      // makes 0.
      probabilities = softmax(maximum(scores + bias, lowest(q.dtype()))) * exp(bias);
    } else {
      probabilities = softmax(scores);
    }
    const Tensor d = matmul(dy, v, {.transpose_b = true});
    d_scores = probabilities * (d - sum(d * probabilities, {.axis = -1, .keep = true}));
  }
};

Tensors attention_gradient(Gradient g) {
  const auto& attributes = g.attribute<AttentionAttributes>();
  const bool has_mask = attributes.mask != 0;
  Tensor d_mask;
  if (has_mask && g.wants(3) && is_floating(g.x(3).dtype())) {
    const Tensor mask = g.x(3);
    d_mask = sum_like(Composed(g.x(0), g.x(1), g.x(2), g.dy(), mask, attributes).d_scores, mask);
  }
  Tensors all(static_cast<std::size_t>(g.inputs()));
  if (g.wants(0) || g.wants(1) || g.wants(2)) {
    InlineVector<Tensor, 7> values{g.x(0), g.x(1), g.x(2), g.y(0), g.y(1), g.dy()};
    if (has_mask) values.push_back(g.x(3));
    const InlineVector<Input, 7> inputs(values.begin(), values.end());
    all = detail::apply_gradient(attention_backward_op, 3, inputs, attributes, g);
  }
  if (has_mask) all[3] = d_mask;
  return all;
}

// attention_backward from differentiable operators, which compute y and its sums again.
Tensors compose_attention_backward(std::span<const Tensor> inputs, const Attributes& attributes,
                                   const IndexSet& unwanted) {
  const auto& of = attributes.get<AttentionAttributes>();
  const Tensor &q = inputs[kAttentionQ], &k = inputs[kAttentionK], &v = inputs[kAttentionV],
               &dy = inputs[kAttentionDy];
  const Composed composed(q, k, v, dy, of.mask != 0 ? inputs[kAttentionMask] : Tensor(), of);
  Tensors outputs(3);
  if (!unwanted.has(0)) outputs[0] = matmul(composed.d_scores, k) * of.scale;
  if (!unwanted.has(1)) outputs[1] = matmul(composed.d_scores, q, {.transpose_a = true}) * of.scale;
  if (!unwanted.has(2)) outputs[2] = matmul(composed.probabilities, dy, {.transpose_a = true});
  return outputs;
}

// Products of q and k, and of the probabilities and v.
std::int64_t products(const MemoryQuery& query) {
  const Shape &q = query.inputs[kAttentionQ].shape, &k = query.inputs[kAttentionK].shape,
              &v = query.inputs[kAttentionV].shape;
  return q.dim(-1) == 0 ? 0 : q.elements() / q.dim(-1) * k.dim(-2) * (q.dim(-1) + v.dim(-1));
}

}  // namespace

Tensor scaled_dot_product_attention(const Operand& q, const Operand& k, const Operand& v,
                                    const AttentionOptions& options) {
  detail::Operands operands{q, k, v};
  AttentionAttributes attributes{.causal = options.causal, .mask = options.mask.defined()};
  if (options.mask.defined()) operands.emplace_back(options.mask);
  const Shape& shape = detail::tensor_of(attention_op, q).shape();
  const std::int64_t depth = shape.rank() == 0 ? 1 : shape.dim(-1);
  if (depth == kOpen && !options.scale)
    detail::fail(attention_op, "takes a scale where the depth is open", q);
  attributes.scale =
      options.scale.value_or(depth > 0 ? 1 / std::sqrt(static_cast<double>(depth)) : 1);
  return detail::apply_to(attention_op, operands, attributes);
}

constinit const OpDef attention_op{.name = "scaled_dot_product_attention",
                                   .infer = infer_attention,
                                   .gradient = attention_gradient,
                                   .keeps = {kAll, bit(0) | bit(1)},
                                   .gradient_outputs = bit(1),
                                   .products = products,
                                   .cpu = cpu::in_float<cpu::attention, cpu::attention_memory>,
                                   .cuda = {.run = cuda::attention,
                                            .memory = cuda::attention_memory,
                                            .prepare = cuda::attention_prepare}};

constinit const OpDef attention_backward_op{
    .name = "attention_backward",
    .infer = infer_attention_backward,
    .compose = compose_attention_backward,
    .optional_outputs = kAll,
    // The forward products again, and one for each of dq, dk and dv beside dy v^T.
    .products = [](const MemoryQuery& query) { return products(query) * 5 / 2; },
    .cpu = cpu::in_float<cpu::attention_backward, cpu::attention_backward_memory>,
    .cuda = {.run = cuda::attention_backward, .memory = cuda::attention_backward_memory}};

constinit const OpDef causal_bias_op{.name = "causal_bias",
                                     .infer = infer_causal_bias,
                                     .shape_only = bit(0),
                                     .stops_gradient = bit(0),
                                     .cpu = {cpu::causal_bias},
                                     .cuda = {cuda::causal_bias}};

}  // namespace ebb
