// A step, whatever the rule.
#include <thread>

#include "ebb/core/tensor/node.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/ebb.h"
#include "ebb/optim/detail/update_rule.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/host_kernel.h"
#include "ebb/tests/eager/bytes.h"
#include "ebb/tests/line.h"
#include "ebb/tests/optim/train.h"

namespace ebb::tests {
namespace {

Tensor declare(const Parameters& parameters, std::string_view name) {
  return parameters.declare(name, {4}, initializers::uniform(-1, 1));
}

}  // namespace

TEST_CASE("step updates the parameters that have a gradient", "[optim]") {
  const Parameters parameters(Device::cpu(), Seed{1});
  const Tensor a = declare(parameters, "a"), b = declare(parameters, "b");
  const optim::Sgd sgd;
  CHECK_ERROR(sgd.step(parameters), Error, "no parameter has a gradient");
  CHECK(parameters.slots().empty());
  const Tensor b_before = b.clone();
  sum(a).backward();
  sgd.step(parameters);
  CHECK(bit_equal(b, b_before));
  CHECK(a.grad().defined());
  CHECK(parameters["sgd/step"].item<std::int64_t>() == 1);
}

TEST_CASE("a step may be the last thing that a thread does", "[optim][host]") {
  const Parameters parameters(Device::cpu(), Seed{1});
  sum(declare(parameters, "a")).backward();
  struct Last {
    ~Last() {
      for (int i = 0; i < 3; ++i) optim::Sgd().step(*of);
    }
    const Parameters* of;
  };
  std::thread([&] {
    thread_local const Last last{&parameters};  // ends after what the first step makes
    optim::Sgd().step(*last.of);
  }).join();
  CHECK(parameters["sgd/step"].item<std::int64_t>() == 4);
}

TEST_CASE("a rule keeps its slots and a count, and each step takes the rate's scalar beside them",
          "[optim][memory]") {
  struct Kept {
    optim::Optimizer optimizer;
    std::size_t slots;
  };
  const std::vector<Kept> all = {
      {optim::Sgd(), 0},
      {optim::Sgd({.momentum = 0.9, .nesterov = true, .clip = {.value = 1}}), 1},
      {optim::Adam(), 2},
      {optim::AdamW({.decay_only = optim::is_matrix}), 2},
      {optim::Rmsprop(), 1},
      {optim::Rmsprop({.momentum = 0.9}), 2},
      {optim::Rmsprop({.centered = true}), 2},
      {optim::Rmsprop({.momentum = 0.9, .centered = true}), 3},
      {optim::Adagrad({.learning_rate = optim::linear_decay(0.1)}), 1},
      {optim::Lion(), 1}};
  constexpr std::size_t kFloats = 4 * 4096, kScalar = 512;
  const auto state = [] { return Bytes().of(memory::Category::optimizer_state); };
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const auto& [optimizer, slots] : all) {
      CAPTURE(optimizer.rule().name(), slots, name(dtype));
      const Parameters p(Device::cpu(), Seed{1}, dtype);
      p.declare("x", {4096}, initializers::zeros());
      const Tensor gradient = Tensor::full({4096}, 1, dtype);
      const std::size_t before = state(), kept = slots * kFloats + kScalar;
      const Bytes steps;
      for (int i = 0; i < 3; ++i) {
        optimizer.apply({gradient}, p);
        CHECK(steps.now() == kept);
        CHECK(state() - before == kept);
        CHECK(steps.peak() == kept + kScalar);
      }
    }
}

TEST_CASE("the learning rate can be a tensor that the user assigns", "[optim]") {
  const bool as_graph = GENERATE(false, true);
  const Tensor rate = Tensor::full({}, 0.5, DType::f64);
  InMode mode(as_graph);
  const Tensor a = mode.parameters.declare("a", {}, initializers::constant(1));
  const auto step = mode.function(
      [&] { return optim::Sgd({.learning_rate = rate}).minimize(a * 1, mode.parameters); });
  step({});
  CHECK(mode["a"].item<float>() == 0.5f);
  assign(rate, 0.125);
  step({});
  CHECK(mode["a"].item<float>() == 0.375f);
  CHECK_ERROR(optim::Sgd({.learning_rate = Tensor::full({}, 1)}), Error, "takes a tensor of f64[]");
}

