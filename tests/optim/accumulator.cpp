// Gradient accumulation: MEMORY.md, row 15.
#include "ebb/optim/accumulator.h"

#include <random>

#include "ebb/core/base/error.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/loss.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/graph/session.h"
#include "ebb/models/mlp.h"
#include "ebb/optim/adam.h"
#include "ebb/optim/groups.h"
#include "ebb/optim/sgd.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/golden/golden.h"
#include "ebb/tests/optim/number.h"
#include "ebb/tests/optim/rules.h"

namespace ebb::tests {
namespace {

constexpr std::int64_t kSamples = 24;
constexpr std::int64_t kIn = 6;

struct Data {
  Tensor x = Golden("mlp_f64")["x"];  // [24, 12]
  Tensor y = Golden("mlp_f64")["y"];
};

std::vector<optim::Optimizer> optimizers() {
  return {optim::Sgd({.learning_rate = 0.1}),
          optim::Sgd({.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.1}),
          optim::Adam({.learning_rate = optim::cosine(0.01, {.warm_up = 2, .steps = 6})}),
          optim::AdamW({.learning_rate = 0.01}),
          optim::Optimizer(std::make_shared<Momentum>(), 0.1),
          optim::Optimizer(std::make_shared<RmsProp>(), 0.01),
          optim::Optimizer(std::make_shared<OwnAdam>(), 0.01)};
}

// Cuts `total` into random sizes.
std::vector<std::int64_t> cut(std::int64_t total, std::mt19937& random) {
  std::vector<std::int64_t> sizes;
  while (total > 0) {
    sizes.push_back(std::uniform_int_distribution<std::int64_t>(1, total)(random));
    total -= sizes.back();
  }
  return sizes;
}

// A training program in one of the two modes.
struct Program {
  virtual ~Program() = default;
  virtual void whole(const Tensor& x, const Tensor& y) = 0;
  virtual void micro(const Tensor& x, const Tensor& y) = 0;
  virtual std::int64_t flush() = 0;
  virtual Tensor value(const std::string& name) = 0;
};

struct Eager final : Program {
  explicit Eager(const optim::Optimizer& optimizer)
      : optimizer(optimizer), accumulator(optimizer, {.samples = kSamples}) {}
  Tensor loss(const Tensor& x, const Tensor& y) { return softmax_cross_entropy(model(x), y); }
  void whole(const Tensor& x, const Tensor& y) override {
    optimizer.minimize(loss(x, y), parameters);
  }
  void micro(const Tensor& x, const Tensor& y) override {
    accumulator.minimize(loss(x, y), parameters, rows(y));
  }
  std::int64_t flush() override { return accumulator.flush(parameters).item<std::int64_t>(); }
  Tensor value(const std::string& name) override { return parameters[name]; }

  const optim::Optimizer optimizer;
  const optim::Accumulator accumulator;
  const Parameters parameters{Device::cpu(), Seed{3}, DType::f64};
  const models::Mlp model{parameters, {12, kIn, 5}, {.activation = Activation::tanh}};
};

struct Recorded final : Program {
  explicit Recorded(const optim::Optimizer& optimizer) {
    const optim::Accumulator accumulator(optimizer, {.samples = kSamples});
    const Tensor loss = softmax_cross_entropy(model(x), y);
    whole_step = optimizer.minimize(loss, parameters);
    micro_step = accumulator.minimize(loss, parameters, rows(y));
    flush_step = accumulator.flush(parameters);
    session.initialize(parameters);
  }
  void whole(const Tensor& bx, const Tensor& by) override {
    session.run(whole_step, {{x, bx}, {y, by}});
  }
  void micro(const Tensor& bx, const Tensor& by) override {
    session.run(micro_step, {{x, bx}, {y, by}});
  }
  std::int64_t flush() override { return session.run(flush_step).item<std::int64_t>(); }
  Tensor value(const std::string& name) override { return session.value(parameters[name]); }

  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f64, {-1, 12});
  const Tensor y = graph.placeholder("y", DType::i32, {-1});
  const Parameters parameters{graph, Seed{3}, DType::f64};
  const models::Mlp model{parameters, {12, kIn, 5}, {.activation = Activation::tanh}};
  Tensor whole_step, micro_step, flush_step;
  Session session{graph};
};

const std::vector<std::string> kNames = {"0.weight", "0.bias", "1.weight", "1.bias"};

void check_equal(Program& a, Program& b) {
  for (const std::string& name : kNames) {
    CAPTURE(name);
    CHECK(distance(a.value(name), b.value(name)) < 1e-12);
  }
}

void run_micro(Program& program, const Data& data, const std::vector<std::int64_t>& sizes) {
  std::int64_t at = 0;
  for (const std::int64_t size : sizes) {
    program.micro(slice(data.x, at, at + size), slice(data.y, at, at + size));
    at += size;
  }
}

}  // namespace

