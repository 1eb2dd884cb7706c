// What a read means where memory is updated in place: the graph gives what the same lines give
// eagerly, with passes and without, or the error that eager gives.
#include <functional>

#include "ebb/core/autodiff/recompute.h"
#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/elementary.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/update.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/core/tensor/gradient_context.h"
#include "ebb/eager/no_grad.h"
#include "ebb/graph/session.h"
#include "ebb/optim/adam.h"
#include "ebb/optim/sgd.h"
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

// Lines that give some tensors, written for both modes.
using Program = std::function<Tensors(const Tensor& w, const Tensor& v)>;

Values eagerly(const Program& program) {
  const Parameters p = declared(Parameters(Device::cpu()));
  Tensors results = program(p["w"], p["v"]);
  results.push_back(p["w"]);
  results.push_back(p["v"]);
  return values_of(results);
}

// What is fetched, then w and v afterwards.
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

void check_modes(const Program& program) {
  const Values eager = eagerly(program);
  CHECK(as_graph(program, false) == eager);
  CHECK(as_graph(program, true) == eager);
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
    // Without the update among what is fetched, the gradient is that of what is there now.
    CHECK(session.run(dw).to_vector<float>() == std::vector<float>{200, 200});
  }
}

TEST_CASE("two optimizers on one loss do not train on each other's new values") {
  for (const bool passes : {false, true}) {
    Graph graph;
    const Parameters g(graph, Seed{1});
    const Tensor w = g.declare("w", {3}, initializers::constant(2));
    const Tensor v = g.declare("v", {3}, initializers::constant(3));
    const Tensor loss = sum(w * v);
    const Tensor dw = gradients(loss, {w})[0];
    const Tensor up_w = assign(w, w - 0.1 * dw);
    const Tensor dv = gradients(loss, {v})[0];
    const Tensor up_v = assign(v, v - 0.1 * dv);
    Session session(graph, {.passes = passes});
    session.initialize(g);
    session.run({up_w, up_v});
    CHECK(session.value(w).to_vector<float>() == std::vector<float>(3, 2 - 0.1f * 3));
    CHECK(session.value(v).to_vector<float>() == std::vector<float>(3, 3 - 0.1f * 2));
  }
}

TEST_CASE("a recomputed region reads the versions that it read first") {
  for (const bool passes : {false, true}) {
    Graph graph;
    const Parameters p = declared(Parameters(graph));
    const Tensor w = p["w"];
    const Tensor x = graph.placeholder("x", DType::f32, {2, 1});
    const Tensor y = recompute([&](const Tensor& in) { return tanh(tanh(in * w) * w); }, x);
    const Tensor up = assign(w, 5);
    const Tensor dx = gradients(sum(y), {x})[0];
    Session session(graph, {.passes = passes});
    session.initialize(p);
    const Tensor at = Tensor::full({2, 1}, 0.25);
    const auto before = session.run(dx, {{x, at}}).to_vector<float>();
    const auto with_update = session.run({dx, up}, {{x, at}})[0].to_vector<float>();
    CHECK(before == with_update);
    CHECK(session.run(dx, {{x, at}}).to_vector<float>() != before);
  }
}

TEST_CASE("an update inside a recomputed region is repeated on what is computed again") {
  for (const bool passes : {false, true}) {
    const auto run = [&](bool recomputes) {
      Graph graph;
      const Tensor x = graph.placeholder("x", DType::f32, {4});
      const auto function = [](const Tensor& in) {
        Tensor h = in * 3;
        const Tensor before = tanh(h);
        add_assign(h, 1);
        return square(h) * before;
      };
      const Tensor y = recomputes ? recompute(function, x) : function(x);
      const Tensor dx = gradients(sum(y), {x})[0];
      return Session(graph, {.passes = passes})
          .run(dx, {{x, Tensor::from({0.1f, 0.2f, 0.3f, 0.4f})}})
          .to_vector<float>();
    };
    CHECK(run(true) == run(false));
  }
}

