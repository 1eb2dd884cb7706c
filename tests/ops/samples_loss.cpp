#include <cmath>
#include <utility>

#include "ebb/core/kernels/functors/losses.h"
#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/ops/loss.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

constexpr LossOptions kNone{LossReduction::none};

// Adds samples of f(a, b, delta) for tensors of one shape.
void add_pair(std::vector<Sample>& samples, const OpDef& op,
              std::function<Tensors(const Tensors&)> call, double (*f)(double, double, double)) {
  samples.push_back(of_any_shape(op, "", {{{kOpen, 3}}, {{kOpen, 3}}}, std::move(call)));
  samples.back().reference = [f](const Application& a) -> Arrays {
    Array out(a[0].shape);
    for (std::int64_t i = 0; i < out.elements(); ++i)
      out[i] = f(a[0][i], a[1][i], a.attribute<functors::Delta>().delta);
    return {out};
  };
}

}  // namespace

void loss_family(std::vector<Sample>& samples, References&, DType) {
  const struct {
    const OpDef& op;
    Tensor (*call)(const Operand&, int);
  } along[] = {{softmax_op, softmax}, {log_softmax_op, log_softmax}};
  for (const auto& kind : along) {
    const auto add = [&](const char* how, const Shape& shape, int axis) {
      samples.push_back(of_any_shape(
          kind.op, how, {{shape}},
          [f = kind.call, axis](const Tensors& in) -> Tensors { return {f(in[0], axis)}; }));
    };
    add("", {kOpen, 5}, -1);
    add("of sequences", {2, kOpen, 3}, -1);
    add("along the first axis", {kOpen, 4}, 0);
    add("along a middle axis", {2, 5, kOpen}, 1);
    add("along a middle axis of many columns", {kOpen, 3, 41}, -2);
  }
  samples.push_back(of_any_shape(difference_op, "", {{{kOpen, 3}}, {{kOpen, 3}}},
                                 applying(difference_op, NumberOperand{})));
  add_pair(samples, mae_op, EBB_CALL(mae(in[0], in[1], kNone)),
           [](double a, double b, double) { return std::abs(a - b); });
  const auto huber_of = [](double a, double b, double delta) {
    const double d = std::abs(a - b);
    return d <= delta ? d * d / 2 : delta * (d - delta / 2);
  };
  for (const OpDef* op : {&huber_op, &smooth_l1_op})
    add_pair(samples, *op, applying(*op, functors::Delta{0.7}), huber_of);
  add_pair(
      samples, binary_cross_entropy_with_logits_op,
      EBB_CALL(binary_cross_entropy_with_logits(in[0], in[1], {.reduction = LossReduction::none})),
      [](double x, double z, double) {
        return -z * std::log(1 / (1 + std::exp(-x))) - (1 - z) * std::log(1 / (1 + std::exp(x)));
      });
  add_pair(samples, kl_divergence_op, applying(kl_divergence_op, NumberOperand{}),
           [](double log_p, double log_q, double) { return std::exp(log_p) * (log_p - log_q); });
}

}  // namespace ebb::tests