TEST_CASE("an optimizer says what it cannot do", "[optim]") {
  Graph graph;
  const Parameters parameters(Device::cpu()), symbolic(graph);
  const Tensor a = declare(parameters, "a"), s = declare(symbolic, "s");
  const optim::Adam adam;
  CHECK_ERROR(adam.minimize(sum(s), parameters), Error, "the parameters are concrete");
  CHECK_ERROR(adam.minimize(sum(a), symbolic), Error, "belong to a graph");
  CHECK_ERROR(adam.minimize(sum(Tensor::zeros({2})), parameters), Error,
              "depends on none of the 1");
  CHECK_ERROR(adam.minimize(sum(a), parameters.scope("haed")), Error,
              "[minimize] there are no parameters whose names begin with \"haed.\"; declare");
  CHECK_ERROR(adam.minimize(sum(s), symbolic.scope("haed")), Error, "there are no parameters");
  CHECK_ERROR(adam.minimize(Tensor(), parameters), Error, "holds nothing");
  CHECK_ERROR(adam.minimize(square(a), parameters), Error, "[minimize] takes a one-element");
  CHECK_ERROR(adam.step(symbolic), Error, "use minimize()");
  CHECK(parameters.slots().empty());
  const Tensor loss = sum(square(a));
  adam.minimize(loss, parameters);
  CHECK_ERROR(adam.minimize(loss, parameters), Error, "differentiated already");
}

TEST_CASE("options that are refused are refused by name and by the caller's line", "[optim]") {
  CHECK_ERROR_HERE(optim::Adam({.beta1 = 1}), Error, "[adam] beta1 = 1");
  CHECK_ERROR_HERE(optim::AdamW({.weight_decay = -1}), Error, "[adamw] weight_decay = -1");
  CHECK_ERROR_HERE(optim::Sgd({.momentum = -0.5}), Error, "[sgd] momentum");
  CHECK_ERROR_HERE(optim::Sgd({.nesterov = true}), Error, "nesterov needs a momentum");
  CHECK_ERROR_HERE(optim::Rmsprop({.decay = 1}), Error, "[rmsprop] decay");
  CHECK_ERROR_HERE(optim::Adagrad({.epsilon = -1}), Error, "[adagrad] epsilon");
  CHECK_ERROR_HERE(optim::Lion({.beta2 = -1}), Error, "[lion] beta2");
  CHECK_ERROR_HERE(optim::Adam({.learning_rate = -1}), Error, "[learning rate]");
  CHECK_ERROR_HERE(optim::Adam({.learning_rate = NAN}), Error, "[learning rate]");
  CHECK_ERROR_HERE(optim::Adam({.learning_rate = Tensor::zeros({})}), Error, "f64[]");
  CHECK_ERROR_HERE(optim::Adam({.learning_rate = Tensor::zeros({1}, DType::f64)}), Error, "f64[]");
  CHECK_ERROR_HERE(optim::Adam({.clip = {.value = 1, .norm = 1}}), Error, "[clip] takes one of");
  CHECK_ERROR_HERE(optim::Adam({.name = "a.b"}), Error, "a.b");
  CHECK_ERROR_HERE(optim::Adam({.state_dtype = DType::i64}), Error, "state_dtype = i64");
  CHECK_ERROR_HERE(optim::linear_decay(1, {.warm_up = 5, .steps = 5}), Error,
                   "[linear_decay] takes 0 <= warm_up < steps, not warm_up = 5, steps = 5");
  CHECK_ERROR_HERE(optim::cosine(1, {.warm_up = 5, .steps = 5}), Error, "0 <= warm_up < steps");
  CHECK_ERROR_HERE(optim::cosine(1, {.steps = 5, .end = -1}), Error, "[cosine] end = -1");
  CHECK_ERROR_HERE(optim::polynomial_decay(1, 0), Error, "[polynomial_decay] power = 0");
  CHECK_ERROR_HERE(optim::linear_decay(-1), Error, "[linear_decay] peak = -1");
  CHECK_ERROR_HERE(optim::step_decay(1, {.factor = 0}), Error, "[step_decay] factor = 0");
  CHECK_ERROR_HERE(optim::step_decay(1, {.every = 0}), Error, "[step_decay] every = 0");
  CHECK_ERROR_HERE(optim::exponential_decay(1, {.every = 0}), Error,
                   "[exponential_decay] every = 0 is below 1");
  CHECK_ERROR_HERE(optim::exponential_decay(NAN), Error, "[exponential_decay] base = nan");
  CHECK_ERROR_HERE(optim::linear_warm_up(1, -1), Error, "[linear_warm_up] steps = -1 is below 0");
  CHECK_ERROR_HERE(optim::Accumulator(optim::Adam(), {.samples = 0}), Error,
                   "samples = 0 is below 1");
  Parameters parameters(Device::cpu());
  parameters.declare("a", {2}, initializers::zeros());
  CHECK_ERROR_HERE(optim::MovingAverage(parameters, {.decay = 1}), Error,
                   "[moving_average] decay = 1.000000 is outside [0, 1)");
}

