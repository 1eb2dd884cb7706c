#include "ebb/graph/session.h"

#include <atomic>
#include <cmath>
#include <thread>

#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/elementary.h"
#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/update.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/graph/models.h"

using namespace ebb;
using ebb::tests::ClassifierData;
using ebb::tests::ClassifierGraph;

namespace {
// A graph with one variable, a scalar that starts at 1.
struct Counter {
  Counter()
      : parameters(graph), value(parameters.declare("value", {}, initializers::constant(1))) {}
  Graph graph;
  Parameters parameters;
  Tensor value;
};
}  // namespace

TEST_CASE("fetching a validation loss never trains") {
  ClassifierGraph model;
  const ClassifierData data(8);
  Session session(model.graph);
  session.initialize(model.parameters);
  const Feeds feeds{{model.x, data.x}, {model.y, data.y}};
  const float before = session.run(model.loss, feeds).item<float>();
  CHECK(session.run(model.loss, feeds).item<float>() == before);
  CHECK(session.run(model.train, feeds).item<float>() == before);
  CHECK(session.run(model.loss, feeds).item<float>() < before);
}

TEST_CASE("a read before an update sees the old value, one after it the new one") {
  Counter counter;
  const Tensor before = counter.value * 1;
  const Tensor updated = add_assign(counter.value, Tensor::full({}, 10));
  const Tensor after = counter.value * 1;
  Session session(counter.graph);
  session.initialize();
  const auto [a, b, c] = session.run({before, updated, after});
  CHECK(a.item<float>() == 1);
  CHECK(b.item<float>() == 11);
  CHECK(c.item<float>() == 11);
  CHECK(session.run(after).item<float>() == 11);  // alone it makes no update
  CHECK(session.value(counter.value).item<float>() == 11);
}

TEST_CASE("the backward pass reads the version of the forward pass") {
  Counter counter;
  const Tensor y = square(counter.value);
  const Tensor g = gradients(y, {counter.value})[0];
  const Tensor updated = add_assign(counter.value, Tensor::full({}, 10));
  const Tensor late = gradients(square(counter.value), {counter.value})[0];
  Session session(counter.graph);
  session.initialize();
  const auto [first, second, third] = session.run({g, updated, late});
  CHECK(first.item<float>() == 2);
  CHECK(third.item<float>() == 22);
}

TEST_CASE("fetched tensors belong to the caller and outlive the session") {
  ClassifierGraph model;
  const ClassifierData data(8);
  Tensor scores, again;
  {
    Session session(model.graph);
    session.initialize(model.parameters);
    scores = session.run(model.scores, {{model.x, data.x}});
    const std::vector<float> values = scores.to_vector<float>();
    again = session.run(model.scores, {{model.x, data.x}});
    CHECK(scores.to_vector<float>() == values);
    CHECK(again.to_vector<float>() == values);
  }
  CHECK(scores.to_vector<float>() == again.to_vector<float>());
}

TEST_CASE("one value may be fetched twice, with a placeholder, a variable and a view of it") {
  Counter counter;
  const Tensor x = counter.graph.placeholder("x", DType::f32, {2});
  const Tensor y = x + counter.value;
  Session session(counter.graph);
  session.initialize();
  const Tensor fed = Tensor::from({1.f, 2.f});
  const auto [a, b, c, d] = session.run({y, y, x, counter.value}, {{x, fed}});
  CHECK(a.item<float>({1}) == 3);
  CHECK(b.item<float>({1}) == 3);
  CHECK(c.item<float>({1}) == 2);
  CHECK(d.item<float>() == 1);
}

TEST_CASE("a captured tensor stays live, and a captured result with a history is refused") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {2});
  const Tensor live = Tensor::from({1.f, 1.f});
  const Tensor y = x * live;
  Session session(graph);
  const Tensor fed = Tensor::from({3.f, 4.f});
  CHECK(session.run(y, {{x, fed}}).item<float>({1}) == 4);
  add_assign(live, live.clone());
  CHECK(session.run(y, {{x, fed}}).item<float>({1}) == 8);
  const Tensor result = live.with_grad() * 2;
  CHECK_ERROR(x * result, Error, "would freeze");
  CHECK_NOTHROW(x * result.detach());
}

