// Several accumulating optimizers, each for a part of the parameters: MEMORY.md, row 15.
#include "ebb/core/base/error.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/loss.h"
#include "ebb/core/ops/shape.h"
#include "ebb/models/mlp.h"
#include "ebb/optim/adam.h"
#include "ebb/optim/groups.h"
#include "ebb/optim/sgd.h"
#include "ebb/tests/line.h"
#include "ebb/tests/optim/number.h"
#include "ebb/tests/optim/rules.h"
#include "ebb/tests/optim/train.h"

namespace ebb::tests {
namespace {

constexpr std::int64_t kTogether = 24;

// A network of two layers, each with an optimizer of its own.
struct Model {
  explicit Model(const Parameters& parameters, const optim::Optimizer& second)
      : net(parameters, {12, 6, 5}, {.activation = Activation::tanh}),
        groups({{parameters.scope("0"),
                 optim::Sgd({.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.1})},
                {parameters.scope("1"), second}}),
        accumulator(groups, {.samples = kTogether}) {}
  Tensor loss(const Tensor& x, const Tensor& y) const { return softmax_cross_entropy(net(x), y); }
  Tensor micro(const Tensor& x, const Tensor& y) const {
    return accumulator.minimize(loss(x, y), rows(y));
  }

  models::Mlp net;
  std::vector<optim::ParameterGroup> groups;
  optim::GroupAccumulator accumulator;
};

std::vector<optim::Optimizer> second_optimizers() {
  return {optim::AdamW({.learning_rate = 0.01, .clip = {.global_norm = 0.01}}),
          optim::Sgd({.learning_rate = 0.3}), optim::Optimizer(std::make_shared<Momentum>(), 0.1)};
}

const Tensor& x() {
  static const Tensor all = Golden("mlp_f64")["x"];  // [24, 12]
  return all;
}
const Tensor& y() {
  static const Tensor all = Golden("mlp_f64")["y"];
  return all;
}
Tensor part(const Tensor& of, std::int64_t begin, std::int64_t end) {
  return slice(of, begin, end);
}

void check_near(const Parameters& a, const Parameters& b) {
  for (const auto& [name, tensor] : a.entries()) {
    CAPTURE(name);
    CHECK(distance(tensor, b[name]) < 1e-13);
  }
}

std::size_t gradient_bytes() {
  return memory::stats(Device::cpu())
      .by_category[static_cast<std::size_t>(memory::Category::gradient)]
      .current;
}

// Parameters a and b, each in a group of its own. Each has as its gradient the number given to a
// micro-step.
struct GroupPair {
  explicit GroupPair(const Parameters& parameters) : parameters(parameters) {
    for (const char* name : {"a", "b"})
      parameters.scope(name).declare("w", {}, initializers::zeros());
    groups = {{parameters.scope("a"), optim::Sgd({.learning_rate = 1})},
              {parameters.scope("b"), optim::Sgd({.learning_rate = 10})}};
  }
  Tensor micro(const Tensor& c) const {
    return optim::GroupAccumulator(groups, {.samples = 2})
        .minimize(parameters["a.w"] * c + parameters["b.w"] * c, one);
  }
  Tensor flush() const { return optim::GroupAccumulator(groups, {.samples = 2}).flush(); }
  void freeze(const char* name, bool frozen) const {
    parameters.scope(name).set_trainable(!frozen);
  }

