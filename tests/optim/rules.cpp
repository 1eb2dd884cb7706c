// Rules of a user, written in public operators.
#include "ebb/tests/optim/rules.h"
#include "ebb/ebb.h"

#include "ebb/tests/eager/bytes.h"
#include "ebb/tests/optim/train.h"

namespace ebb::tests {
namespace {

template <class Rule, class... Arguments>
optim::Optimizer own(optim::LearningRate rate, Arguments&&... arguments) {
  return {std::make_shared<Rule>(std::forward<Arguments>(arguments)...), std::move(rate)};
}

// A rule with two slots that calls a function.
struct Scripted final : optim::Rule {
  using Update = std::function<optim::RuleResult(const optim::RuleInput&)>;
  explicit Scripted(Update update) : update_(std::move(update)) {}
  const char* name() const noexcept override { return "scripted"; }
  std::span<const char* const> slots() const noexcept override { return kSlots; }
  optim::RuleResult update(const optim::RuleInput& in) const override { return update_(in); }
  static constexpr const char* kSlots[] = {"a", "b"};
  const Update update_;
};

optim::Optimizer scripted(Scripted::Update update) { return own<Scripted>(0.1, std::move(update)); }

Training two_parameters(std::vector<Step> steps) {
  return {[](const Parameters& p) {
            p.declare("x", {4}, initializers::uniform(-1, 1));
            p.declare("y", {4}, initializers::uniform(-1, 1));
          },
          std::move(steps)};
}

Tensor ruled_loss(const Parameters& p) { return sum(square(p["x"]) * p["y"] + exp(p["y"])); }

struct WritesItself final : optim::Rule {
  const char* name() const noexcept override { return "writes"; }
  std::span<const char* const> slots() const noexcept override { return kSlots; }
  optim::RuleResult update(const optim::RuleInput& in) const override {
    const Tensor v = assign(in.slots[0], 0.9 * in.slots[0] + in.gradient);
    return {in.parameter - in.rate * v, {v}};
  }
  static constexpr const char* kSlots[] = {"v"};
};

struct Plain final : optim::Rule {
  const char* name() const noexcept override { return "plain"; }
  std::span<const char* const> slots() const noexcept override { return {}; }
  optim::RuleResult update(const optim::RuleInput& in) const override {
    return {in.parameter - in.rate * in.gradient, {}};
  }
};

}  // namespace

TEST_CASE("a rule in operators is the fused one, to rounding, in both modes", "[optim][rule]") {
  const bool as_graph = GENERATE(false, true);
  for (const DType dtype : {DType::f32, DType::f64}) {
    const double near = dtype == DType::f32 ? 1e-6 : 1e-14;
    const optim::LearningRate rate = optim::cosine(0.1, {.warm_up = 3, .steps = 8});
    const auto with = [&](const optim::Optimizer& optimizer) {
      Training training = two_parameters(
          {[&](const Parameters& p) { return optimizer.minimize(ruled_loss(p), p); }});
      training.dtype = dtype;
      return train(as_graph, training, 6);
    };
    const Values adam = with(optim::Adam({.learning_rate = rate}));
    const Values own_adam = with(own<OwnAdam>(rate));
    const Values sgd = with(optim::Sgd({.learning_rate = rate, .momentum = 0.9}));
    const Values momentum = with(own<Momentum>(rate));
    for (const char* name : {"x", "y"}) {
      CHECK(distance(own_adam.at(name), adam.at(name)) < near);
      CHECK(distance(momentum.at(name), sgd.at(name)) < near);
    }
    CHECK(distance(own_adam.at("y/own_adam.v"), adam.at("y/adam.second_moment")) < near);
    CHECK(own_adam.at("own_adam/step").item<std::int64_t>() == 6);
  }
}

TEST_CASE("a rule sees the parameter, its gradient, its slots, the step and the rate",
          "[optim][rule]") {
  const Parameters p(Device::cpu(), Seed{1}, DType::f64);
  p.declare("x", {2}, initializers::constant(3));
  std::vector<double> steps;
  const optim::Optimizer optimizer = own<Scripted>(0.25, [&](const optim::RuleInput& in) {
    CHECK_FALSE(in.parameter.requires_grad());
    CHECK(in.parameter.dtype() == DType::f64);
    CHECK(in.rate.item<double>() == 0.25);
    CHECK(values_of(in.gradient) == std::vector<double>{5, 5});
    CHECK(in.slots.size() == 2);
    CHECK(values_of(in.slots[0]) == std::vector<double>(2, static_cast<double>(steps.size())));
    steps.push_back(in.step.item<double>());
    return optim::RuleResult{in.parameter, {in.slots[0] + 1, in.slots[1]}};
  });
  for (int i = 0; i < 3; ++i) optimizer.minimize(sum(p["x"] * 5), p);
  CHECK(steps == std::vector<double>{1, 2, 3});
  CHECK(values_of(p["x"]) == std::vector<double>{3, 3});
}

TEST_CASE("what a rule returns may be what it was given, or nothing", "[optim][rule]") {
  const bool as_graph = GENERATE(false, true);
  const auto rounds = [&](const Scripted::Update& update, int count) {
    const optim::Optimizer optimizer = scripted(update);
    return train(
        as_graph,
        two_parameters({[&](const Parameters& p) { return optimizer.minimize(ruled_loss(p), p); }}),
        count);
  };
  const auto mark = [](const optim::RuleInput& in) {
    return optim::RuleResult{{}, {in.gradient, in.parameter * 1}};
  };
  const Values start = rounds(mark, 0), marked = rounds(mark, 1);
  CHECK(bit_equal(marked.at("x"), start.at("x")));
  CHECK(bit_equal(marked.at("x/scripted.b"), start.at("x")));

  // Slots trade places, and the parameter takes one slot's old value.
  const auto trade = [](const optim::RuleInput& in) {
    return optim::RuleResult{in.slots[0], {in.parameter, reshape(in.slots[0], {4})}};
  };
  const Values swapped = rounds(trade, 1), twice = rounds(trade, 2);
  CHECK(values_of(swapped.at("x")) == std::vector<double>(4, 0));
  CHECK(bit_equal(swapped.at("x/scripted.a"), start.at("x")));
  CHECK(values_of(swapped.at("x/scripted.b")) == std::vector<double>(4, 0));
  CHECK(bit_equal(twice.at("x"), start.at("x")));
  CHECK(values_of(twice.at("x/scripted.a")) == std::vector<double>(4, 0));
  CHECK(bit_equal(twice.at("x/scripted.b"), start.at("x")));
}

TEST_CASE("a rule can be made of a built-in one, and decays what that one decays",
          "[optim][rule]") {
  const bool as_graph = GENERATE(false, true);
  const optim::AdamW adamw(
      {.learning_rate = 0.1, .weight_decay = 0.5, .decay_only = [](const auto& p) {
         return p.name == "x" && p.tensor.rank() == 1;
       }});
  // Has two slots, as AdamW has. The doubled gradient makes no difference to it but through
  // epsilon.
  const optim::Optimizer wrapped = own<Scripted>(0.1, [&](const optim::RuleInput& in) {
    optim::RuleInput doubled = in;
    doubled.gradient = in.gradient * 2;
    return adamw.rule().update(doubled);
  });
  const auto with = [&](const optim::Optimizer& optimizer) {
    Training training =
        two_parameters({[&](const Parameters& p) { return optimizer.minimize(ruled_loss(p), p); }});
    training.dtype = DType::f64;
    return train(as_graph, training, 4);
  };
  const Values own = with(wrapped), built_in = with(adamw);
  for (const char* name : {"x", "y"}) CHECK(distance(own.at(name), built_in.at(name)) < 1e-6);
  CHECK(distance(values_of(own.at("x/scripted.a") * 0.5),
                 values_of(built_in.at("x/adamw.first_moment"))) < 1e-6);
}

TEST_CASE("a rule that throws half-way has changed nothing and counted nothing", "[optim][rule]") {
  int calls = 0, allowed = 0;
  const optim::Optimizer optimizer = scripted([&](const optim::RuleInput& in) {
    if (++calls > allowed) throw Error("[scripted] no more");
    return optim::RuleResult{in.parameter - in.rate * in.gradient, {in.gradient, in.slots[1] + 1}};
  });
  const optim::Accumulator accumulator(optimizer, {.samples = 2});
  const Tensor one = Tensor::full({}, 1, DType::i64);
  const auto step = [&](const Parameters& p) {
    ruled_loss(p).backward();
    try {
      optimizer.step(p);
    } catch (...) {
      p.zero_grad();
      throw;
    }
    p.zero_grad();
  };
  const auto apply = [&](const Parameters& p) {
    optimizer.apply({Tensor::full({4}, 1), Tensor::full({4}, 2)}, p);
  };
  const std::vector<std::function<void(const Parameters&)>> ways = {
      [&](const Parameters& p) { optimizer.minimize(ruled_loss(p), p); }, step, apply,
      [&](const Parameters& p) { accumulator.minimize(ruled_loss(p), p, one); },
      [&](const Parameters& p) { accumulator.flush(p); }};
  for (std::size_t way = 0; way < ways.size(); ++way)
    for (const int steps_before : {0, 1}) {
      CAPTURE(way, steps_before);
      const bool flushes = way == 4;
      if (flushes && steps_before == 0) continue;
      const Parameters p(Device::cpu(), Seed{1});
      two_parameters({}).declare(p);
      calls = 0, allowed = 100;
      for (int i = 0; i < steps_before; ++i) ways[flushes ? 3 : way](p);
      const Values before = values_of(p);
      const Bytes bytes;
      calls = 0, allowed = 1;
      CHECK_ERROR(ways[way](p), Error, "no more");
      check_bits(values_of(p), before);
      CHECK(bytes.now() == 0);
      allowed = 100;
      ways[way](p);
      CHECK(p["scripted/step"].item<std::int64_t>() ==
            (way == 3 ? (steps_before + 1) / 2 : steps_before + 1 - (flushes ? 1 : 0)));
    }

  // In a graph, a step that failed leaves no node that a run could count.
  Graph graph;
  const Parameters p(graph, Seed{1});
  two_parameters({}).declare(p);
  const Tensor loss = ruled_loss(p);
  calls = 0, allowed = 1;
  CHECK_ERROR(optimizer.minimize(loss, p), Error, "no more");
  allowed = 100;
  const Tensor train = optimizer.minimize(loss, p);
  Session session(graph);
  session.initialize();
  session.run(train);
  CHECK(session.value(p["scripted/step"]).item<std::int64_t>() == 1);
}

TEST_CASE("a rule that gives the wrong thing is told so before anything is written",
          "[optim][rule]") {
  const Parameters p(Device::cpu(), Seed{1});
  two_parameters({}).declare(p);
  const Values before = values_of(p);
  const auto minimize = [&](Scripted::Update update) {
    scripted(std::move(update)).minimize(ruled_loss(p), p);
  };
  using Result = optim::RuleResult;
  using Input = optim::RuleInput;
  CHECK_ERROR(minimize([](const Input& in) {
                return Result{in.parameter * 2, {}};
              }),
              Error, "[scripted] update() gives 0 slots for 'x', not 2");
  CHECK_ERROR(minimize([](const Input& in) {
                return Result{sum(in.parameter), Tensors(2)};
              }),
              Error, "update() gives f32[]");
  CHECK_ERROR(minimize([](const Input& in) {
                return Result{{}, {{}, cast(in.gradient, DType::f64)}};
              }),
              Error, "for the slot b of 'x'");
  Graph graph;
  const Tensor symbolic = graph.placeholder("s", DType::f32, {4});
  CHECK_ERROR(minimize([&](const Input&) {
                return Result{symbolic, Tensors(2)};
              }),
              Error, "for the value of 'x'");
  check_bits(values_of(p), before);
}

TEST_CASE("names of rules, slots and optimizers leave those of slots readable", "[optim][rule]") {
  struct Named final : optim::Rule {
    Named(const char* name, const char* slot) : name_(name), slot_(slot) {}
    const char* name() const noexcept override { return name_; }
    std::span<const char* const> slots() const noexcept override { return {&slot_, 1}; }
    optim::RuleResult update(const optim::RuleInput&) const override { return {}; }
    const char* name_;
    const char* slot_;
  };
  for (const char* bad : {"", "a/b", "a.b", "a:b"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(own<Named>(0.1, bad, "slot"), Error);
    CHECK_THROWS_AS(own<Named>(0.1, "rule", bad), Error);
    if (*bad) CHECK_THROWS_AS(optim::Adam({.name = bad}), Error);
  }
  CHECK_ERROR(own<Named>(0.1, nullptr, "slot"), Error, "needs a name");
  CHECK_ERROR(own<Named>(0.1, "rule", "accumulated"), Error, "cannot name a slot");
  CHECK_ERROR(optim::Optimizer(nullptr, 0.1), Error, "not a null pointer");
}

TEST_CASE("a NaN is found in the operator of the rule that makes it, and nothing is written",
          "[optim][rule]") {
  const Parameters p(Device::cpu());
  const Tensor w = p.declare("w", {2}, initializers::constant(1));
  const auto optimizer = scripted([](const optim::RuleInput& in) -> optim::RuleResult {
    return {in.parameter - sqrt(in.gradient - 9), {Tensor(), Tensor()}};
  });
  {
    const DetectNan detect;
    CHECK_ERROR(optimizer.minimize(sum(square(w)), p), NotANumber, "[sqrt] element [0]");
  }
  CHECK(w.detach().to_vector<float>() == std::vector<float>{1, 1});
}

TEST_CASE("a rule that writes in place is refused in both modes") {
  for (const bool as_graph : {false, true}) {
    const InMode mode(as_graph);
    const Tensor w = mode.parameters.declare("w", {1}, initializers::constant(1));
    const optim::Optimizer optimizer(std::make_shared<WritesItself>(), 0.1);
    CHECK_ERROR(optimizer.minimize(sum(square(w)), mode.parameters), Error,
                "has written to the parameter 'w'");
  }
}

TEST_CASE("a learning rate that is one of the parameters is read before the step writes it") {
  for (const bool own : {false, true})
    for (const bool as_graph : {false, true}) {
      InMode mode(as_graph, DType::f64);
      const Tensor rate = mode.parameters.declare("rate", {}, initializers::constant(0.25));
      const Tensor w = mode.parameters.declare("w", {}, initializers::constant(1));
      const optim::Optimizer optimizer = own ? optim::Optimizer(std::make_shared<Plain>(), rate)
                                             : optim::Sgd({.learning_rate = rate});
      mode.function([&] { return optimizer.minimize(square(rate) + square(w), mode.parameters); })(
          {});
      CHECK(mode["w"].item<double>() == 0.5);
    }
}

}  // namespace ebb::tests