TEST_CASE("two sessions of one graph share nothing") {
  ClassifierGraph model;
  const ClassifierData data(8);
  const Feeds feeds{{model.x, data.x}, {model.y, data.y}};
  Session one(model.graph), two(model.graph);
  one.initialize(model.parameters);
  two.initialize(model.parameters);
  const float start = two.run(model.loss, feeds).item<float>();
  for (int i = 0; i < 5; ++i) one.run(model.train, feeds);
  CHECK(two.run(model.loss, feeds).item<float>() == start);
  one.close();
  CHECK(two.run(model.loss, feeds).item<float>() == start);
}

TEST_CASE("assign sets a value, and value() reads it") {
  ClassifierGraph model;
  Session session(model.graph);
  const Tensor weight = model.parameters["out.weight"];
  CHECK_ERROR(session.value(weight), Error, "no value");
  session.initialize(model.parameters);
  session.assign(weight, Tensor::full({32, 4}, 0.25));
  CHECK(session.value(weight).item<float>({31, 3}) == 0.25f);
  CHECK_ERROR(session.assign(weight, Tensor::full({4, 32}, 1)), ShapeError, "out.weight");
  CHECK_ERROR(session.value(model.loss), Error, "variable");
}

TEST_CASE("plans are kept up to a number, the least recently used goes first") {
  ClassifierGraph model;
  Session session(model.graph, {.max_plans = 3});
  session.initialize(model.parameters);
  for (std::int64_t rows = 1; rows <= 8; ++rows) {
    const ClassifierData data(rows);
    session.run(model.train, {{model.x, data.x}, {model.y, data.y}});
    CHECK(session.plans() <= 3);
  }
  CHECK(session.plans() == 3);
  CHECK_ERROR(Session(model.graph, {.max_plans = 0}), Error, "max_plans");
}

TEST_CASE("a prepared step follows the shapes it is fed") {
  ClassifierGraph model;
  Session session(model.graph);
  session.initialize(model.parameters);
  auto step = session.prepare(model.loss, {model.x, model.y});
  for (const std::int64_t rows : {4, 8, 4, 2}) {
    const ClassifierData data(rows);
    const float direct =
        session.run(model.loss, {{model.x, data.x}, {model.y, data.y}}).item<float>();
    CHECK(step(data.x, data.y).item<float>() == direct);
  }
  const ClassifierData data(4);
  CHECK_ERROR(step(data.x), Error, "takes 2 values");
  CHECK_ERROR(session.prepare(model.loss, {model.scores}), Error, "placeholder");
}

TEST_CASE("what is wrong with a run is said in one message") {
  ClassifierGraph model, other;
  const ClassifierData data(4);
  Session session(model.graph);
  const Feeds feeds{{model.x, data.x}, {model.y, data.y}};
  CHECK_ERROR(session.run(model.loss, feeds), Error, "hidden.weight' has no value");
  session.initialize(model.parameters);
  CHECK_ERROR(session.run(model.loss, {{model.x, data.x}}), Error, "is not fed");
  CHECK_ERROR(session.run(model.loss, {{model.x, data.y}, {model.y, data.y}}), ShapeError,
              " is f32[?, 16]");
  CHECK_ERROR(session.run(model.loss, {{model.x, Tensor::zeros({4, 17})}, {model.y, data.y}}),
              ShapeError, "[4, 17]");
  CHECK_ERROR(
      session.run(model.loss, {{model.x, Tensor::zeros({4, 16}, DType::f64)}, {model.y, data.y}}),
      ShapeError, "f64[4, 16]");
  CHECK_ERROR(
      session.run(model.loss, {{model.x, data.x}, {model.y, Tensor::zeros({5}, DType::i32)}}),
      ShapeError, "softmax_cross_entropy");
  CHECK_ERROR(session.run(other.loss, feeds), Error, "not a tensor of this graph");
  CHECK_ERROR(session.run(model.loss, {{other.x, data.x}}), Error, "placeholders of this graph");
  CHECK_ERROR(session.run(model.loss, {{model.scores, data.x}}), Error, "placeholders");
  CHECK_ERROR(session.run(model.loss, {{model.x, data.x}, {model.x, data.x}, {model.y, data.y}}),
              Error, "fed twice");
  CHECK_ERROR(session.run(Tensors{}, feeds), Error, "nothing to fetch");
  CHECK_ERROR(session.run(model.loss, {{model.x, Tensor()}, {model.y, data.y}}), Error,
              "holds nothing");
  CHECK_ERROR(session.initialize(other.parameters), Error, "graph");
  CHECK_ERROR(model.loss + other.loss, Error, "two graphs");
  CHECK_ERROR(model.loss.item<float>(), Error, "symbolic");
  CHECK_ERROR(model.loss.backward(), Error, "symbolic");
  CHECK_ERROR(model.graph.placeholder("x", DType::f32, {1}), Error, "'x' is taken");
  CHECK(session.run(model.loss, feeds).item<float>() > 0);  // nothing was lost
}

