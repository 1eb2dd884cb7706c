// Operators against their references (reference.h). Only values are compared here: derivatives.cpp
// compares gradients with differences.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "ebb/core/base/error.h"
#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/gru.h"
#include "ebb/core/ops/loss.h"
#include "ebb/core/ops/lstm.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/graph/graph_state.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/infinity.h"
#include "ebb/tests/ops/harness.h"
#include "ebb/tests/ops/reference.h"

namespace ebb::tests {
namespace {

Array array_of(const Tensor& tensor) {
  Array array(tensor.shape());
  array.values = tensor.to_vector<double>();
  return array;
}

Arrays arrays_of(const Tensors& tensors) {
  Arrays arrays;
  for (const Tensor& tensor : tensors) arrays.push_back(array_of(tensor));
  return arrays;
}

const Reference& reference_of(const OpDef& op) {
  static const std::vector<Reference> all = all_references();
  for (const Reference& reference : all)
    if (reference.op == &op) return reference;
  throw Error(std::string("there is no reference for ") + op.name +
              ": its sample or its family, tests/ops/samples_*.cpp, should have one");
}

// Error that arithmetic alone may cause. Results of 16 bits are computed in float and rounded once,
// so they add no more than one unit roundoff.
double arithmetic_error(DType dtype) {
  return dtype == DType::f64 ? 1e-13 : is_floating(dtype) ? 5e-6 : 0;
}
double unit_roundoff(DType dtype) {
  return dtype == DType::bf16 ? 0x1p-8 : dtype == DType::f16 ? 0x1p-11 : 0;
}

// Bound above which a number becomes infinite. For 16 bits it lies above the largest number, since
// values up to half a unit beyond still round to it.
double largest(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 65520 - 1e-9;
    case DType::bf16:
      return 0x1.FEFFFFp127;
    case DType::f32:
      return static_cast<double>(std::numeric_limits<float>::max());
    default:
      return std::numeric_limits<double>::max();
  }
}

// Whether `value` is `expected` within `allowed`: relative above 1, absolute below. Infinity is
// expected where the dtype is too small.
bool near(double value, double expected, double allowed, DType dtype) {
  if (std::isnan(expected)) return std::isnan(value);
  if (std::abs(expected) > largest(dtype)) return value == std::copysign(kInfinity64, expected);
  return std::abs(value - expected) <= allowed * std::max(1.0, std::abs(expected));
}

// Their references run the whole stack for each element of each gradient, so large batches take too
// long.
bool is_backward_of_stack(const Sample& sample) {
  return sample.op == &lstm_backward_op || sample.op == &gru_backward_op;
}

void check(const Sample& sample, DType dtype, std::int64_t batch, double slack) {
  INFO(sample.name << ", " << name(dtype) << ", batch of " << batch);
  const RecordedSample recorded(sample, dtype, false, batch);
  const Node& node = recorded.node();
  const Tensors inputs = recorded.node_values(make_inputs(sample, dtype, batch));
  CHECK(unlike_reference(*node.op, inputs, node.attributes, slack) == "");
}

// Values at which functions overflow, underflow, saturate or are undefined.
Tensor extremes(DType dtype) {
  std::vector<double> values = {
      0,           -0.0,         1e-20,
      -1e-20,      0.5,          -9,
      17,          -17,          40,
      -40,         88,           -88,
      104,         -104,         710,
      -710,        750,          -750,
      1e10,        -1e10,        1e20,
      -1e20,       3e38,         -3e38,
      kInfinity64, -kInfinity64, std::numeric_limits<double>::quiet_NaN()};
  const Shape shape{static_cast<std::int64_t>(values.size())};
  return cast(Tensor::from(values, shape), dtype);
}

}  // namespace

