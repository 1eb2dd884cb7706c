// Input that makes no sense ends in an error message, never in the end of the process.
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"

using namespace ebb;

namespace {
constexpr std::int64_t kHuge = std::int64_t{1} << 32;
}

TEST_CASE("a tensor that holds nothing answers every question with an error") {
  const Tensor w = Tensor::zeros({2}).with_grad();
  const Tensor& nothing = w.grad();  // before backward()
  CHECK_FALSE(nothing.defined());
  CHECK_FALSE(nothing.is_symbolic());
  CHECK_FALSE(nothing.requires_grad());
  CHECK(nothing.to_string() == "a tensor that holds nothing");
  CHECK_ERROR(nothing.item<float>(), Error, "holds nothing");
  CHECK_ERROR(nothing.to_vector<float>(), Error, "holds nothing");
  CHECK_ERROR(nothing.to(Device::cpu()), Error, "holds nothing");
  CHECK_ERROR(nothing.clone(), Error, "holds nothing");
  CHECK_ERROR(nothing.detach(), Error, "holds nothing");
  CHECK_ERROR(nothing.backward(), Error, "holds nothing");
  CHECK_FALSE(nothing.grad().defined());
  nothing.zero_grad();  // does nothing
}

TEST_CASE("a shape whose elements cannot be counted is refused by name wherever one is given") {
  const std::string shape = "[4294967296, 4294967296]";
  const Device twin = Device::simulated("cpu", 1 << 30);
  Graph graph;
  CHECK_ERROR(Tensor::zeros({kHuge, kHuge}), ShapeError, shape);
  CHECK_ERROR(Tensor::zeros({kHuge, kHuge}, DType::u8, twin), ShapeError, shape);
  CHECK_ERROR(Tensor::full({kHuge, kHuge, 0}, 1), ShapeError, "[4294967296, 4294967296, 0]");
  CHECK_ERROR(Tensor::from(std::vector<float>(), Shape{kHuge, kHuge}), ShapeError, shape);
  CHECK_ERROR(normal({kHuge, kHuge}), ShapeError, shape);
  CHECK_ERROR(normal(graph, {kHuge, kHuge}), ShapeError, shape);
  CHECK_ERROR(reshape(Tensor::zeros({0}), {kHuge, kHuge}), ShapeError, shape);
  CHECK_ERROR(reshape(Tensor::zeros({0}), {kHuge, kHuge, -1}), ShapeError, "4294967296");
  CHECK_ERROR(Parameters(twin, Seed{1}).declare("w", {kHuge, kHuge}, initializers::zeros()),
              ShapeError, shape);
  CHECK_ERROR(graph.placeholder("x", DType::f32, {kOpen, kHuge, kHuge}), ShapeError,
              "[?, 4294967296, 4294967296]");
  CHECK_ERROR((Shape{kHuge, kHuge}.elements()), ShapeError, shape);
  CHECK_ERROR((Spec{DType::u8, {kHuge, kHuge}}.bytes()), ShapeError, shape);
  CHECK(Shape{kMaxElements}.elements() == kMaxElements);
  CHECK_ERROR(Tensor::zeros({kMaxElements}), OutOfMemory, "out of memory");
  CHECK(Shape{kMaxElements, 0}.elements() == 0);
}

TEST_CASE("a result whose elements cannot be counted is refused by its operator, in both modes") {
  const Device twin = Device::simulated("cpu", 1 << 30);
  const Tensor column = Tensor::zeros({kHuge, 1}, DType::f32, twin),
               row = Tensor::zeros({1, kHuge}, DType::f32, twin);
  CHECK_ERROR(Tensor::zeros({kMaxElements}, DType::f32, twin).to_vector<float>(), SimulatedRead,
              "has no values");
  CHECK_ERROR(matmul(column, row), ShapeError, "[matmul] the result is too large: the shape [429");
  CHECK_ERROR(column + row, ShapeError, "[add] the result is too large: the shape [429");
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 1}),
               y = graph.placeholder("y", DType::f32, {1, -1});
  const Tensor product = matmul(x, y);
  CHECK_ERROR(graph.plan({product}, {{x, {kHuge, 1}}, {y, {1, kHuge}}}, twin), ShapeError,
              "[matmul] the result is too large");
  CHECK_ERROR(graph.plan({product}, {{x, {kMaxElements + 1, 1}}, {y, {1, 2}}}, twin), ShapeError,
              "more elements than a tensor can have");
  Session session(graph, {.device = twin});
  CHECK_ERROR(session.run(product, {{x, column}, {y, row}}), ShapeError,
              "[matmul] the result is too large");
}

TEST_CASE("the size of an open dimension is an error, and a tensor of it is to be had") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 3});
  CHECK(x.shape()[-1] == 3);
  CHECK_ERROR(x.shape()[2], ShapeError, "there is no axis 2 in [?, 3]");
  CHECK(x.shape().to_string() == "[?, 3]");

  Session session(graph);
  const auto [rows_of, columns, last] =
      session.run({rows(x), size(x, 1), size(x, -1)}, {{x, Tensor::zeros({5, 3})}});
  CHECK(rows_of.item<std::int64_t>() == 5);
  CHECK(columns.item<std::int64_t>() == 3);
  CHECK(last.item<std::int64_t>() == 3);
  CHECK(size(Tensor::zeros({5, 3}), 0).item<std::int64_t>() == 5);
}
