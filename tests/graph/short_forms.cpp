// The short forms of runs and of lists of tensors.
#include <array>
#include <span>
#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {

TEST_CASE("a prepared step may have several fetches, and placeholders come in any container") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1});
  const Tensor y = graph.placeholder("y", DType::f32, {-1});
  Session session(graph);
  const std::vector<Tensor> placeholders = {x, y};
  auto step = session.prepare({x + y, x * y}, placeholders);
  const Tensor a = Tensor::from({1.f, 2.f}), b = Tensor::from({3.f, 4.f});
  for (int i = 0; i < 3; ++i) {
    const auto [sum_of_both, product] = step(a, b);
    CHECK(sum_of_both.to_vector<float>() == std::vector<float>{4, 6});
    CHECK(product.to_vector<float>() == std::vector<float>{3, 8});
  }
  CHECK(session.plans() == 1);
  const std::vector<Tensor> fetches = {y, x - y};
  CHECK(session.run(fetches, {{x, a}, {y, b}})[1].to_vector<float>() == std::vector<float>{-2, -2});
  CHECK_ERROR(session.prepare({x, a}, {x}), Error, "a fetch is not a tensor of this graph");
}

TEST_CASE("several tensors may stand in a vector, an array or a span") {
  const std::vector<Tensor> leaves = {Tensor::full({2}, 3).with_grad(),
                                      Tensor::full({2}, 5).with_grad()};
  const auto loss = [&] { return sum(leaves[0] * leaves[1]); };
  CHECK(gradients(loss(), leaves)[0].to_vector<float>() == std::vector<float>{5, 5});
  const std::span<const Tensor> seen(leaves);
  CHECK(gradients(loss(), seen)[1].to_vector<float>() == std::vector<float>{3, 3});
  CHECK(gradients(loss(), std::array{leaves[1]})[0].to_vector<float>() == std::vector<float>{3, 3});
  CHECK(concat(leaves).size(0) == 4);
}

}  // namespace ebb::tests