std::string unlike_reference(const OpDef& op, const Tensors& inputs, const Attributes& attributes,
                             double slack) {
  Tensors own;
  InlineVector<Input, 16> given;
  Specs specs, outputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    own.push_back(op.updates.has(i) ? inputs[i].clone() : inputs[i]);
    specs.push_back({inputs[i].dtype(), inputs[i].shape()});
  }
  for (const Tensor& tensor : own) given.push_back(tensor);
  Inference inference{op, {specs.data(), specs.size()}, attributes, {}, outputs};
  op.infer(inference);

  const Tensors applied = inputs.empty() ? apply_on(Device::cpu(), op, attributes, {})
                                         : apply(op, {given.data(), given.size()}, attributes, {});
  Tensors results;
  for (std::size_t i = 0; i < own.size(); ++i)
    if (op.updates.has(i)) results.push_back(own[i]);
  for (std::size_t i = op.updates.empty() ? 0 : 1; i < applied.size(); ++i)
    if (!op.gradient_outputs.has(i)) results.push_back(applied[i]);

  const Reference& reference = reference_of(op);
  const Arrays expected = reference.compute({.inputs = arrays_of(inputs),
                                             .attributes = attributes,
                                             .outputs = {outputs.data(), outputs.size()}});
  if (expected.size() != results.size())
    return std::to_string(results.size()) + " results, not " + std::to_string(expected.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string which = "result " + std::to_string(i);
    const Array got = array_of(results[i]);
    if (!(got.shape == expected[i].shape))
      return which + " is " + got.shape.to_string() + ", not " + expected[i].shape.to_string();
    const DType dtype = results[i].dtype();
    const double allowed = reference.error + slack * arithmetic_error(dtype) +
                           reference.roundings * unit_roundoff(dtype);
    for (std::int64_t k = 0; k < got.elements(); ++k)
      if (!near(got[k], expected[i][k], allowed, dtype))
        return which + ", element " + std::to_string(k) + " is " + std::to_string(got[k]) +
               ", not " + std::to_string(expected[i][k]);
  }
  return "";
}

std::string unlike_references(const std::vector<SampleInput>& inputs, DType dtype,
                              const std::function<Tensors(const Tensors&)>& call, double slack) {
  std::string text = name(dtype);
  for (const SampleInput& input : inputs) text += " " + input.shape.to_string();
  const Sample sample{.op = &copy_op, .name = text, .inputs = inputs, .call = call};
  const RecordedSample recorded(sample, dtype, false);
  std::vector<const Node*> nodes;
  Tensors fetches;
  for (const auto& node : recorded.graph().state().nodes()) {
    if (!node->op->infer) continue;  // a placeholder
    nodes.push_back(node.get());
    for (const Tensor& input : recorded.inputs_of(*node)) fetches.push_back(input);
  }
  const Tensors values = recorded.run(fetches, make_inputs(sample, dtype));
  std::size_t next = 0;
  for (const Node* node : nodes) {
    Tensors given;
    for (std::size_t i = 0; i < node->inputs.size(); ++i) given.push_back(values[next++]);
    const std::string unlike = unlike_reference(*node->op, given, node->attributes, slack);
    if (!unlike.empty()) return text + ", " + node->op->name + ": " + unlike;
  }
  return "";
}

TEST_CASE("Every operator has a reference, and one only", "[host]") {
  const std::vector<Reference> references = all_references();
  for (const OpDef* op : every_operator()) {
    INFO(op->name);
    CHECK(std::count_if(references.begin(), references.end(),
                        [&](const Reference& reference) { return reference.op == op; }) == 1);
  }
  CHECK(references.size() == every_operator().size());
}

TEST_CASE("Every operator computes what its reference does, for any batch") {
  for (const DType dtype : kFloating)
    for (const Sample& sample : all_samples(dtype))
      for (const std::int64_t batch : batches(dtype, {0, 1, 3, 17}))
        if (batch <= kBatch || !is_backward_of_stack(sample)) check(sample, dtype, batch, 1);
}

TEST_CASE("Every operator computes what its reference does where its work is cut into pieces") {
  if (!on_host()) return;  // only the CPU cuts work like this
  std::set<const OpDef*> seen;
  for (const Sample& sample : all_samples(DType::f32)) {
    if (!seen.insert(sample.op).second) continue;  // sizes.cpp tries more forms
    if (is_backward_of_stack(sample)) continue;
    // Sums of so many floats have larger errors.
    if (const std::int64_t batch = large_batch(sample)) check(sample, DType::f32, batch, 100);
  }
}

TEST_CASE("Functions of one number are right where they overflow, saturate or are not defined") {
  for (const DType dtype : kFloating)
    for (const Sample& sample : all_samples(dtype)) {
      if (!sample.exact) continue;
      INFO(sample.name << ", " << name(dtype));
      const Attributes attributes = RecordedSample(sample, dtype, false).node().attributes;
      CHECK(unlike_reference(*sample.op, {extremes(dtype)}, attributes) == "");
    }
}

TEST_CASE("Functions of two numbers are right where either is huge, zero, infinite or none") {
  for (const DType dtype : kFloating) {
    // Every pair of extremes.
    const std::int64_t n = extremes(dtype).elements();
    const Tensor square = Tensor::zeros({n, n}, dtype);
    const Tensor row = extremes(dtype), column = reshape(row, {n, 1});
    const Tensor rows = expand_as(row, square), columns = expand_as(column, square);
    for (const Sample& sample : all_samples(dtype)) {
      if (!sample.of_two) continue;
      INFO(sample.name << ", " << name(dtype));
      const Attributes attributes = RecordedSample(sample, dtype, false).node().attributes;
      CHECK(unlike_reference(*sample.op, {rows, columns}, attributes) == "");
      if (sample.any_shape) CHECK(unlike_reference(*sample.op, {row, column}, attributes) == "");
    }
  }
}