TEMPLATE_TEST_CASE("micro-batches of any sizes give the whole batch's update", "[optim][row15]",
                   Eager, Recorded) {
  const Data data;
  std::mt19937 random(5);
  for (const optim::Optimizer& optimizer : optimizers()) {
    CAPTURE(optimizer.rule().name());
    TestType whole(optimizer), micro(optimizer);
    for (int update = 0; update < 4; ++update) {
      whole.whole(data.x, data.y);
      run_micro(micro, data, cut(kSamples, random));
      check_equal(micro, whole);
    }
    const std::string rule = optimizer.rule().name();
    CHECK(micro.value(rule + "/samples").template item<std::int64_t>() == 0);
    CHECK(micro.value(rule + "/step").template item<std::int64_t>() == 4);
  }
}

TEMPLATE_TEST_CASE("a partial group waits, and is flushed as the batch it is", "[optim][row15]",
                   Eager, Recorded) {
  const Data data;
  for (const optim::Optimizer& optimizer : optimizers()) {
    TestType whole(optimizer), micro(optimizer);
    whole.whole(data.x, data.y);
    run_micro(micro, data, {20, 4});
    run_micro(micro, data, {7, 3});
    check_equal(micro, whole);
    const std::string samples = std::string(optimizer.rule().name()) + "/samples";
    CHECK(micro.value(samples).template item<std::int64_t>() == 10);
    CHECK(micro.flush() == 10);
    whole.whole(slice(data.x, 0, 10), slice(data.y, 0, 10));
    check_equal(micro, whole);
    CHECK(micro.flush() == 0);
    check_equal(micro, whole);
    whole.whole(data.x, data.y);
    run_micro(micro, data, {1, 23});
    check_equal(micro, whole);
  }
}

TEST_CASE("accumulation is the same in both modes, bit for bit", "[optim][row15]") {
  const Data data;
  for (const optim::Optimizer& optimizer : optimizers()) {
    Eager eager(optimizer);
    Recorded recorded(optimizer);
    for (Program* program : {static_cast<Program*>(&eager), static_cast<Program*>(&recorded)}) {
      run_micro(*program, data, {5, 11, 8});
      run_micro(*program, data, {3});
    }
    for (const std::string& name : kNames) {
      CHECK(bit_equal(eager.value(name), recorded.value(name)));
      const std::string sum = name + '/' + optimizer.rule().name() + ".accumulated";
      CHECK(bit_equal(eager.value(sum), recorded.value(sum)));
    }
  }
}

TEST_CASE("accumulated gradients are counted as gradients, also those that were loaded",
          "[optim][row15]") {
  const auto gradient_bytes = [] {
    return memory::stats(Device::cpu())
        .by_category[static_cast<std::size_t>(memory::Category::gradient)]
        .current;
  };
  // Bytes of two weights, two biases and the count, each rounded up to 512.
  constexpr std::size_t kBytes = 1024 + 512 + 512 + 512 + 512;
  const TemporaryFolder folder;
  const std::size_t before = gradient_bytes();
  const Data data;
  {
    Eager saved{optim::Adam()};
    saved.micro(data.x, data.y);
    CHECK(gradient_bytes() - before == kBytes);
    saved.parameters.save(folder.path("f"));
  }
  CHECK(gradient_bytes() == before);
  Eager loaded{optim::Adam()};
  loaded.parameters.load(folder.path("f"));
  // A file does not record a slot's category; the next micro-step sets it.
  loaded.micro(data.x, data.y);
  CHECK(gradient_bytes() - before == kBytes);
}

