// Operators of a user that leave something out, and gradients of the wrong shape or dtype.
#include "ebb/core/ops/shape_rules.h"
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/host_kernel.h"

using namespace ebb;

namespace {

OpDef own(const char* name, Tensors (*gradient)(const GradientContext&)) {
  return {.name = name,
          .infer = detail::same_shape,
          .gradient = gradient,
          .cpu = {tests::copy_first},
          .cuda = tests::copied<tests::copy_first>};
}

Tensor apply_own(const OpDef& op, const Tensor& x) {
  return apply_one(op, {x}, {}, CallSite::here());
}

Tensor leaf() { return Tensor::full({3}, 2).with_grad(); }

}  // namespace

TEST_CASE("a gradient rule that reads what its operator does not keep is told so") {
  static const OpDef reads_x =
      own("reads_x", [](const GradientContext& g) -> Tensors { return {g.dy() * g.x(0)}; });
  static const OpDef reads_y =
      own("reads_y", [](const GradientContext& g) -> Tensors { return {g.dy() * g.y()}; });
  for (const OpDef* op : {&reads_x, &reads_y})
    CHECK_THROWS_WITH(sum(apply_own(*op, leaf())).backward(), Catch::Contains("does not keep"));
}

TEST_CASE("a gradient rule that gives another shape, dtype or number is refused, in both modes") {
  static const OpDef shape =
      own("own_shape", [](const GradientContext& g) -> Tensors { return {mean(g.dy())}; });
  static const OpDef dtype = own(
      "own_dtype", [](const GradientContext& g) -> Tensors { return {cast(g.dy(), DType::f64)}; });
  static const OpDef none = own("own_none", [](const GradientContext&) -> Tensors { return {}; });
  static const OpDef two = own("own_two", [](const GradientContext& g) -> Tensors {
    return {g.dy(), g.dy()};
  });
  for (const OpDef* op : {&shape, &dtype, &none, &two}) {
    CHECK_THROWS_WITH(sum(apply_own(*op, leaf())).backward(),
                      Catch::Contains(std::string("[") + op->name + "] its gradient rule gives"));
    Graph graph;
    const Tensor p = graph.placeholder("p", DType::f32, {3});
    CHECK_THROWS_WITH(gradients(sum(apply_own(*op, p)), {p}),
                      Catch::Contains(std::string("[") + op->name + "] its gradient rule gives"));
  }
}

TEST_CASE("an operator without a shape rule, or without the memory rule it needs, is refused") {
  static const OpDef no_rule{.name = "no_rule",
                             .infer = nullptr,
                             .cpu = {tests::copy_first},
                             .cuda = tests::copied<tests::copy_first>};
  static const OpDef opaque{.name = "opaque",
                            .infer =
                                [](Inference& i) {
                                  i.output(DType::f32, i.inputs[0].shape);
                                  i.output(DType::u8, {kOpen});
                                },
                            .cpu = {tests::copy_first},
                            .cuda = tests::copied<tests::copy_first>};
  const Tensor x = Tensor::full({3}, 1);
  Graph graph;
  const Tensor p = graph.placeholder("p", DType::f32, {3});
  CHECK_THROWS_WITH(apply_own(no_rule, x), Catch::Contains("[no_rule]"));
  CHECK_THROWS_WITH(apply_own(no_rule, p), Catch::Contains("[no_rule]"));
  CHECK_THROWS_WITH(apply_own(opaque, x), Catch::Contains("[opaque]"));
  const Tensor y = apply_own(opaque, p);
  CHECK_THROWS_WITH(graph.plan({y}, {{p, {3}}}, Device::cpu()), Catch::Contains("[opaque]"));
  const Input nothing;
  CHECK_THROWS_AS(apply(opaque, {&nothing, 1}, {}, CallSite::here()), Error);
}

TEST_CASE("what a gradient check finds wrong is told by its caller's line") {
  const auto wrong = [](const Tensors& x) { return cast(x[0], DType::f32); };
  CHECK_THROWS_WITH(check_gradient(wrong, {Tensor::full({2}, 1, DType::f64)}),
                    Catch::Contains("own_operators.cpp"));
}
