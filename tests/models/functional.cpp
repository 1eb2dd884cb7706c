// Models called with substituted weights, trained in part, and described.
#include <sstream>

#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/golden/golden.h"
#include "ebb/tests/in_mode.h"

namespace ebb::tests {
namespace {

constexpr double kRate = 0.1;
using Doubles = std::vector<double>;

struct Task {
  Tensor x, y;
};

// MAML's loss of one task: takes a gradient step on `support` from these weights and returns the
// loss on `query`, with the history of both.
template <class Make>
Tensor adapted_loss(const Parameters& params, const Make& make, const Tensors& weights,
                    const Task& support, const Task& query) {
  const auto before = make(params.with(weights));
  const Tensors slopes =
      gradients(mse(before(support.x), support.y), weights, BackwardOptions{.create_graph = true});
  Tensors fast = weights;
  for (std::size_t i = 0; i < fast.size(); ++i) fast[i] -= kRate * slopes[i];
  const auto after = make(params.with(fast));
  return mse(after(query.x), query.y);
}

Tensor drawn(const Shape& shape) { return normal(shape, {.dtype = DType::f64}); }

std::vector<Doubles> all_values(const std::vector<Parameters::Entry>& entries) {
  std::vector<Doubles> values;
  for (const Parameters::Entry& entry : entries) values.push_back(values_of(entry.tensor));
  return values;
}

}  // namespace

TEST_CASE("the gradient through a step is that of differences, in both modes", "[with]") {
  set_seed(Seed{5});
  struct Normed {
    models::Dense in;
    models::LayerNorm norm;
    models::Dense out;
    explicit Normed(const Parameters& p)
        : in(p.scope("in"), 2, 4), norm(p.scope("norm"), 4), out(p.scope("out"), 4, 1) {}
    Tensor operator()(const Tensor& x) const { return out(tanh(norm(in(x)))); }
  };
  const auto check = [](const auto& make, const Shape& x) {
    const Task support{drawn(x), drawn({3, 1})}, query{drawn(x), drawn({3, 1})};
    const Parameters params(Device::cpu(), Seed{1}, DType::f64);
    make(params);
    const auto loss = [&](const Tensors& weights) {
      return adapted_loss(params, make, weights, support, query);
    };
    Tensors weights;
    for (const Tensor& weight : params.tensors()) weights.push_back(weight.detach());
    const GradientCheck checked = check_gradient(loss, weights, {.tolerance = 1e-6});
    INFO(checked.report);
    CHECK(checked);
    // The parameters themselves get the same gradients as tensors in their place.
    loss(params.tensors()).backward();
    Tensors leaves;
    for (const Tensor& weight : weights) leaves.push_back(weight.clone().with_grad());
    const Tensors found = gradients(loss(leaves), leaves);
    InMode graph(true, DType::f64);
    make(graph.parameters);
    const Tensors in_graph = graph.function({}, [&](const Tensors&) {
      const Tensors symbolic = graph.parameters.tensors();
      return gradients(adapted_loss(graph.parameters, make, symbolic, support, query), symbolic);
    })({});
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(bit_equal(params.tensors()[i].grad(), found[i]));
      CHECK(distance(in_graph[i], found[i]) < 1e-12);
    }
  };
  const models::MlpOptions smooth{.activation = Activation::tanh};
  check([&](const Parameters& p) { return models::Mlp(p, {2, 4, 1}, smooth); }, {3, 2});
  check([](const Parameters& p) { return Normed(p); }, {3, 2});
}

TEST_CASE("a model made of substitutes declares nothing, and shares the state", "[with]") {
  const Parameters params(Device::cpu(), Seed{1});
  const Parameters norm = params.scope("norm");
  const models::BatchNorm original(norm, 2);
  const models::Dense dense(params.scope("dense"), 2, 2);
  const Tensor scale = Tensor::from({2.f, 3.f}), shift = Tensor::from({5.f, 7.f});
  const Parameters other = norm.with({scale, shift});
  CHECK(other.prefix() == "norm.");
  CHECK(other["scale"].impl() == scale.impl());
  CHECK(other["running_mean"].impl() == params["norm.running_mean"].impl());
  const models::BatchNorm substituted(other, 2);
  CHECK(params.entries().size() == 4);
  CHECK(params.states().size() == 2);
  const Tensor x = Tensor::from({{1.f, 2.f}, {3.f, 6.f}});
  CHECK(bit_equal(substituted(x), original(x) * scale + shift));
  substituted(x, Phase::training);
  CHECK(params["norm.running_mean"].to_vector<float>()[1] == Approx(0.4));
  const Parameters named(Device::cpu(), Seed{1}, {.name = "net"});
  const models::Dense of_named(named.scope("dense"), 2, 1);
  CHECK(named.scope("dense").with(named.tensors()).root()["dense.bias"].shape() == Shape{1});
  Graph graph;
  const Parameters symbolic(graph, Seed{1});
  const models::Dense of_graph(symbolic, 2, 1);
  CHECK(symbolic.with(symbolic.tensors()).is_symbolic());
  CHECK_FALSE(params.with(params.tensors()).is_symbolic());
  // Substitutes can be substituted in turn, also by the originals.
  CHECK(other.with(norm.tensors())["shift"].impl() == params["norm.shift"].impl());
}

