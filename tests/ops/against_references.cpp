// Operators against their references (reference.h). Only values are compared here: derivatives.cpp
// compares gradients with differences.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/gru.h"
#include "ebb/core/ops/loss.h"
#include "ebb/core/ops/lstm.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/infinity.h"
#include "ebb/tests/ops/harness.h"
#include "ebb/tests/ops/reference.h"

namespace ebb::tests {
namespace {

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