TEST_CASE("what equals its input is not its input once that is updated") {
  check_modes([](const Tensor& w, const Tensor&) -> Tensors {
    const Tensor old = sum(w, {.axes = {1}, .keep = true});
    return {assign(w, 5) * 1, old * 1, old};
  });
  check_modes([](const Tensor& w, const Tensor&) -> Tensors {
    const Tensor old = mean(w, {.axes = {1}, .keep = true}).detach();
    return {assign(old, 0), w * 1};
  });
  check_modes([](const Tensor& w, const Tensor& v) -> Tensors {
    const Tensor view = reshape(w, {1, 2}).detach();
    const Tensor before = view * 1;
    const Tensor up = assign(w, v);
    return {before, up, view * 1, view};
  });
}

TEST_CASE("an update writes what a view of its target shows, and through a view its parent") {
  check_modes([](const Tensor& w, const Tensor& v) -> Tensors {
    const Tensor row = slice(w, 1, 2).detach();
    const Tensor first = assign(row, 9), after = w * 1;
    const Tensor second = add_assign(w, v), at_last = row * 1;
    return {first, after, second, at_last};
  });
}

TEST_CASE("an input that is broadcast, or a view that is a part, gives no memory away") {
  const std::vector<float> expected = {26, 46, 46};
  const Tensor p = Tensor::from({{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}});
  const Tensor q = Tensor::full({3, 2}, 10);
  const auto first_row = [](const Tensor& x) { return slice(x * 2, 0, 1); };
  const std::vector<float> rows = (first_row(p) + q).to_vector<float>();
  CHECK(rows == std::vector<float>{12, 14, 12, 14, 12, 14});
  for (const bool passes : {false, true}) {
    Graph graph;
    const Tensor x = graph.placeholder("x", DType::f32, {3, 2});
    const Tensor y = sum((first_row(x) + q) * 1, {.axes = {1}});
    CHECK(Session(graph, {.passes = passes}).run(y, {{x, p}}).to_vector<float>() ==
          std::vector<float>(3, 26));
    const Tensor h = x * 2;
    const Tensor z = h + slice(h, 0, 1);
    CHECK(Session(graph, {.passes = passes}).run(z, {{x, p}}).to_vector<float>() ==
          std::vector<float>{4, 8, 8, 12, 12, 16});
  }
}

TEST_CASE("a gradient goes through an update in place of what has a history") {
  check_modes([](const Tensor& w, const Tensor&) -> Tensors {
    const Tensor y = w * 2;
    add_assign(y, square(w));
    return gradients(sum(y), {w});
  });
  CHECK(eagerly([](const Tensor& w, const Tensor&) -> Tensors {
          const Tensor y = w * 2;
          add_assign(y, square(w));
          add_assign(y, square(w));
          return gradients(sum(y), {w});
        })[0] == std::vector<float>{10, 10});
  check_modes([](const Tensor& w, const Tensor& v) -> Tensors {
    const Tensor y = w * 2, early = y * 5;
    const Tensor late = assign(y, square(v));
    return gradients(sum(early) + sum(late * w) + sum(y), {w, v});
  });
  check_modes([](const Tensor& w, const Tensor&) -> Tensors {  // zeros that sums are added to
    Tensor total = fill_like(w, 0);
    for (int i = 1; i <= 3; ++i) add_assign(total, square(w) * i);
    return gradients(sum(total), {w});
  });
  check_modes([](const Tensor& w, const Tensor& v) -> Tensors {  // through a view of all of it
    const Tensor flat = reshape(w * 2, {2});
    add_assign(flat, reshape(square(v), {2}));
    return gradients(sum(flat * flat), {w, v});
  });
}

