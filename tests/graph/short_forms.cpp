// The short forms of runs and of lists of tensors.
#include <array>
#include <span>
#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/graph/create.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/line.h"

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
  auto of_list = session.prepare(fetches, {x, y});
  const Tensors results = of_list(a, b);
  REQUIRE(results.size() == 2);
  CHECK(results[0].to_vector<float>() == std::vector<float>{3, 4});
  CHECK(results[1].to_vector<float>() == std::vector<float>{-2, -2});
  CHECK(session.prepare(std::span<const Tensor>(fetches).first(1), {y})(b).size() == 1);
  CHECK_ERROR(session.prepare({x, a}, {x}), Error, "a fetch is not a tensor of this graph");
}

TEST_CASE("what a graph makes out of nothing has the short forms of what is made eagerly") {
  Graph graph;
  Session session(graph);
  const auto same = [&](const Tensor& short_form, const Tensor& eager) {
    const Tensor value = session.run(short_form);
    return value.dtype() == eager.dtype() && value.shape() == eager.shape() &&
           cast(value, DType::f64).to_vector<double>() ==
               cast(eager, DType::f64).to_vector<double>();
  };
  CHECK(same(zeros(graph, {2}, DType::i32), zeros({2}, DType::i32)));
  CHECK(same(ones(graph, {2, 1}, DType::f64), ones({2, 1}, DType::f64)));
  CHECK(same(full(graph, {2}, 3, DType::u8), full({2}, 3, DType::u8)));
  CHECK(same(arange(graph, 3), arange(3)));
  CHECK(same(arange(graph, 3, {.step = 2}), arange(3, {.step = 2})));
  CHECK(same(arange(graph, 3, DType::f32), arange(3, DType::f32)));
  CHECK(same(arange(graph, 1, 3, DType::i32), arange(1, 3, DType::i32)));
  CHECK(same(arange(graph, 0, 10, 2), arange(0, 10, 2)));
  CHECK(same(arange(graph, 0, 1, 0.5, DType::f32), arange(0, 1, 0.5, DType::f32)));
  CHECK(arange(0, 1, 0.5, DType::f32).to_vector<float>() == std::vector<float>{0, 0.5f});
  CHECK(same(linspace(graph, 0, 1, 3, DType::f64), linspace(0, 1, 3, DType::f64)));
  CHECK(same(eye(graph, 2, 3), eye(2, 3)));
  CHECK(same(eye(graph, 2, DType::i64), eye(2, DType::i64)));
  CHECK(same(eye(graph, 1, 2, DType::f64), eye(1, 2, DType::f64)));
  CHECK(eye(1, 2, DType::i32).to_vector<std::int32_t>() == std::vector<std::int32_t>{1, 0});
  // Nor do they lose the line.
  const DType i32 = DType::i32, f32 = DType::f32;
  CHECK_ERROR(zeros(graph, {1ll << 60}, f32), ShapeError, line(__LINE__));
  CHECK_ERROR(ones(graph, {1ll << 60}, f32), ShapeError, line(__LINE__));
  CHECK_ERROR(full(graph, {1ll << 60}, 0, i32), ShapeError, line(__LINE__));
  CHECK_ERROR(arange(graph, 2, {.step = 0.5}), Error, line(__LINE__));
  CHECK_ERROR(arange(graph, 0, 2, 0.5), Error, line(__LINE__));
  CHECK_ERROR(arange(graph, 0, 2, 0.5, i32), Error, line(__LINE__));
  CHECK_ERROR(linspace(graph, 0, 1, -3, f32), Error, line(__LINE__));
  CHECK_ERROR(eye(graph, 2, -1), ShapeError, line(__LINE__));
  CHECK_ERROR(eye(graph, 2, -1, i32), ShapeError, line(__LINE__));
  CHECK_ERROR(eye(graph, -2, i32), ShapeError, line(__LINE__));
}

TEST_CASE("a device stands for a session's options") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {2});
  const Device device = Device::parse("sim:cpu:1GiB");
  Session session(graph, device);
  CHECK(session.run(x + 1, {{x, Tensor::zeros({2})}}).device() == device);
  CHECK(Session(graph, Device::cpu()).run(x + 1, {{x, zeros({2})}}).to_vector<float>() ==
        std::vector<float>{1, 1});
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
