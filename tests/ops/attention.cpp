#include "ebb/core/ops/attention.h"

#include <cmath>

#include "ebb/core/autodiff/check_gradient.h"
#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/create.h"
#include "ebb/graph/graph.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

Tensor filled(const Shape& shape, int step) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    values.push_back(static_cast<double>((i * step) % 23 - 11) / 11);
  return Tensor::from(values, shape);
}

}  // namespace

TEST_CASE("A query for which no key counts gives zeros, and has derivatives of two orders") {
  const Tensor q = filled({2, 3, 4}, 5), k = filled({2, 3, 4}, 7), v = filled({2, 3, 2}, 3);
  // The mask leaves the second query of the first matrix without keys. A causal mask also leaves
  // the first query of the second matrix without keys.
  const std::vector<double> counts = {1, 0, 1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 0, 1, 1};
  const Tensor mask = cast(Tensor::from(counts, {2, 3, 3}), DType::boolean);
  for (const bool causal : {false, true}) {
    CAPTURE(causal);
    const auto attention = [&](const Tensors& in) {
      return scaled_dot_product_attention(in[0], in[1], in[2], {.mask = mask, .causal = causal});
    };
    const std::vector<double> y = attention({q, k, v}).to_vector<double>();
    CHECK((y[2] == 0 && y[3] == 0));
    CHECK((y[6] == 0) == causal);
    CHECK(check_gradient(attention, {q, k, v}, {.order = 2}).report == "");
  }
}

TEST_CASE("Causally the queries behind the last key count all keys, and without depth all alike") {
  const Tensor q = filled({2, 150, 3}, 5), k = filled({2, 70, 3}, 7), v = filled({2, 70, 2}, 3);
  const auto values = [](const Tensor& y) { return y.to_vector<double>(); };
  const std::vector<double> some = values(scaled_dot_product_attention(q, k, v, {.causal = true})),
                            all = values(scaled_dot_product_attention(q, k, v));
  bool right = true;
  for (std::size_t i = 0; i < some.size(); ++i)
    if (i / 2 % 150 >= 69) right = right && std::abs(some[i] - all[i]) < 1e-14;
  CHECK(right);
  Graph graph;
  const Tensor open = graph.placeholder("q", DType::f64, {-1, 150, 3});
  CHECK(scaled_dot_product_attention(open, k, v).shape() == Shape{2, 150, 2});
  const Tensor flat = scaled_dot_product_attention(Tensor::zeros({1, 2, 0}, DType::f64),
                                                   Tensor::zeros({1, 3, 0}, DType::f64),
                                                   Tensor::from({{{3.0}, {6.0}, {0.0}}}));
  for (const double value : values(flat)) CHECK(std::abs(value - 3) < 1e-15);
}

}  // namespace ebb::tests