TEST_CASE("substitutes that do not fit, and what is not for them, are refused", "[with]") {
  const Parameters params(Device::cpu(), Seed{1});
  const models::Dense dense(params.scope("dense"), 2, 3);
  const Tensor weight = Tensor::zeros({2, 3}), bias = Tensor::zeros({3});
  CHECK_ERROR(params.with({weight}), Error, "[with] takes a tensor for each of the 2 parameters");
  CHECK_ERROR(params.with({weight, weight}), ShapeError,
              "f32[2, 3] on cpu cannot stand for \"dense.bias\", which is f32[3]");
  CHECK_ERROR(params.with({weight, cast(bias, DType::f64)}), ShapeError, "cannot stand for");
  CHECK_ERROR(params.with({weight, Tensor()}), ShapeError, "cannot stand for");
  const Device elsewhere = Device::simulated("cpu", std::size_t{1} << 20);
  CHECK_ERROR(params.with({weight, bias.to(elsewhere)}), Error,
              "[with] f32[3] on sim:cpu cannot stand for \"dense.bias\", which is on cpu; move it "
              "with Tensor::to (");
  const Parameters twin(elsewhere);
  const models::Dense same(twin.scope("dense"), 2, 3);
  const Device third = Device::simulated("cpu", std::size_t{1} << 20);
  CHECK_ERROR(twin.with({weight.to(elsewhere), bias.to(third)}), Error,
              "which is on another device of that name");
  CHECK_ERROR(params.with({weight, bias, bias}), Error, "of the 2 parameters, not 3");
  const Parameters other = params.with({weight, bias});
  CHECK_ERROR(models::Dense(other.scope("dens"), 2, 3), Error,
              "there is no \"dens.weight\" to stand in for");
  CHECK_ERROR(models::Dense(other.scope("dense"), 3, 3), ShapeError,
              "\"dense.weight\" is f32[2, 3] on cpu, but f32[3, 3] is declared");
  CHECK_ERROR(other.state("mean", {2}), Error, "there is no \"mean\" to stand in for");

  const Tensors leaves = {weight.with_grad(), bias.with_grad()};
  const Parameters of_leaves = params.with(leaves);
  const models::Dense model(of_leaves.scope("dense"), 2, 3);
  const Tensor loss = sum(model(Tensor::full({1, 2}, 1)));
  CHECK_ERROR(optim::Sgd().minimize(loss, of_leaves), Error, "these parameters are substitutes");
  CHECK_ERROR(optim::Adam().minimize(loss, of_leaves), Error, "these parameters are substitutes");
  CHECK_ERROR(of_leaves.save("never.safetensors"), Error, "these parameters are substitutes");
  CHECK_ERROR(of_leaves.load("never.safetensors"), Error, "these parameters are substitutes");
  CHECK_ERROR(of_leaves.copy_from(params), Error, "these parameters are substitutes");
  CHECK_ERROR(params.copy_from(of_leaves), Error, "these parameters are substitutes");
  CHECK_ERROR(optim::Sgd().apply(leaves, of_leaves), Error, "these parameters are substitutes");
  loss.backward();
  CHECK_ERROR(optim::Sgd().step(of_leaves), Error, "these parameters are substitutes");
  const optim::Accumulator accumulator(optim::Sgd(), {.samples = 1});
  const Tensor again = sum(model(Tensor::full({1, 2}, 1)));
  CHECK_ERROR(accumulator.minimize(again, of_leaves, Tensor::full({}, 1, DType::i64)), Error,
              "these parameters are substitutes");
  CHECK_ERROR(optim::MovingAverage(of_leaves), Error, "to stand in for");
  CHECK(leaves[0].to_vector<float>() == std::vector<float>(6, 0.f));
}

TEST_CASE("what is frozen is not trained, until it is again", "[trainable]") {
  const Tensor x = Tensor::full({4, 2}, 1);
  const auto train = [&](const Parameters& params, const models::Mlp& model, int way) {
    const Tensor loss = mean(square(model(x)));
    if (way == 0) {
      optim::Adam().minimize(loss, params);
    } else if (way == 1) {
      loss.backward();
      optim::Adam().step(params);
      params.zero_grad();
    } else if (way == 2) {
      optim::Adam().apply(gradients(loss, params.tensors()), params);
    } else {
      optim::Accumulator(optim::Adam(), {.samples = 4}).minimize(loss, params, rows(x));
    }
  };
  for (int way = 0; way < 4; ++way) {
    INFO(way);
    const Parameters params(Device::cpu(), Seed{1});
    const models::Mlp model(params, {2, 3, 1}, {.activation = Activation::tanh});
    params.scope("0").set_trainable(false);
    CHECK_FALSE(params.is_trainable(params.entries()[0]));
    CHECK(params.is_trainable(params.entries()[2]));
    const std::vector<Doubles> before = all_values(params.entries());
    train(params, model, way);
    train(params, model, way);
    const std::vector<Doubles> after = all_values(params.entries());
    for (std::size_t i = 0; i < 4; ++i) CHECK((before[i] == after[i]) == (i < 2));
    CHECK_FALSE(params.contains("0.weight/adam.first_moment"));
    params.set_trainable(true);
    train(params, model, way);
    const std::vector<Doubles> last = all_values(params.entries());
    for (std::size_t i = 0; i < 4; ++i) CHECK(after[i] != last[i]);
    params.set_trainable(false);
    if (way < 3) CHECK_THROWS_AS(train(params, model, way), Error);
  }
}

