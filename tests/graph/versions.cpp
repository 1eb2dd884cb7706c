// Reads of memory that is updated in place: the graph gives the values that the same lines give
// eagerly, with passes and without, or eager's error.
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/in_mode.h"

namespace ebb::tests {

TEST_CASE("a history that another view has overwritten is refused in both modes") {
  for (const bool as_graph : {false, true}) {
    const InMode mode(as_graph);
    const Tensor w = mode.parameters.declare("w", {2}, initializers::constant(2));
    const Tensor y = w * 2;
    add_assign(slice(y, 0, 1), slice(w, 0, 1));
    CHECK_ERROR(gradients(sum(y), {w}), Error, "has been updated in place through another view");
  }
}

TEST_CASE("an update that both needs and must wait for a read is eager's error, when planned") {
  for (const bool as_graph : {false, true})
    for (const bool passes : {false, true}) {
      CAPTURE(as_graph, passes);
      InMode mode(as_graph, DType::f32, Seed{1}, {.passes = passes});
      const Tensor w = mode.parameters.declare("w", {2}, initializers::constant(2));
      const Tensor v = mode.parameters.declare("v", {2}, initializers::constant(3));
      const auto program = mode.function([&] {
        const Tensor y = log(v);
        const Tensor up = assign(v, w);  // dy / v needs the new v for dy, and the old one
        return gradients(sum(y * up), {v})[0];
      });
      CHECK_ERROR(program({}), Error, "at version 0");
      CHECK_ERROR(program({}), Error, "versions.cpp:");
    }
}

TEST_CASE("a captured tensor that is also fed is fed as it was before the run") {
  for (const bool passes : {false, true}) {
    const Tensor state = Tensor::from({1.f, 2.f});
    Graph graph;
    const Tensor x = graph.placeholder("x", DType::f32, {2});
    const Tensor up = add_assign(state, x * 1 + 10);
    const Tensor after = up + x;
    Session session(graph, {.passes = passes});
    CHECK(session.run(after, {{x, state}}).to_vector<float>() == std::vector<float>{13, 16});
    CHECK(state.to_vector<float>() == std::vector<float>{12, 14});
  }
}

TEST_CASE("a placeholder cannot be updated in place") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {2});
  CHECK_ERROR(add_assign(x, 1), Error, "the placeholder 'x' belongs to who feeds it");
  CHECK_ERROR(add_assign(slice(x, 0, 1), 1), Error, "copy() it");
}

TEST_CASE("feeds in any order are one plan") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1}),
               y = graph.placeholder("y", DType::f32, {-1});
  const Tensor z = x - y;
  Session session(graph);
  const Tensor a = Tensor::from({5.f}), b = Tensor::from({3.f});
  CHECK(session.run(z, {{x, a}, {y, b}}).item<float>() == 2);
  CHECK(session.run(z, {{y, b}, {x, a}}).item<float>() == 2);
  CHECK(session.plans() == 1);
  auto step = session.prepare(z, {y, x});
  CHECK(step(a, b).item<float>() == -2);
  CHECK(session.plans() == 1);
  CHECK_ERROR(session.run(z, {{Tensor(), a}}), Error, "only placeholders of this graph");
}

}  // namespace ebb::tests
