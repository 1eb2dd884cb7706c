// Reads of memory that is updated in place: the graph gives the values that the same lines give
// eagerly, with passes and without, or eager's error.
#include <functional>

#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/elementary.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/update.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

using Values = std::vector<std::vector<float>>;

Values values_of(const Tensors& tensors) {
  Values values;
  for (const Tensor& tensor : tensors) values.push_back(tensor.to_vector<float>());
  return values;
}

Parameters declared(Parameters parameters) {
  parameters.declare("w", {2, 1}, initializers::constant(2));
  parameters.declare("v", {2, 1}, initializers::constant(3));
  return parameters;
}

// Lines that return some tensors, written for both modes.
using Program = std::function<Tensors(const Tensor& w, const Tensor& v)>;

Values eagerly(const Program& program) {
  const Parameters p = declared(Parameters(Device::cpu()));
  Tensors results = program(p["w"], p["v"]);
  results.push_back(p["w"]);
  results.push_back(p["v"]);
  return values_of(results);
}

// Returns the fetched values, then w and v after the run.
Values as_graph(const Program& program, bool passes) {
  Graph graph;
  const Parameters p = declared(Parameters(graph));
  const Tensors fetches = program(p["w"], p["v"]);
  Session session(graph, {.passes = passes});
  session.initialize(p);
  Tensors results = session.run(fetches);
  results.push_back(session.value(p["w"]));
  results.push_back(session.value(p["v"]));
  return values_of(results);
}

template <class E = Error>
void check_refused(const Program& program, const char* text) {
  CHECK_ERROR(eagerly(program), E, text);
  CHECK_ERROR(as_graph(program, false), E, text);
  CHECK_ERROR(as_graph(program, true), E, text);
}

}  // namespace

TEST_CASE("a gradient reads what the forward pass has read, though an update was written between") {
  for (const bool passes : {false, true}) {
    Graph graph;
    const Parameters p = declared(Parameters(graph));
    const Tensor w = p["w"];
    const Tensor loss = sum(square(w));
    const Tensor up = assign(w, 100);
    const Tensor dw = gradients(loss, {w})[0];
    Session session(graph, {.passes = passes});
    session.initialize(p);
    const auto results = session.run({dw, up, loss});
    CHECK(results[0].to_vector<float>() == std::vector<float>{4, 4});
    CHECK(results[1].to_vector<float>() == std::vector<float>{100, 100});
    CHECK(results[2].item<float>() == 8);
    // Without the update among the fetches, the gradient reads the current value of w.
    CHECK(session.run(dw).to_vector<float>() == std::vector<float>{200, 200});
  }
}

TEST_CASE("a history that another view has overwritten is refused in both modes") {
  check_refused(
      [](const Tensor& w, const Tensor& v) -> Tensors {
        const Tensor y = w * 2;
        add_assign(slice(y, 0, 1), slice(v, 0, 1));
        return gradients(sum(y), {w});
      },
      "has been updated in place through another view");
}

TEST_CASE("what eager refuses only because memory was overwritten, the graph puts in order") {
  const Program program = [](const Tensor& w, const Tensor&) -> Tensors {
    const Tensor y = tanh(w);
    add_assign(y, 1);
    return {gradients(sum(y), {w})[0], y};
  };
  CHECK_ERROR(eagerly(program), Error, "has been updated in place");
  const Values plain = as_graph(program, false), passes = as_graph(program, true);
  CHECK(plain == passes);
  CHECK(plain[0][0] == Approx(1 - std::tanh(2.0) * std::tanh(2.0)));
  CHECK(plain[1][0] == Approx(std::tanh(2.0) + 1));
}

TEST_CASE("an update that both needs and must wait for a read is eager's error, when planned") {
  const Program program = [](const Tensor& w, const Tensor& v) -> Tensors {
    const Tensor y = log(v);
    const Tensor up = assign(v, w);  // dy / v needs the new v for dy, and the old one
    return gradients(sum(y * up), {v});
  };
  CHECK_ERROR(eagerly(program), Error, "at version 0");
  CHECK_ERROR(as_graph(program, true), Error, "at version 0");
  CHECK_ERROR(as_graph(program, false), Error, "versions.cpp:");
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

TEST_CASE("gradients reach captured leaves, and stop at detach, in both modes") {
  const auto loss = [](const Tensor& w, const Tensor& c) {
    return sum(square(w) * c + c.detach() * w.detach() * 100 + (w * 3).detach() * c);
  };
  const Tensor leaf = Tensor::from({2.f, 3.f}).with_grad();
  const Tensor other = Tensor::from({5.f, 7.f}).with_grad();
  const Values eager = values_of(gradients(loss(leaf, other), {leaf, other}));
  Graph graph;
  const Tensor one = graph.placeholder("one", DType::f32, {});
  const Tensor w = leaf * one, c = other * one;
  Session session(graph);
  CHECK(values_of(session.run(gradients(loss(w, c), {w, c}), {{one, Tensor::full({}, 1)}})) ==
        eager);
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