TEST_CASE("an update of state is no history: gradients are those of what was read") {
  check_modes([](const Tensor& w, const Tensor& v) -> Tensors {
    const Tensor before = sum(w * 3);
    const Tensor up = assign(w, v * 4);
    return {gradients(before, {w})[0], gradients(sum(up * v), {w})[0],
            gradients(sum(square(w) + v), {w, v})[1], up};
  });
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

TEST_CASE("a history written through a view is not lost to a tensor that had none") {
  check_refused(
      [](const Tensor& w, const Tensor& v) -> Tensors {
        const Tensor y = fill_like(w, 0);
        add_assign(slice(y, 0, 1), slice(v * 5, 0, 1));
        return gradients(sum(y) + sum(v), {v});
      },
      "has been updated in place through another view");
  check_modes([](const Tensor& w, const Tensor& v) -> Tensors {  // written without one
    const Tensor y = fill_like(w, 0);
    add_assign(slice(y, 0, 1), slice(v * 5, 0, 1).detach());
    return gradients(sum(y * v) + sum(v), {v});
  });
}

TEST_CASE("what was detached is a constant, also where its memory is updated afterwards") {
  check_modes([](const Tensor& w, const Tensor& v) -> Tensors {
    const Tensor y = w * 2, before = y.detach();
    add_assign(y, v);
    return gradients(sum(y * before) + sum(reshape(before, {2}) * 3), {w, v});
  });
  check_refused(
      [](const Tensor& w, const Tensor& v) -> Tensors {
        const Tensor y = w * 2, before = y.detach();
        add_assign(before, v);  // a history of its own, which the next line writes over
        add_assign(y.detach(), v);
        return gradients(sum(w * before), {w, v});
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

TEST_CASE("a fetched gradient is what its rule read, whatever updates come after") {
  for (const bool passes : {false, true}) {
    Graph graph;
    const Parameters p = declared(Parameters(graph));
    const Tensor w = p["w"], v = p["v"];
    // The rule of a product with a number below 1 gives w itself back through a view.
    const Tensor dv = gradients(sum(matmul(reshape(w, {1, 2}), v)), {v})[0];
    const Tensor up = assign(w, 50);
    Session session(graph, {.passes = passes});
    session.initialize(p);
    const auto results = session.run({dv, up, w});
    CHECK(results[0].to_vector<float>() == std::vector<float>{2, 2});
    CHECK(results[2].to_vector<float>() == std::vector<float>{50, 50});
  }
}

TEST_CASE(
    "updates that no fetch needs make no version, and reading state makes none of them needed") {
  for (const bool passes : {false, true}) {
    Graph graph;
    const Parameters p = declared(Parameters(graph));
    const Tensor w = p["w"];
    const Tensor first = add_assign(w, 1);
    const Tensor between = w * 10;
    const Tensor second = add_assign(w, 5);
    const Tensor after = w * 100;
    Session session(graph, {.passes = passes});
    session.initialize(p);
    CHECK(session.run(after).to_vector<float>() == std::vector<float>{200, 200});
    const auto results = session.run({between, second, after});
    CHECK(results[0].to_vector<float>() == std::vector<float>{20, 20});
    CHECK(results[2].to_vector<float>() == std::vector<float>{700, 700});
    CHECK(session.run(first).to_vector<float>() == std::vector<float>{8, 8});
  }
}

TEST_CASE("what is no state is computed with the updates of it that come before") {
  check_modes([](const Tensor& w, const Tensor& v) -> Tensors {
    const NoGrad no_grad;
    const Tensor h = w * v;
    const Tensor before = h * 1;
    add_assign(h, 1);
    add_assign(slice(h, 0, 1), 2);
    return {h * 1, before, h};
  });
}

TEST_CASE("captured tensors that share memory are one memory") {
  for (const bool passes : {false, true}) {
    const Tensor base = Tensor::from({{1.f, 2.f}, {3.f, 4.f}});
    const Tensor row = slice(base, 1, 2);
    Graph graph;
    const Tensor x = graph.placeholder("x", DType::f32, {});
    const Tensor before = row * x;
    const Tensor up = assign(base, base * 0 + x);
    const Tensor after = row * x;
    Session session(graph, {.passes = passes});
    const auto results = session.run({after, up, before}, {{x, Tensor::full({}, 7)}});
    CHECK(results[0].to_vector<float>() == std::vector<float>{49, 49});
    CHECK(results[2].to_vector<float>() == std::vector<float>{21, 28});
    CHECK(row.to_vector<float>() == std::vector<float>{7, 7});
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