TEST_CASE("softmax and its loss are right wherever the largest score stands, and however large") {
  const double inf = kInfinity64, nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::vector<double>> rows = {
      {1, 2, 3, 4, 5, 6, 7, 8, 9},
      {9, 8, 7, 6, 5, 4, 3, 2, 1},
      {-1, -3, 2, 7, -8, 6, 6.5, 0, 1},
      {0, 0, 0, 0, 0, 0, 0, 0, 1e4},
      {-1e4, -1e4, -1e4, -1e4, -1e4, -1e4, 10, -1e4, -1e4},
      {-1e4, -1e4 - 1, -1e4, -1e4, -1e4, -1e4, -1e4, -1e4, -1e4},
      {100, 188, 100, 188.5, 187, 4, 100, 100, 100},
      {-1e38, 1e38, 1e38, 0, 1, 2, 3, 4, 5},
      {3e38, 3e38, 3e38, 3e38, 3e38, 3e38, 3e38, 3e38, 3e38},
      {-3e38, -3e38, -3e38, -3e38, -3e38, -3e38, -3e38, -3e38, -3e38},
      {1e-30, -1e-30, 0, -0.0, 1e-20, 0, 0, 0, 0},
      {-inf, 2, -inf, 3, -inf, -inf, -inf, 1, -inf},  // masked
      {-inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf, 0},
      {-inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf},
      {1, 2, 3, 4, nan, 6, 7, 8, 9},
      {nan, 2, 3, 4, 5, 6, 7, 8, 9},
      {1, 2, 3, inf, 5, 6, 7, 8, 9},
  };
  // Rows narrower than any vector register, and rows of whole vectors plus a remainder.
  for (const auto& [dtype, repeats] :
       {std::pair(DType::f32, 1), std::pair(DType::f32, 5), std::pair(DType::f64, 1),
        std::pair(DType::f64, 5), std::pair(DType::f16, 1), std::pair(DType::bf16, 1)})
    for (const std::vector<double>& pattern : rows) {
      INFO(name(dtype) << ", " << repeats << " times " << Catch::Detail::stringify(pattern));
      std::vector<double> row;
      for (int i = 0; i < repeats; ++i) row.insert(row.end(), pattern.begin(), pattern.end());
      const auto classes = static_cast<std::int64_t>(row.size());
      // Plain rows before and after must stay unaffected.
      std::vector<double> values(row.size(), 0.5);
      values.insert(values.end(), row.begin(), row.end());
      values.resize(3 * row.size(), -0.5);
      const Tensor scores = cast(Tensor::from(values, {3, classes}), dtype);
      CHECK(unlike_reference(softmax_op, {scores}, {}) == "");
      for (const int label : {0, 3, 8}) {
        const Tensor labels = Tensor::from({1, label, 2});
        CHECK(unlike_reference(softmax_cross_entropy_op, {scores, labels}, {}) == "");
        CHECK(unlike_reference(softmax_cross_entropy_backward_op,
                               {scores, labels, Tensor::full({}, 3, dtype)}, {}) == "");
      }
    }
}

TEST_CASE("A gated update has a sample that is ready and one that is not, which changes nothing") {
  for (const DType dtype : kFloating) {
    const std::vector<Sample> samples = all_samples(dtype);
    const auto gate = [](const Sample& sample, Values values) {
      return std::any_of(sample.inputs.begin(), sample.inputs.end(),
                         [&](const SampleInput& input) { return input.values == values; });
    };
    for (const Sample& sample : samples) {
      INFO(sample.name << ", " << name(dtype));
      const bool closed = gate(sample, Values::not_ready);
      if (!closed && !gate(sample, Values::ready)) continue;
      CHECK(std::any_of(samples.begin(), samples.end(), [&](const Sample& other) {
        return other.op == sample.op && gate(other, closed ? Values::ready : Values::not_ready);
      }));
      const Tensors inputs = make_inputs(sample, dtype);
      const Tensors results = run_eagerly(sample, inputs);
      std::size_t state = results.size();
      for (std::size_t i = 0; i < inputs.size(); ++i) state -= sample.state.has(i) ? 1 : 0;
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if (sample.state.has(i)) {
          INFO("input " << i);
          CHECK((bytes_of(results[state++]) == bytes_of(inputs[i])) == closed);
        }
    }
  }
}

}  // namespace ebb::tests
