// Reports name the layer of each block: the scope of Parameters that its model was made with.
#include <set>

#include "ebb/core/device/runtime.h"
#include "ebb/ebb.h"
#include "ebb/tests/line.h"

namespace ebb::tests {
namespace {

using namespace literals;

using Names = std::set<std::string>;

std::string name_of(const memory::Tag& tag) {
  return std::string(tag.operator_name) + ' ' + tag.layer;
}

// "operator layer" of everything that a device holds.
Names held(const Device& device) {
  Names names;
  for (const memory::Holder& holder : memory::holders(device, memory::kNoLimit))
    names.insert(name_of(holder.tag));
  return names;
}

Names steps(const memory::Plan& plan) {
  Names names;
  for (const auto& step : plan.details->steps) names.insert(name_of(step.tag));
  return names;
}

// Those of `wanted` that are not in `names`, for each layer of the network below.
Names missing(const Names& names, const std::vector<std::string>& wanted) {
  Names missing;
  for (const std::string& each : wanted)
    for (const char* layer : {" net.0", " net.1", " net.2"})
      if (!names.contains(each + layer)) missing.insert(each + layer);
  return missing;
}

struct Network {
  explicit Network(const Parameters& given)
      : parameters(given),
        mlp(given.scope("net"), {8, 16, 16, 4}, {.activation = Activation::gelu}) {}
  Tensor loss(const Tensor& x) const { return mean(square(mlp(x))); }
  Tensor step(const Tensor& x) const { return optim::Adam(0.1).minimize(loss(x), parameters); }
  Parameters parameters;
  models::Mlp mlp;
};

// A layer of a user's own, without a line that names it.
struct Own {
  explicit Own(const Parameters& p)
      : hidden(p.scope("hidden"), 8, 8),
        out(p.scope("out").declare("w", {8, 4}, initializers::constant(1))) {}
  Tensor operator()(const Tensor& x) const { return matmul(hidden(x), out); }
  models::Dense hidden;
  Tensor out;
};

}  // namespace

TEST_CASE("blocks of an eager training say their layer, forward, backward and in the optimizer",
          "[models]") {
  const Device device = Device::simulated("cpu", 1_GiB);
  const Network network{Parameters(device)};
  const Tensor x = Tensor::zeros({32, 8}, DType::f32, device);
  const Tensor loss = network.loss(x);
  CHECK(missing(held(device), {"parameter", "dense"}) == Names());
  Names predicted;
  const auto program = [](const Device& here) {
    Network{Parameters(here)}.loss(Tensor::zeros({32, 8}, DType::f32, here));
  };
  for (const memory::Holder& holder : memory::predict(device, program).holders)
    predicted.insert(name_of(holder.tag));
  CHECK(missing(predicted, {"parameter"}) == Names());
  loss.backward();
  optim::Adam(0.1).step(network.parameters);
  CHECK(missing(held(device), {"parameter", "dense_backward", "slot"}) == Names());
}

TEST_CASE("plans of graphs and of compiled steps say layers, and sessions hold by layer",
          "[models]") {
  const Device device = Device::simulated("cpu", 1_GiB);
  Graph graph;
  const Network network{Parameters(graph)};
  const Tensor x = graph.placeholder("x", DType::f32, {32, 8}), step = network.step(x);
  const memory::Plan plan = graph.plan({step}, {{x, {32, 8}}}, device, {.details = true});
  CHECK(missing(steps(plan), {"dense", "dense_backward", "adam_update"}) == Names());
  CHECK(steps(plan).contains("gelu net.1"));
  CHECK(plan.describe().find("(layer net.1, ") != std::string::npos);
  Session session(graph, {.device = device});
  session.initialize();
  session.run(step, {{x, Tensor::zeros({32, 8})}});
  CHECK(missing(held(device), {"parameter", "optimizer_state"}) == Names());

  const Network eager{Parameters(device)};
  const auto compiled = compile([&](const Tensor& given) { return eager.step(given); });
  Names arena;
  const Tensor values = Tensor::zeros({32, 8}, DType::f32, device);
  for (const memory::Holder& holder : compiled.plan(values).arena_holders)
    arena.insert(name_of(holder.tag));
  for (const char* each : {"dense net.0", "dense net.1", "gelu net.1"}) CHECK(arena.contains(each));
  compiled(values);
  compile([&](const Tensor& given) { eager.loss(given).backward(); })(values);
  CHECK(missing(held(device), {"slot", "fetch"}) == Names());
}

TEST_CASE("each model of a graph names the innermost scope, forward and backward", "[models]") {
  struct Row {
    std::function<Tensor(const Parameters&, const Tensor&)> call;
    Shape x;
    Names layers;
  };
  const Row rows[] = {
      {[](auto& p, auto& x) { return models::MultiHeadAttention(p, 8, {.heads = 2})(x); },
       {2, 4, 8},
       {"a", "a.query", "a.key", "a.value", "a.output"}},
      {[](auto& p, auto& x) {
         const models::MultiHeadAttention attention(p, 8, {.heads = 2, .fused_qkv = true});
         const Tensor cache = p.state("cache", {2, 2, 4, 4});
         return attention(x, {cache, cache}, Tensor::from(std::int64_t{0})).output;
       },
       {2, 4, 8},
       {"a", "a.qkv", "a.output"}},
      {[](auto& p, auto& x) {
         return models::Lstm(p, 8, {.hidden = 4, .bidirectional = true})(x).sequence;
       },
       {2, 4, 8},
       {"a"}},
      {[](auto& p, auto& x) {
         return models::Gru(p, 8, {.hidden = 4, .layers = 2, .bidirectional = true})(x).sequence;
       },
       {2, 4, 8},
       {"a"}},
      {[](auto& p, auto& x) {
         return models::Gru(p, 8, {.hidden = 4, .recurrent_bias = true})(x).sequence;
       },
       {2, 4, 8},
       {"a"}},
      {[](auto& p, auto& x) {
         return models::Conv2d(p, 3, 4, {.activation = Activation::silu})(x);
       },
       {2, 3, 8, 8},
       {"a"}},
      {[](auto& p, auto& x) { return models::BatchNorm(p, 3)(x, Phase::training); },
       {2, 3, 8, 8},
       {"a"}},
      {[](auto& p, auto& x) { return models::GroupNorm(p, 3, 3)(x); }, {2, 3, 8, 8}, {"a"}},
      {[](auto& p, auto& x) { return models::RmsNorm(p, {8})(x); }, {2, 8}, {"a"}},
      {[](auto& p, auto& x) { return models::Forecaster(p, 8, {.hidden = 4})(x); },
       {2, 4, 8},
       {"a", "a.lstm", "a.head"}},
      {[](auto& p, auto& x) {
         return models::SequenceClassifier(p, 8, 3, {.lstm = {.hidden = 4}})(x);
       },
       {2, 4, 8},
       {"a", "a.lstm", "a.head"}},
      {[](auto& p, auto& x) {
         return models::Conv2d(p, 3, 4, {.activation = Activation::gelu})(x);
       },
       {2, 3, 5, 5},
       {"a"}},
      {[](auto& p, auto& x) { return Own(p)(x); }, {2, 8}, {"a.hidden", "a.out"}}};
  const Device device = Device::simulated("cpu", 1_GiB);
  const bool folds = device.runtime().profile().kernels == memory::Kernels::cpu;
  for (const Row& row : rows) {
    Graph graph;
    const Parameters parameters(graph);
    const Tensor x = graph.placeholder("x", DType::f32, row.x),
                 y = row.call(parameters.scope("a"), x),
                 dy = graph.placeholder("dy", DType::f32, y.shape());
    Tensors fetches = gradients(sum(y * dy), parameters.tensors());
    fetches.push_back(y);
    const memory::Plan plan =
        graph.plan(fetches, {{x, row.x}, {dy, y.shape()}}, device, {.details = true});
    Names layers, of_loss;
    for (const auto& step : plan.details->steps)
      *step.tag.layer ? layers.insert(step.tag.layer) : of_loss.insert(step.tag.operator_name);
    CHECK(of_loss ==
          (folds ? Names{"full", "multiply"} : Names{"broadcast_like", "fill_like", "multiply"}));
    CAPTURE(row.x.to_string());
    CHECK(layers == row.layers);
  }
}

TEST_CASE("gradients that reverse mode adds up or copies say the parameter's layer", "[models]") {
  const Device device = Device::simulated("cpu", 1_GiB);
  const auto product = [](const Parameters& p) {
    const Tensor a = p.scope("a").declare("w", {8, 8}, initializers::constant(1));
    return sum(matmul(a * 2, a));
  };
  Graph graph;
  const Parameters symbolic(graph), eager(device);
  const Tensor y = product(symbolic);
  const Tensors fetches = gradients(y, symbolic.tensors());
  CHECK(steps(graph.plan(fetches, {}, device, {.details = true})).contains("add a"));
  const Tensor b = eager.scope("b").declare("w", {8}, initializers::constant(1)),
               c = eager.scope("c").declare("w", {8}, initializers::constant(1));
  const Tensor of_two = b + c;
  sum(of_two + round(c)).backward();
  const Names names = held(device);
  CHECK((names.contains("copy b") || names.contains("copy c")));
  CHECK(names.contains("add "));  // of two layers
  const Tensor a = eager.scope("a").declare("w", {8, 8}, initializers::constant(1));
  const auto compiled =
      compile([&](const Tensor& x) { sum(matmul(a * x, a)).backward(); }, {.details = true});
  CHECK(steps(compiled.plan(Tensor::full({}, 2, DType::f32, device))).contains("add a"));
  CHECK(Parameters(device).scope(std::string(1 << 20, 'x')).layer() == 0);  // no room for its name
}

TEST_CASE("an error of shapes and one of memory name the layer", "[models]") {
  const auto in_layer = [](const char* layer, int number) {
    return "(layer " + std::string(layer) + ", " + line(number).substr(1);
  };
  const Device device = Device::simulated("cpu", 1_GiB);
  Graph graph;
  for (const Parameters& parameters : {Parameters(device), Parameters(graph)}) {
    const Own own(parameters.scope("a"));
    const bool is_eager = !parameters.is_symbolic();
    const Tensor x = is_eager ? Tensor::zeros({2, 5}, DType::f32, device)
                              : graph.placeholder("x", DType::f32, {2, 5});
    CHECK_ERROR(own.hidden(x), ShapeError, in_layer("a.hidden", __LINE__));
    CHECK_ERROR(matmul(x, own.out), ShapeError, in_layer("a.out", __LINE__));
  }
  const Own own{Parameters(device)};
  const Tensor x = Tensor::zeros({1 << 20, 8}, DType::f32, device);
  memory::set_limit(device, 96_MiB);
  const Tensor y = own.hidden(x);
  // The folders of a long path are left out.
  const std::string place = "layers.cpp:" + std::to_string(__LINE__ - 2) + ")";
  CHECK_ERROR(x + y, OutOfMemory, "in 1 block by dense (layer hidden, ");
  CHECK_ERROR(x + y, OutOfMemory, place);
}

}  // namespace ebb::tests