TEST_CASE("dropout draws anew in each run, and a restored session draws what it would have drawn") {
  const ebb::tests::TemporaryFolder folder;
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {64});
  const Tensor y = dropout(x, 0.5, Phase::training), z = dropout(x, 0.5, Phase::training);
  const Tensor ones = Tensor::full({64}, 1);
  const auto draw = [&](Session& session) {
    const auto [a, b] = session.run({y, z}, {{x, ones}});
    CHECK(a.to_vector<float>() != b.to_vector<float>());
    return a.to_vector<float>();
  };
  Session one(graph);
  const auto first = draw(one), second = draw(one);
  CHECK(first != second);
  Session two(graph);
  CHECK(draw(two) != first);
  one.save(folder.path("draws.safetensors"));
  const auto third = draw(one);
  two.restore(folder.path("draws.safetensors"));
  CHECK(draw(two) == third);
}

TEST_CASE("fetching a part of a result writes nothing else, and stays what it was") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {4, 2});
  const Tensor y = x * 2, row = slice(y, 0, 1), whole = y + 1;
  for (const bool passes : {false, true}) {
    Session session(graph, {.passes = passes});
    const auto run = [&](float value) {
      return session.run({row, whole}, {{x, Tensor::full({4, 2}, value)}});
    };
    const auto first = run(1), second = run(5);
    CHECK(first[0].to_vector<float>() == std::vector<float>{2, 2});
    CHECK(first[1].to_vector<float>() == std::vector<float>(8, 3));
    CHECK(second[0].to_vector<float>() == std::vector<float>{10, 10});
    CHECK(second[1].to_vector<float>() == std::vector<float>(8, 11));
  }
}

TEST_CASE("a plan that is used again outlives an older one") {
  // A view of one's own, whose shape rule counts how often it is asked: once for each plan made.
  static int asked = 0;
  static const OpDef counting_op{.name = "counting",
                                 .infer =
                                     [](Inference& i) {
                                       ++asked;
                                       i.output(i.inputs[0].dtype, i.inputs[0].shape);
                                     },
                                 .view = [](const MemoryQuery&) -> std::size_t { return 0; }};
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1});
  const Tensor y = apply_one(counting_op, {x}, {}, {}) * 2;
  Session session(graph, {.max_plans = 2});
  const auto is_planned_anew = [&](std::int64_t rows) {
    const int before = asked;
    session.run(y, {{x, Tensor::full({rows}, 1)}});
    return asked > before;
  };
  CHECK(is_planned_anew(1));
  CHECK(is_planned_anew(2));
  CHECK_FALSE(is_planned_anew(1));  // used again
  CHECK(is_planned_anew(3));        // 2 goes
  CHECK_FALSE(is_planned_anew(1));
  CHECK(is_planned_anew(2));
}

TEST_CASE("a tape that keeps a captured tensor notices that a run has updated it") {
  const Tensor state = Tensor::full({2}, 3);
  const Tensor w = Tensor::full({2}, 2).with_grad();
  const Tensor loss = sum(w * state);
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {2});
  const Tensor up = assign(state, x);
  Session session(graph);
  session.run(up, {{x, Tensor::full({2}, 7)}});
  CHECK_ERROR(loss.backward(), Error, "has been updated in place");
}

TEST_CASE(
    "a graph that is extended by one thread while sessions run it refuses, and nothing breaks",
    "[concurrent]") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1});
  const Tensor y = tanh(x) * 2;
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> runners;
  for (int t = 0; t < 2; ++t)
    runners.emplace_back([&, t] {
      Session session(graph);
      for (std::int64_t n = 1; !stop; n = n % 50 + 1)  // plans again and again
        if (session.run(y, {{x, Tensor::full({n}, t)}}).item<float>({0}) !=
            2 * std::tanh(static_cast<float>(t)))
          ++wrong;
    });
  int added = 0, refused = 0;
  for (int i = 0; i < 4000; ++i) {
    try {
      static_cast<void>(x + 1);
      ++added;
    } catch (const Error&) {
      ++refused;
    }
  }
  stop = true;
  for (std::thread& runner : runners) runner.join();
  CHECK(added + refused == 4000);
  CHECK(graph.size() >= 3 + static_cast<std::size_t>(added));
  CHECK(wrong == 0);
}