TEST_CASE("a graph's step of many parameters is one node, and happens where that is fetched alone",
          "[optim]") {
  constexpr int kCount = 100;
  Graph graph;
  const Parameters parameters(graph, Seed{1});
  Tensor loss;
  for (int i = 0; i < kCount; ++i) {
    const Tensor part = sum(square(declare(parameters, "w" + std::to_string(i))));
    loss = loss.defined() ? loss + part : part;
  }
  const Tensor train = optim::Sgd({.learning_rate = 0.5}).minimize(loss, parameters);
  const Node& node = *train.impl()->node;
  CHECK(node.op == &with_updates_op);
  CHECK(node.inputs[0].producer.get() == loss.impl()->node.get());
  CHECK(node.inputs.size() == 2 + kCount);  // the loss, the count of steps, the parameters
  Session session(graph);
  session.initialize(parameters);
  const Tensor before = session.run(loss);
  CHECK(bit_equal(session.run(loss), before));
  CHECK(session.value(parameters["sgd/step"]).item<std::int64_t>() == 0);
  CHECK(bit_equal(session.run(train), before));
  CHECK(session.value(parameters["sgd/step"]).item<std::int64_t>() == 1);
  for (const Parameters::Entry& entry : parameters.entries())  // w - 0.5 * 2 w
    CHECK(session.value(entry.tensor).to_vector<float>() == std::vector<float>(4));
}

namespace {

// Subtracts the gradient. Refuses its third call.
int given = 0;
constexpr auto run_third_fails = [](const KernelContext& c) -> Status {
  if (++given == 3) return Status::refuse("is tired");
  for (std::int64_t i = 0; i < c.inputs[0].elements(); ++i)
    c.inputs[0].as<float>()[i] -= c.inputs[1].as<float>()[i];
  return {};
};
const OpDef third_fails_op{.name = "third_fails",
                           .infer = [](Inference& i) { i.output(DType::f32, i.inputs[0].shape); },
                           .updates = bit(0),
                           .stateful = true,
                           .cpu = {run_third_fails},
                           .cuda = tests::copied<run_third_fails>};

class ThirdFails final : public optim::FusedRule {
 public:
  ThirdFails() : FusedRule(std::nullopt) {}
  const char* name() const noexcept override { return "third_fails"; }
  std::span<const char* const> slots() const noexcept override { return {}; }
  Tensor update_in_place(const optim::FusedInput& input) const override {
    return apply_one(third_fails_op, {input.parameter, input.gradient}, {}, CallSite::here());
  }
};

}  // namespace

TEST_CASE(
    "a step whose third kernel refuses says so, and nothing that it wrote is read as a whole") {
  const Parameters p(Device::cpu());
  std::vector<Tensor> w;
  for (const char* name : {"a", "b", "c", "d"})
    w.push_back(p.declare(name, {2}, initializers::constant(1)));
  const optim::Optimizer optimizer(std::make_shared<ThirdFails>(), 1.0);
  const auto loss = [&] { return sum(w[0] + w[1] + w[2] + w[3]); };
  given = 0;
  CHECK_THROWS_WITH(optimizer.minimize(loss(), p), Catch::Contains("is tired"));
  CHECK_THROWS_AS(w[0].to_vector<float>(), Error);
  CHECK_THROWS_AS(w[1].to_vector<float>(), Error);
  CHECK(w[2].to_vector<float>() == std::vector<float>{1, 1});
  CHECK(w[3].to_vector<float>() == std::vector<float>{1, 1});
  CHECK_THROWS_AS(optimizer.minimize(loss(), p), Error);
  const Parameters fresh(Device::cpu());
  for (const char* name : {"a", "b", "c", "d"}) fresh.declare(name, {2}, initializers::constant(1));
  p.copy_from(fresh);
  CHECK_NOTHROW(optimizer.minimize(loss(), p));  // the failed first step left no slots
  given = 0;
  CHECK_THROWS_WITH(optimizer.minimize(loss(), p), Catch::Contains("is tired"));
  p.copy_from(fresh);
  CHECK_THROWS_AS(optimizer.minimize(loss(), p), Error);  // the failed step tore its count
}

}  // namespace ebb::tests
