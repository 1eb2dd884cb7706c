#include "ebb/core/ops/attention.h"

#include <algorithm>
#include <cmath>

#include "ebb/core/autodiff/check_gradient.h"
#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/create.h"
#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/loss.h"
#include "ebb/core/ops/softmax.h"
#include "ebb/core/ops/where.h"
#include "ebb/graph/graph.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/infinity.h"

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
  // The second query of the first matrix has none; causally the first of the second neither.
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

TEST_CASE("Masks and the causal order hold for queries and keys of every tile") {
  const std::int64_t batch = 2, length = 270, keys = 290;
  const Tensor q = filled({batch, length, 3}, 5), k = filled({batch, keys, 3}, 7),
               v = filled({batch, keys, 2}, 3), dy = filled({batch, length, 2}, 9);
  // Of each query at least the first key counts.
  const auto counts = [](const Shape& shape) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < shape.elements(); ++i)
      values.push_back(i % shape.dim(-1) == 0 || i * i % 7 > 2 ? 1 : 0);
    return cast(Tensor::from(values, shape), DType::boolean);
  };
  const struct {
    Tensor mask;
    bool causal;
  } cases[] = {{{}, true},
               {counts({length, keys}), true},
               {counts({batch, 1, keys}), false},
               {filled({batch, length, keys}, 11), false},
               {filled({length, 1}, 13), true},
               {filled({batch, 1, keys}, 13), false}};
  const Tensor seen = tril(cast(ones({length, keys}), DType::boolean));
  for (const auto& [mask, causal] : cases) {
    CAPTURE(mask.to_string(), causal);
    const Tensor a = q.with_grad(), b = k.with_grad(), c = v.with_grad();
    const Tensor y = scaled_dot_product_attention(a, b, c, {.mask = mask, .causal = causal});
    Tensor scores = matmul(a, b, {.transpose_b = true}) * (1 / std::sqrt(3.0));
    if (mask.defined() && is_floating(mask.dtype()))
      scores = scores + mask;
    else if (mask.defined())
      scores = where(mask, scores, -kInfinity64);
    if (causal) scores = where(seen, scores, -kInfinity64);
    const Tensor expected = matmul(softmax(scores), c);
    const Tensors got = gradients(sum(y * dy), {a, b, c}),
                  right = gradients(sum(expected * dy), {a, b, c});
    const auto near = [](const Tensor& x, const Tensor& to) {
      const std::vector<double> values = x.to_vector<double>(), others = to.to_vector<double>();
      for (std::size_t i = 0; i < values.size(); ++i)
        if (!(std::abs(values[i] - others[i]) < 1e-13)) return false;
      return true;
    };
    CHECK(near(y, expected));
    for (std::size_t i = 0; i < 3; ++i) CHECK(near(got[i], right[i]));
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

TEST_CASE("A mask that is added has the gradient of the scores") {
  const Tensor q = filled({2, 3, 4}, 5), k = filled({2, 5, 4}, 7), v = filled({2, 5, 2}, 3);
  const auto attention = [&](const Tensors& in) {
    return scaled_dot_product_attention(q, k, v, {.mask = in[0], .causal = true, .scale = 0.7});
  };
  for (const Shape& shape : {Shape{3, 5}, Shape{2, 1, 5}, Shape{5}, Shape{3, 1}})
    CHECK(check_gradient(attention, {filled(shape, 11)}, {.order = 2}).report == "");
}

}  // namespace ebb::tests