TEST_CASE("a loss that depends on nothing here is no matter of what is frozen", "[trainable]") {
  const Parameters params(Device::cpu(), Seed{1});
  const models::Dense one(params.scope("one"), 2, 1), other(params.scope("other"), 2, 1);
  const Tensor loss = sum(one(Tensor::full({1, 2}, 1)));
  params.scope("other.weight").root().scope("one").set_trainable(false);
  CHECK_ERROR(optim::Sgd().minimize(loss, params.scope("other")), Error,
              "depends on none of the 2 parameters whose names begin with \"other.\"");
  CHECK_ERROR(optim::Sgd().minimize(loss, Parameters(Device::cpu())), Error,
              "there are no parameters");
  CHECK_ERROR(optim::Sgd().minimize(loss, params), Error, "is frozen by set_trainable(false)");
}

TEST_CASE("a graph's step takes no gradient of what is frozen", "[trainable]") {
  const auto plan = [](bool frozen) {
    Graph graph;
    const Tensor x = graph.placeholder("x", DType::f32, {-1, 64});
    const Parameters params(graph, Seed{1});
    const models::Mlp model(params, {64, 256, 256, 1});
    if (frozen) params.scope("0").set_trainable(false);
    const Tensor step = optim::Adam().minimize(mean(square(model(x))), params);
    Session session(graph);
    session.initialize();
    const Tensor before = session.value(params["0.weight"]);
    session.run(step, {{x, Tensor::full({8, 64}, 1)}});
    CHECK(bit_equal(session.value(params["0.weight"]), before) == frozen);
    return graph.plan({step}, {{x, {8, 64}}}, Device::cpu());
  };
  const memory::Plan whole = plan(false), part = plan(true);
  CHECK(part.nodes < whole.nodes);
  // The frozen part saves two moments of 64 x 256 and 256 f32, each in blocks of 512 bytes.
  CHECK(whole.optimizer_state_bytes - part.optimizer_state_bytes == 2 * (65536 + 1024));
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 2});
  const Parameters params(graph, Seed{1});
  const models::Dense model(params, 2, 1);
  params.set_trainable(false);
  CHECK_ERROR(optim::Adam().minimize(mean(model(x)), params), Error,
              "depends on is frozen by set_trainable(false)");
}

TEST_CASE("a summary lists parameters and state, and adds up", "[summary]") {
  const Parameters params(Device::cpu(), Seed{1});
  const models::Dense dense(params.scope("dense"), 100, 20);
  const models::BatchNorm norm(params.scope("norm"), 20);
  params.scope("norm").set_trainable(false);
  const std::string expected =
      "name                   shape      dtype  trained  bytes\n"
      "dense.weight           [100, 20]  f32    yes      8,000\n"
      "dense.bias             [20]       f32    yes         80\n"
      "norm.scale             [20]       f32    frozen      80\n"
      "norm.shift             [20]       f32    frozen      80\n"
      "norm.running_mean      [20]       f32    state       80\n"
      "norm.running_variance  [20]       f32    state       80\n"
      "all: 2,100 in 8,400 bytes\n"
      "trained: 2,020 in 8,080 bytes\n";
  CHECK(summary(params) == expected);
  std::ostringstream printed;
  printed << params << '\n';
  CHECK(printed.str() == expected);
  CHECK(summary(params.with(params.tensors())) == expected);
  Graph graph;
  const Parameters symbolic(graph, Seed{1});
  const models::Dense same(symbolic.scope("dense"), 100, 20);
  const models::BatchNorm norm_too(symbolic.scope("norm"), 20);
  symbolic.scope("norm").set_trainable(false);
  CHECK(summary(symbolic) == expected);
  optim::Adam().minimize(mean(dense(Tensor::full({1, 100}, 1))), params);
  CHECK(summary(params.scope("dense"))
            .ends_with("trained: 2,020 in 8,080 bytes\n"
                       "slots of optimizers: 4,040 in 16,160 bytes\n"));
  const Parameters halves(Device::cpu(), Seed{1}, DType::f16);
  halves.declare("w", {3, 5}, initializers::zeros());
  halves.state("count", {}, initializers::zeros(), DType::i64);
  CHECK(summary(halves) ==
        "name   shape   dtype  trained  bytes\n"
        "w      [3, 5]  f16    yes         30\n"
        "count  []      i64    state        8\n"
        "all: 16 in 38 bytes\ntrained: 15 in 30 bytes\n");
  CHECK(summary(Parameters(Device::cpu())) ==
        "name  shape  dtype  trained  bytes\nall: 0 in 0 bytes\ntrained: 0 in 0 bytes\n");
}

}  // namespace ebb::tests