TEST_CASE("an accumulator says what it cannot do", "[optim][row15]") {
  CHECK_ERROR(optim::Accumulator(optim::Adam(), {.samples = 0}), Error, "samples = 0 is below 1");
  Eager eager{optim::Adam()};
  CHECK_ERROR(eager.flush(), Error, "nothing has been accumulated");
  const Data data;
  const Tensor f32 = Tensor::full({}, 3);
  CHECK_ERROR(eager.accumulator.minimize(eager.loss(data.x, data.y), eager.parameters, f32),
              ShapeError, "i64 scalar");
  const Tensor three = Tensor::full({}, 3, DType::i64);
  const Tensor losses = eager.loss(data.x, data.y) + Tensor::zeros({2}, DType::f64);
  CHECK_ERROR(eager.accumulator.minimize(losses, eager.parameters, three), Error,
              "[minimize] takes a one-element tensor, a loss, not f64[2] on cpu");
  CHECK(eager.parameters.slots().empty());
}

namespace {

// Parameters a and b. Each has as its gradient the number given to a micro-step.
struct Pair {
  explicit Pair(const Parameters& parameters) : parameters(parameters) {
    for (const char* name : {"a", "b"})
      parameters.scope(name).declare("w", {}, initializers::zeros());
  }
  Tensor loss(const Tensor& c) const { return parameters["a.w"] * c + parameters["b.w"] * c; }
  Tensor micro(const Tensor& c) const { return accumulator.minimize(loss(c), parameters, one); }
  Tensor flush() const { return accumulator.flush(parameters); }
  void freeze(bool frozen) const { parameters.scope("b").set_trainable(!frozen); }

  const Parameters parameters;
  const Tensor one = Tensor::full({}, 1, DType::i64);
  const optim::Accumulator accumulator{optim::Sgd({.learning_rate = 1}), {.samples = 2}};
};

}  // namespace

TEST_CASE("what a frozen parameter has accumulated goes with its group", "[optim][row15]") {
  for (const bool flushed : {false, true}) {
    CAPTURE(flushed);
    {
      const Parameters p(Device::cpu(), Seed{1}, DType::f64);
      const Pair pair(p);
      pair.micro(number(100));
      pair.freeze(true);
      flushed ? pair.flush() : pair.micro(number(100));
      CHECK(p["a.w"].item<double>() == -100);
      CHECK(p["b.w"].item<double>() == 0);
      pair.freeze(false);
      pair.micro(number(1));
      pair.micro(number(1));
      CHECK(p["a.w"].item<double>() == -101);
      CHECK(p["b.w"].item<double>() == -1);
    }
    Graph graph;
    const Tensor c = graph.placeholder("c", DType::f64, {});
    const Parameters p(graph, Seed{1}, DType::f64);
    const Pair pair(p);
    const Tensor both = pair.micro(c);
    pair.freeze(true);
    const Tensor last = flushed ? pair.flush() : pair.micro(c);
    Session session(graph);
    session.initialize(p);
    session.run(both, {{c, number(100)}});
    flushed ? session.run(last) : session.run(last, {{c, number(100)}});
    CHECK(session.value(p["a.w"]).item<double>() == -100);
    CHECK(session.value(p["b.w"]).item<double>() == 0);
    for (int i = 0; i < 2; ++i) session.run(both, {{c, number(1)}});
    CHECK(session.value(p["a.w"]).item<double>() == -101);
    CHECK(session.value(p["b.w"]).item<double>() == -1);
  }
}

