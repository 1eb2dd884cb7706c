// Chains of pointwise operators that run as one step.
#include <cstring>
#include <functional>
#include <random>

#include "ebb/core/device/runtime.h"
#include "ebb/ebb.h"
#include "ebb/tests/bytes.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/line.h"

namespace ebb::tests {
namespace {

const Shape kShape = {64, 80};

// What a program of random pointwise operators makes of x, y [64, 80], a row [80], a column [64, 1]
// and a number [1]: some of its values, sums of them and gradients.
Tensors random_program(std::mt19937& random, const Tensors& in) {
  const auto below = [&](std::size_t n) { return random() % n; };
  std::vector<Tensor> made = {in[0], in[1]};
  const auto any = [&] {
    return made[made.size() - 1 - below(std::min<std::size_t>(made.size(), 4))];
  };
  const auto other = [&] { return below(3) == 0 ? in[2 + below(3)] : any(); };
  using Unary = Tensor (*)(const Operand&);
  constexpr Unary kUnary[] = {tanh, sigmoid, square, relu, exp, abs, silu, negate, floor, sin};
  for (std::size_t i = 0, count = 3 + below(14); i < count; ++i) {
    const Tensor a = any();
    switch (below(9)) {
      case 0:
        made.push_back(a * other());
        break;
      case 1:
        made.push_back(other() - a);
        break;
      case 2:
        made.push_back(maximum(a, other()));
        break;
      case 3:
        made.push_back(where(a > other(), a, other() * 0.5));
        break;
      case 4:
        made.push_back(a / (2 + abs(other())));
        break;
      case 5:
        made.push_back(cast(cast(a, below(2) ? DType::f16 : DType::f64) * 1.5, DType::f32));
        break;
      case 6:
        made.push_back(reshape(reshape(a, {kShape.elements()}) + 1, kShape));
        break;
      default:
        made.push_back(tanh(kUnary[below(std::size(kUnary))](a)));
    }
  }
  Tensors fetches = {made.back(), any(), mean(made.back()), sum(any() * 3, {.axes = {1}})};
  if (below(2)) {
    const Tensors gradient = gradients(sum(square(made.back())), {in[0], in[2], in[3]});
    for (const Tensor& one : gradient)
      if (one.defined()) fetches.push_back(one);
  }
  return fetches;
}

Tensor waves(const Shape& shape, double step, const Device& device) {
  const Tensor numbers =
      arange(static_cast<double>(shape.elements()), {.dtype = DType::f32, .device = device});
  return reshape(sin(numbers * step) * 3, shape);
}

}  // namespace

TEST_CASE("fused programs compute what they do unfused, bit for bit, in no more memory") {
  const Device device = own_test_device();
  const Shape shapes[] = {kShape, kShape, {80}, {64, 1}, {1}};
  std::size_t fused = 0;
  const unsigned programs = device.runtime().is_host() ? 60 : 12;  // a compiler takes its time
  for (unsigned seed = 0; seed < programs; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    Graph graph;
    Tensors in;
    Feeds feeds;
    FedShapes fed;
    for (const Shape& shape : shapes) {
      in.push_back(graph.placeholder("in" + std::to_string(in.size()), DType::f32, shape));
      feeds.push_back({in[in.size() - 1], waves(shape, 0.7 + double(in.size()), device)});
      fed.push_back({in[in.size() - 1], shape});
    }
    const Tensors fetches = random_program(random, in);
    Passes unfused;
    unfused.fuse = false;
    Session one(graph, {.device = device}), other(graph, {.device = device, .passes = unfused});
    const Tensors a = one.run(fetches, feeds), b = other.run(fetches, feeds);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const auto x = a[i].to_vector<float>(), y = b[i].to_vector<float>();
      CHECK(std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0);
    }
    CHECK(one.stats().allocated.peak <= other.stats().allocated.peak);
    fused += graph.plan(fetches, fed, device, {.details = true}).describe().find("= fused ") !=
             std::string::npos;
  }
  CHECK(fused > programs * 5 / 6);
}

