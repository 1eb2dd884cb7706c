// Steps that once gave something else, as they were met.
#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/update.h"
#include "ebb/graph/session.h"
#include "ebb/optim/accumulator.h"
#include "ebb/optim/sgd.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

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

struct Nameless final : optim::Rule {
  const char* name() const noexcept override { return nullptr; }
  std::span<const char* const> slots() const noexcept override { return {}; }
  optim::RuleResult update(const optim::RuleInput& in) const override { return {in.parameter, {}}; }
};

}  // namespace

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

TEST_CASE("a rule that writes in place is refused in both modes") {
  for (const bool as_graph : {false, true}) {
    Graph graph;
    const Parameters p = as_graph ? Parameters(graph) : Parameters(Device::cpu());
    const Tensor w = p.declare("w", {1}, initializers::constant(1));
    const optim::Optimizer optimizer(std::make_shared<WritesItself>(), 0.1);
    CHECK_ERROR(optimizer.minimize(sum(square(w)), p), Error, "has written to the parameter 'w'");
  }
  CHECK_ERROR(optim::Optimizer(std::make_shared<Nameless>(), 0.1), Error, "needs a name");
}

TEST_CASE("a learning rate that is one of the parameters is read before the step writes it") {
  for (const bool own : {false, true})
    for (const bool as_graph : {false, true}) {
      Graph graph;
      const Parameters p =
          as_graph ? Parameters(graph, {}, DType::f64) : Parameters(Device::cpu(), {}, DType::f64);
      const Tensor rate = p.declare("rate", {}, initializers::constant(0.25));
      const Tensor w = p.declare("w", {}, initializers::constant(1));
      const optim::Optimizer optimizer = own ? optim::Optimizer(std::make_shared<Plain>(), rate)
                                             : optim::Sgd({.learning_rate = rate});
      const Tensor train = optimizer.minimize(square(rate) + square(w), p);
      if (!as_graph) {
        CHECK(w.item<double>() == 0.5);
        continue;
      }
      Session session(graph);
      session.initialize(p);
      session.run(train);
      CHECK(session.value(w).item<double>() == 0.5);
    }
}

}  // namespace ebb::tests