  const Parameters parameters;
  const Tensor one = Tensor::full({}, 1, DType::i64);
  std::vector<optim::ParameterGroup> groups;
};

}  // namespace

TEST_CASE("micro-batches give the whole batch's update by each group's optimizer",
          "[optim][row15][groups]") {
  for (const optim::Optimizer& second : second_optimizers()) {
    CAPTURE(second.rule().name());
    const Parameters whole(Device::cpu(), Seed{3}, DType::f64),
        micro(Device::cpu(), Seed{3}, DType::f64);
    const Model at_once(whole, second), in_parts(micro, second);
    for (int update = 0; update < 3; ++update) {
      optim::minimize(at_once.loss(x(), y()), at_once.groups);
      for (const auto& [begin, end] : {std::pair{0, 5}, {5, 16}, {16, 24}})
        in_parts.micro(part(x(), begin, end), part(y(), begin, end));
      check_near(micro, whole);
    }
    // flush() updates by an incomplete batch.
    for (const auto& [begin, end] : {std::pair{0, 7}, {7, 10}})
      in_parts.micro(part(x(), begin, end), part(y(), begin, end));
    check_near(micro, whole);
    optim::minimize(at_once.loss(part(x(), 0, 10), part(y(), 0, 10)), at_once.groups);
    CHECK(in_parts.accumulator.flush().item<std::int64_t>() == 10);
    check_near(micro, whole);
    CHECK(in_parts.accumulator.flush().item<std::int64_t>() == 0);
    check_near(micro, whole);
  }
}

TEST_CASE("groups accumulate alike in both modes, bit for bit", "[optim][row15][groups]") {
  for (const optim::Optimizer& second : second_optimizers()) {
    CAPTURE(second.rule().name());
    const Parameters eager(Device::cpu(), Seed{3}, DType::f64);
    const Model of_eager(eager, second);
    Graph graph;
    const Tensor some_x = graph.placeholder("x", DType::f64, {-1, 12}),
                 some_y = graph.placeholder("y", DType::i32, {-1});
    const Parameters symbolic(graph, Seed{3}, DType::f64);
    const Model of_graph(symbolic, second);
    const Tensor micro_step = of_graph.micro(some_x, some_y);
    const Tensor flush = of_graph.accumulator.flush();
    Session session(graph, {.passes = false});
    session.initialize(symbolic);
    const auto check = [&] {
      REQUIRE(symbolic.slots().size() == eager.slots().size());
      for (const auto* list : {&symbolic.entries(), &symbolic.slots()})
        for (const auto& [name, tensor] : *list) {
          CAPTURE(name);
          CHECK(bit_equal(session.value(tensor), eager[name]));
        }
    };
    for (const auto& [begin, end] : {std::pair{0, 5}, {5, 16}, {16, 24}, {3, 9}}) {
      const Tensor bx = part(x(), begin, end), by = part(y(), begin, end);
      CHECK(
          bit_equal(session.run(micro_step, {{some_x, bx}, {some_y, by}}), of_eager.micro(bx, by)));
      check();
    }
    CHECK(bit_equal(session.run(flush), of_eager.accumulator.flush()));
    check();
  }
}

TEST_CASE("groups accumulate in one set of gradients and two numbers each",
          "[optim][row15][groups]") {
  const auto peak_of = [&](bool in_groups) {
    const Parameters params(Device::cpu(), Seed{3}, DType::f64);
    const optim::Sgd sgd({.learning_rate = 0.1, .momentum = 0.9});
    const Model model(params, sgd);
    const optim::Accumulator alone(sgd, {.samples = kTogether});
    const auto step = [&] {
      in_groups ? model.micro(x(), y()) : alone.minimize(model.loss(x(), y()), params, rows(y()));
    };
    const std::size_t before = gradient_bytes();
    step();
    // Bytes of two weights and two biases, and a count for each group.
    CHECK(gradient_bytes() - before == 1024 + 512 + 512 + 512 + (in_groups ? 2 : 1) * 512);
    const std::size_t held = memory::stats(Device::cpu()).allocated.current;
    const memory::PeakScope peak(Device::cpu());
    step();
    CHECK(memory::stats(Device::cpu()).allocated.current == held);
    return peak.bytes() - held;
  };
  // A second group takes at most three scalars beyond one accumulator's peak: rate, count and gate.
  CHECK(peak_of(true) <= peak_of(false) + 3 * 512);
}

TEST_CASE("a frozen group counts with the others, and drops what it has accumulated",
          "[optim][row15][groups]") {
  for (const char* frozen : {"a", "b"})
    for (const bool flushed : {false, true}) {
      CAPTURE(frozen, flushed);
      const std::string trained = *frozen == 'a' ? "b" : "a";
      const double rate_of_frozen = *frozen == 'a' ? 1 : 10, rate = 11 - rate_of_frozen;
      const auto name = [](const std::string& scope) { return scope + ".w"; };
      const Parameters p(Device::cpu(), Seed{1}, DType::f64);
      const GroupPair pair(p);
      pair.micro(number(100));
      pair.freeze(frozen, true);
      if (flushed) {
        CHECK(pair.flush().item<std::int64_t>() == 1);
      } else {
        pair.micro(number(300));
      }
      const double after = -rate * (flushed ? 100 : 200);
      CHECK(p[name(trained)].item<double>() == after);
      CHECK(p[name(frozen)].item<double>() == 0);
      // A group that is thawed in the middle of a batch ends its batch together with the others.
      pair.micro(number(2));
      pair.freeze(frozen, false);
      pair.micro(number(2));
      CHECK(p[name(trained)].item<double>() == after - rate * 2);
      CHECK(p[name(frozen)].item<double>() == -rate_of_frozen * 1);
      for (const char* scope : {"a", "b"})
        CHECK(p[std::string(scope) + ".sgd/samples"].item<std::int64_t>() == 0);

      Graph graph;
      const Tensor c = graph.placeholder("c", DType::f64, {});
      const Parameters symbolic(graph, Seed{1}, DType::f64);
      const GroupPair recorded(symbolic);
      const Tensor both = recorded.micro(c);
      recorded.freeze(frozen, true);
      const Tensor one = recorded.micro(c), end = recorded.flush();
      Session session(graph);
      session.initialize(symbolic);
      session.run(both, {{c, number(100)}});
      flushed ? session.run(end) : session.run(one, {{c, number(300)}});
      session.run(one, {{c, number(2)}});
      session.run(both, {{c, number(2)}});
      for (const std::string& scope : {std::string(frozen), trained})
        CHECK(bit_equal(session.value(symbolic[name(scope)]), p[name(scope)]));
    }
}

TEST_CASE("groups that cannot accumulate say so, and have changed nothing",
          "[optim][row15][groups]") {
  const Parameters p(Device::cpu(), Seed{1}, DType::f64);
  const GroupPair pair(p);
  CHECK_ERROR(optim::GroupAccumulator({}), Error, "[accumulator] takes one group");
  CHECK_ERROR(optim::GroupAccumulator(pair.groups, {.samples = 0}), Error,
              "samples = 0 is below 1");
  CHECK_ERROR(pair.flush(), Error, "nothing has been accumulated");
  const auto all = [&](const optim::Optimizer& second) {
    return optim::GroupAccumulator({pair.groups[0], {p.scope("b"), second}});
  };
  const Tensor loss = p["a.w"] * 3 + p["b.w"];
  CHECK_ERROR(
      optim::GroupAccumulator({pair.groups[0], {p, optim::Adam()}}).minimize(loss, pair.one), Error,
      "'a.w' is in two groups");
  CHECK_ERROR(all(optim::Adam()).minimize(p["a.w"] * 3, pair.one), Error,
              "depends on none of the 1 parameters whose names begin with \"b.\"");
  CHECK_ERROR(all(optim::Adam()).minimize(loss, number(1)), ShapeError, "i64 scalar");
  struct Failing final : optim::Rule {
    const char* name() const noexcept override { return "failing"; }
    std::span<const char* const> slots() const noexcept override { return Momentum::kSlots; }
    optim::RuleResult update(const optim::RuleInput&) const override { throw Error("[failing]"); }
  };
  CHECK_ERROR(all({std::make_shared<Failing>(), 0.1}).minimize(p["a.w"] * 3 + p["b.w"], pair.one),
              Error, "[failing]");
  CHECK(p.slots().empty());
  CHECK(p["a.w"].item<double>() == 0);

  pair.micro(number(1));
  p.set_trainable(false);
  CHECK_ERROR(pair.micro(number(1)), Error, "every parameter of the groups that the loss");
  CHECK_ERROR(pair.flush(), Error,
              "every parameter of the groups with an accumulated gradient is frozen");
  p.set_trainable(true);
  CHECK(pair.flush().item<std::int64_t>() == 1);
  CHECK(p["a.w"].item<double>() == -1);
  CHECK(p["b.w"].item<double>() == -10);
}

TEST_CASE("what groups refuse to accumulate is of the caller's line", "[optim][row15][groups]") {
  const Parameters p(Device::cpu(), Seed{1}, DType::f64);
  const GroupPair pair(p);
  const optim::GroupAccumulator accumulator(pair.groups, {.samples = 2});
  CHECK_ERROR(optim::GroupAccumulator({}), Error, line(__LINE__));
  CHECK_ERROR(accumulator.flush(), Error, line(__LINE__));
  CHECK_ERROR(accumulator.minimize(number(1), pair.one), Error, line(__LINE__));
}

TEST_CASE("a flush counts what has been accumulated, for whichever of the groups",
          "[optim][row15][groups]") {
  const Parameters p(Device::cpu(), Seed{1}, DType::f64);
  const GroupPair pair(p);
  const Tensor loss = optim::GroupAccumulator({pair.groups[1]}, {.samples = 2})
                          .minimize(p["b.w"] * 3 + 1, pair.one);
  CHECK(loss.item<double>() == 1);
  CHECK_FALSE(loss.requires_grad());
  CHECK(pair.flush().item<std::int64_t>() == 1);
  CHECK(p["a.w"].item<double>() == 0);
  CHECK(p["b.w"].item<double>() == -30);
  CHECK(p.contains("a.sgd/samples"));  // as in a graph
}

TEST_CASE("a frozen group makes no step, and has nothing to clip", "[optim][row15][groups]") {
  const Parameters p(Device::cpu(), Seed{1}, DType::f64);
  GroupPair pair(p);
  pair.groups[1].optimizer = {std::make_shared<Momentum>(), 0.1, {}, {.global_norm = 1}};
  pair.freeze("b", true);
  for (int i = 0; i < 2; ++i) pair.micro(number(3));
  CHECK(p["a.w"].item<double>() == -3);
  CHECK(p["b.w"].item<double>() == 0);
  CHECK(p["a.sgd/step"].item<std::int64_t>() == 1);
  CHECK(p["b.momentum/step"].item<std::int64_t>() == 0);
}

}  // namespace ebb::tests