TEST_CASE("a scope's accumulator knows what it has accumulated", "[optim][row15]") {
  const Parameters p(Device::cpu(), Seed{1}, DType::f64);
  const Pair pair(p.scope("part"));
  pair.micro(number(100));
  CHECK(p.contains("part.a.w/part.sgd.accumulated"));
  CHECK(pair.flush().item<std::int64_t>() == 1);
  CHECK(p["part.a.w"].item<double>() == -100);
  pair.micro(number(100));
  pair.freeze(true);
  pair.micro(number(100));
  CHECK(p["part.a.w"].item<double>() == -200);
  CHECK(p["part.b.w"].item<double>() == -100);
  pair.freeze(false);
  pair.micro(number(1));
  CHECK(pair.flush().item<std::int64_t>() == 1);
  CHECK(p["part.b.w"].item<double>() == -101);
}

TEST_CASE("a loss that is a parameter itself is given as it was before the step", "[optim]") {
  const Parameters p(Device::cpu(), Seed{1}, DType::f64);
  const Tensor w = p.declare("w", {}, initializers::constant(3));
  const optim::Sgd sgd({.learning_rate = 1});
  const optim::Accumulator accumulator(sgd, {.samples = 1});
  CHECK(accumulator.minimize(w, p, Tensor::full({}, 1, DType::i64)).item<double>() == 3);
  CHECK(optim::minimize(w, {{p, sgd}}).item<double>() == 2);
  CHECK(w.item<double>() == 1);
}

TEST_CASE("what is thawed within a group has what it accumulated of it", "[optim][row15]") {
  const Parameters p(Device::cpu(), Seed{1}, DType::f64);
  const Pair pair(p);
  pair.micro(number(100));
  p.set_trainable(false);
  CHECK_ERROR(pair.flush(), Error, "every parameter with an accumulated gradient is frozen");
  p.set_trainable(true);
  CHECK(pair.flush().item<std::int64_t>() == 1);
  CHECK(p["a.w"].item<double>() == -100);
  CHECK(p["b.w"].item<double>() == -100);
}

TEST_CASE("whichever micro-step completes a group updates all that the group has accumulated") {
  const Tensor one = Tensor::full({}, 1, DType::i64);
  const Parameters p(Device::cpu(), Seed{}, DType::f64);
  const Tensor a = p.declare("a", {1}, initializers::constant(1));
  const Tensor b = p.declare("b", {1}, initializers::constant(1));
  const optim::Accumulator accumulate(optim::Sgd({.learning_rate = 0.1}), {.samples = 2});
  accumulate.minimize(sum(b), p, one);
  accumulate.minimize(sum(a), p, one);
  CHECK(a.item<double>() == Approx(0.95));
  CHECK(b.item<double>() == Approx(0.95));
  accumulate.minimize(sum(a + b), p, one);
  accumulate.minimize(sum(a + b), p, one);
  CHECK(a.item<double>() == Approx(0.85));
  CHECK(b.item<double>() == Approx(0.85));
  accumulate.minimize(sum(b), p, one);
  accumulate.minimize(sum(a), p, one);
  CHECK(b.item<double>() == Approx(0.8));
}

TEST_CASE("micro-steps of one accumulator that depend on other parameters are refused in a graph") {
  Graph graph;
  const Parameters p(graph);
  const Tensor a = p.declare("a", {1}, initializers::constant(1));
  const Tensor b = p.declare("b", {1}, initializers::constant(1));
  const Tensor one = Tensor::full({}, 1, DType::i64);
  const optim::Accumulator accumulate(optim::Sgd({.learning_rate = 0.1}), {.samples = 2});
  accumulate.minimize(sum(b), p, one);
  CHECK_ERROR(accumulate.minimize(sum(a), p, one), Error, "other parameters than an earlier");
  CHECK_NOTHROW(accumulate.minimize(sum(b * 2), p, one));
}

}  // namespace ebb::tests
