#include "ebb/core/kernels/cross_entropy.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/cross_entropy.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/index.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

using Options = CrossEntropyAttributes;

// What may be asked for beside scores and labels. Weights and their total are constants, since no
// gradient flows there.
struct How {
  const char* name;
  Shape rows = {kOpen};
  Values labels = Values::labels;  // any: probabilities
  bool weights = false;
  double smoothing = 0;
  std::optional<std::int64_t> ignored = {};
  LossReduction reduction = LossReduction::mean;

  Shape scores() const {
    Shape shape = rows;
    shape.push_back(5);
    return shape;
  }
  bool has_labels() const { return labels != Values::any; }
  std::vector<SampleInput> inputs() const {
    return {{scores()}, {has_labels() ? rows : scores(), labels}};
  }
  // Those of a mean by weights as well.
  Options attributes(bool has_total) const {
    return {.smoothing = smoothing,
            .ignored = ignored.value_or(0),
            .reduction = static_cast<Options::Reduction>(reduction),
            .has_ignored = ignored.has_value(),
            .has_weights = weights,
            .has_total = has_total};
  }
  bool has_total() const {
    return has_labels() && reduction == LossReduction::mean && (weights || ignored);
  }
};

// Wherever the scores are, and whatever they are.
Tensor weights_of(const Tensor& scores) {
  const auto at = [any = sum(scores), dtype = scores.dtype()](int label) {
    return one_hot(cast(fill_like(any, label), DType::i32), 5, dtype);
  };
  return at(0) * 1.25 + at(2) * -0.5 + at(4) * 0.25 + 0.75;
}

// Those of the tests, and what the attributes say.
Tensors apply_to(const OpDef& op, const Tensors& in, const How& how, bool has_total) {
  Tensors inputs = in;
  const DType dtype = in[0].dtype();
  if (how.weights) inputs.push_back(weights_of(in[0]));
  if (has_total)
    inputs.push_back(fill_like(cast(sum(in[0]), dtype == DType::f64 ? dtype : DType::f32), 1.25));
  const InlineVector<Input, 5> all(inputs.begin(), inputs.end());
  return apply(op, {all.data(), all.size()}, how.attributes(has_total), {});
}

Sample forward(const How& how) {
  return {.op = &softmax_cross_entropy_op,
          .name = std::string("softmax_cross_entropy") + how.name,
          .inputs = how.inputs(),
          .call = [how](const Tensors& in) -> Tensors {
            return {softmax_cross_entropy(in[0], in[1],
                                          {.weights = how.weights ? weights_of(in[0]) : Tensor(),
                                           .label_smoothing = how.smoothing,
                                           .ignored_label = how.ignored,
                                           .reduction = how.reduction})};
          }};
}

Sample backward(const How& how) {
  Sample sample{.op = &softmax_cross_entropy_backward_op,
                .name = std::string("softmax_cross_entropy_backward") + how.name,
                .inputs = how.inputs(),
                .call = [how](const Tensors& in) {
                  return apply_to(softmax_cross_entropy_backward_op, in, how, how.has_total());
                }};
  sample.inputs.push_back({how.reduction == LossReduction::none ? how.rows : Shape{}});
  return sample;
}

Sample of_labels(const How& how) {
  return {.op = &label_weights_op,
          .name = std::string("label_weights") + how.name,
          .inputs = how.inputs(),
          .call = [how](const Tensors& in) { return apply_to(label_weights_op, in, how, false); },
          .order = 0};
}

}  // namespace

void add_cross_entropy_samples(std::vector<Sample>& samples) {
  using enum Values;
  using enum LossReduction;
  const How all[] = {
      {""},
      {", i64 labels", {kOpen}, long_labels},
      {", the sum over sequences, smoothed", {2, kOpen}, labels, false, 0.1, {}, sum},
      {", each row, weights", {kOpen}, labels, true, 0, {}, none},
      {", weights, smoothed", {kOpen}, long_labels, true, 0.2},
      {", without a label", {kOpen}, labels, false, 0, 2},
      {", weights, without a label, each row, smoothed", {3, kOpen}, labels, true, 0.3, 1, none},
      {", weights, without a label, smoothed", {kOpen}, labels, true, 0.3, 4},
      {", probabilities", {kOpen}, any},
      {", probabilities of sequences, weights, smoothed", {kOpen, 2}, any, true, 0.1},
      {", probabilities, each row", {kOpen}, any, true, 0, {}, none},
  };
  for (const How& how : all) {
    samples.push_back(forward(how));
    samples.push_back(backward(how));
    if (how.has_total()) samples.push_back(of_labels(how));
  }
}

}  // namespace ebb::tests