TEST_CASE("a chain is told with its operators, and needs no memory for values on the way") {
  const Device device = own_test_device();
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 64}), y = tanh(x * 2 + 1),
               loss = mean(square(x - 1));
  const FedShapes fed = {{x, {1000, 64}}};
  const auto arena = [&](const Tensor& fetch) {
    return graph.plan({fetch}, fed, device).arena_bytes;
  };
  const memory::Plan plan = graph.plan({y, loss}, fed, device, {.details = true});
  CHECK(plan.nodes == 6);
  CHECK(arena(y) == arena(x * 2));
  CHECK(plan.describe().find(" = fused multiply, add, tanh(") != std::string::npos);
  CHECK(arena(loss) <= 1024 + (device.runtime().is_host() ? 0 : 256'000));  // the input is there
  CHECK(plan.describe().find(" = fused subtract, square, mean(") != std::string::npos);
}

TEST_CASE("a sum behind a chain has its own bits, for any number of results and of terms") {
  const Device device = own_test_device();
  const struct {
    Shape shape;
    Axes axes;
  } rows[] = {
      {{4099}, {}},           // a block, whose packs leave some
      {{100, 1027}, {0, 1}},  // parts of one result
      {{3, 20'001}, {1}},     // of several, without packs
      {{2, 30'000}, {1}},     // with packs
      {{7, 1200}, {1}},       // a block for each result
      {{60, 8, 12}, {1, 2}},  // a warp
      {{1500, 6}, {1}},       // a thread or two
  };
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t begin : {0, 1})  // aligned to packs or not
      for (const auto& [shape, axes] : rows) {
        INFO(name(dtype) << ", from element " << begin << " on, " << shape.to_string());
        const std::int64_t count = shape.elements(), width = shape.dim(-1);
        Graph graph;
        const Tensor x = graph.placeholder("x", dtype, {count + begin}),
                     row = cast(waves({width}, 0.7, device), dtype),
                     y = tanh(reshape(slice(x, begin, count + begin), shape) * row) + 0.5;
        const Feeds fed = {{x, cast(waves({count + begin}, 0.3, device), dtype)}};
        const FedShapes shapes = {{x, {count + begin}}};
        Session session(graph, {.device = device}),
            alone(graph, {.device = device, .passes = false});
        for (const Tensor& result : {sum(y, {.axes = axes}), mean(y, {.axes = axes})}) {
          CHECK(bytes_of(session.run(result, fed)) == bytes_of(alone.run(result, fed)));
          CHECK(graph.plan({result}, shapes, device, {.details = true}).details->steps.size() == 1);
        }
      }
}

TEST_CASE("memory for a chain's result is asked for by the chain's last operator",
          "[row12][host]") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 64}), a = cumsum(x, 0);
  const int at = __LINE__ + 1;
  const Tensor b = maximum(tanh(a * 2), a);
  const Tensor y = cumsum(b, 0) + a;
  const memory::Plan plan = graph.plan({y}, {{x, {1000, 64}}}, Device::cpu());
  CHECK(plan.peak_node == "maximum " + line(at));
  Session session(graph, {.memory_limit = plan.reserved_bytes / 2});
  CHECK_ERROR(session.run(y, {{x, Tensor::zeros({1000, 64})}}), OutOfMemory,
              "asked by     maximum " + line(at));
}

TEST_CASE("a chain keeps apart what an update comes between, and what others read") {
  Graph graph;
  const Parameters params(graph);
  const Tensor w = params.declare("w", {64, 80}, initializers::constant(2));
  const Tensor old = w * 3, up = assign(w, w + 1), mixed = old * w + 1;
  const Tensor shared = exp(w), used = shared * 2 - 1;
  Session session(graph);
  session.initialize();
  const auto [first, second, third, updated] = session.run({mixed, used, shared + 1, up});
  CHECK(first.to_vector<float>()[5] == 2 * 3 * 3 + 1);
  CHECK(second.to_vector<float>()[5] == std::exp(3.f) * 2 - 1);
}

TEST_CASE("a chain that ends in a sum leaves its inputs alone, and opaque results are merged") {
  const Device device = own_test_device();
  Graph graph;
  const Parameters params(graph);
  const Tensor x = graph.placeholder("x", DType::f32, {256, 256}),
               v = graph.placeholder("v", DType::f32, {256});
  const Tensor rows = sum(x * exp(v), {.axes = {1}}) + 1;  // as many rows as exp(v) has elements
  const Feeds fed = {{x, waves({256, 256}, 0.3, device)}, {v, waves({256}, 0.7, device)}};
  Session session(graph, {.device = device}), written(graph, {.device = device, .passes = false});
  CHECK(session.run(rows, fed).to_vector<float>() == written.run(rows, fed).to_vector<float>());

  const Tensor sequence = graph.placeholder("sequence", DType::f32, {4, 5, 3});
  const LstmWeights cell{params.declare("w", {3, 32}, initializers::constant(0.1)),
                         params.declare("r", {8, 32}, initializers::constant(0.1)),
                         params.declare("b", {32}, initializers::zeros())};
  const Tensor loss =
      sum(square(lstm(sequence, {cell}).sequence)) + sum(lstm(sequence, {cell}).sequence);
  CHECK_NOTHROW(
      graph.plan({loss, gradients(loss, {cell.input})[0]}, {{sequence, {4, 5, 3}}}, device));
}

TEST_CASE(
    "a chain reads parts, boolean rows and columns of its own shape, and its sums cross rows") {
  const Device device = own_test_device();
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {64, 128}),
               column = graph.placeholder("column", DType::f32, {64, 1}),
               table = graph.placeholder("table", DType::f32, {8, 64}),
               cube = reshape(x, {16, 8, 64}), positive = table > 0,
               narrow = reshape(slice(table, 0, 1), {64, 1}) > 0, y = exp(x);
  const Feeds fed = {{x, waves({64, 128}, 0.3, device)},
                     {column, waves({64, 1}, 0.7, device)},
                     {table, waves({8, 64}, 0.9, device)}};
  const Tensor per_row = mean(square(x * column), {.axes = {1}});
  const Tensors all = {
      slice(y, 0, 1) * y + 1,
      reshape(reshape(x * column, {2, 64, 64}) * column, {64, 128}) + 1,
      where(positive, tanh(cube), 0.5) * 2,
      where(narrow, tanh(x), 0.5) * 2,
      sum(tanh(cube * table), {.axes = {2}}),
      sum(tanh(cube * 2), {.axes = {0, 2}}),
      gradients(sum(square(per_row)), {x})[0],
  };
  Session session(graph, {.device = device}), written(graph, {.device = device, .passes = false});
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i);
    CHECK(session.run(all[i], fed).to_vector<float>() ==
          written.run(all[i], fed).to_vector<float>());
  }
}

}  // namespace ebb::tests
