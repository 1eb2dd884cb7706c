// Programs are captured once and replayed, updates take one launch, and nothing uses the default
// stream.
#include <thread>

#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/data/data_loader.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/device/tf32.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/loss.h"
#include "ebb/core/ops/memory_figures.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/graph/session.h"
#include "ebb/models/mlp.h"
#include "ebb/optim/adam.h"
#include "ebb/optim/sgd.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/cuda/fixture.h"

using namespace ebb;
using namespace ebb::tests;

TEST_CASE("a prepared program is launched once, captured, and replayed from then on") {
  const Machine machine;
  const Device device = own_cuda();
  device.runtime().set_poisons(false);  // a program poisoned step by step is not captured
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 8});
  const Tensor y = tanh(x * 2) + x;
  Session session(graph, {.device = device});
  const Tensor host = Tensor::from(ramp(16), {2, 8});
  const auto run = [&] {
    const emulated::Statistics before = machine.statistics();
    const float value = session.run(y, {{x, host}}).item<float>({1, 3});
    const emulated::Statistics after = machine.statistics();
    return std::tuple(value, after.launches - before.launches,
                      after.graph_launches - before.graph_launches);
  };
  const auto [first, launches, none] = run();
  CHECK(launches > 0);
  CHECK(none == 0);
  run();  // is captured
  for (int i = 0; i < 3; ++i) {
    const auto [value, single, graphs] = run();
    CHECK(value == first);
    CHECK(single == 0);
    CHECK(graphs == 1);
  }
  // A second plan has a larger arena. The first program's addresses must stay valid.
  const Tensor more = Tensor::from(ramp(80000), {10000, 8});
  session.run(y, {{x, more}});
  CHECK(std::get<0>(run()) == first);
  CHECK(machine.statistics().default_stream_uses == 0);
}

TEST_CASE("a captured program whose memory was given away is captured anew where it lies then") {
  const Machine machine;
  const Variable variable("EBB_CUDA_MEMORY", "plain");
  const Device device = own_cuda();
  device.runtime().set_poisons(false);
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 8});
  const Tensor y = sum(tanh(x * 2) * x);
  Session session(graph, {.device = device});
  const Tensor host = Tensor::from(ramp(8000), {1000, 8});
  const auto run = [&] { return session.run(y, {{x, host}}).item<float>(); };
  const float right = run();
  CHECK(run() == right);
  CHECK(run() == right);
  memory::set_limit(device, std::size_t{1});  // idle sessions give way
  memory::set_limit(device, std::nullopt);
  Tensors others;  // in the sessions' former memory
  for (int i = 0; i < 64; ++i) others.push_back(Tensor::full({16000}, i, DType::f32, device));
  for (int i = 0; i < 3; ++i) CHECK(run() == right);
  for (int i = 0; i < 64; ++i) {
    const std::vector<float> kept = others[static_cast<std::size_t>(i)].to_vector<float>();
    CHECK(std::count(kept.begin(), kept.end(), static_cast<float>(i)) == 16000);
  }
}

TEST_CASE("a program with a step that cannot be captured runs launch by launch, and is right") {
  const Machine machine;
  const Device device = own_cuda();
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {4});
  const Tensor y = x * 2;
  const Tensor used = memory::bytes_in_use(y);
  Session session(graph, {.device = device});
  const std::uint64_t graphs = machine.statistics().graph_launches;
  for (int i = 0; i < 3; ++i) {
    const auto fetched = session.run({y, used}, {{x, Tensor::full({4}, i)}});
    CHECK(fetched[0].item<float>({2}) == static_cast<float>(2 * i));
    CHECK(fetched[1].item<std::int64_t>() > 0);
  }
  CHECK(machine.statistics().graph_launches == graphs);
}

TEST_CASE("the updates of an eager step are one launch, whatever the number of parameters") {
  const Machine machine;
  const Device device = own_cuda();
  const auto launches_of_step = [&](int layers, DType dtype) {
    Parameters parameters(device, Seed{3}, dtype);
    const models::Mlp model(parameters,
                            std::vector<std::int64_t>(static_cast<std::size_t>(layers) + 1, 8));
    const optim::Adam adam({.learning_rate = 0.01});
    const Tensor x = cast(Tensor::from(ramp(32), Shape{4, 8}), dtype).to(device);
    const auto loss = [&] { return mean(square(model(x))); };
    loss().backward();
    adam.step(parameters);
    parameters.zero_grad();
    loss().backward();
    const std::uint64_t before = machine.statistics().launches;
    adam.step(parameters);
    return machine.statistics().launches - before;
  };
  for (const DType dtype : {DType::f32, DType::bf16})
    CHECK(launches_of_step(1, dtype) == launches_of_step(4, dtype));
}

TEST_CASE("updates of the same memory that run one after the other are not made by one launch") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 64});
  const Tensor rate = graph.placeholder("rate", DType::f64, {});
  Parameters parameters(graph, Seed{7});
  const models::Mlp model(parameters, {64, 64, 64, 64});
  const Tensor loss = mean(square(model(x)));
  const auto steps_of = [&](const char* name) {
    return optim::Sgd({.learning_rate = rate, .momentum = 0.9, .weight_decay = 0.3, .name = name})
        .minimize(loss, parameters);
  };
  const Tensors steps = {steps_of("a"), steps_of("b")};
  const auto trained = [&](const Device& device) {
    Session session(graph, {.device = device});
    session.initialize();
    for (int i = 0; i < 4; ++i)
      session.run(steps, {{x, Tensor::from(ramp(512), {8, 64})},
                          {rate, Tensor::full({}, 0.5, DType::f64)}});
    return session.value(parameters["1.weight"]).to_vector<float>();
  };
  const Machine machine;
  const std::vector<float> right = trained(Device::cpu());
  for (std::uint64_t seed = 1; seed < 4; ++seed) {
    machine->set_seed(seed);
    const std::vector<float> values = trained(own_cuda());
    for (std::size_t i = 0; i < right.size(); i += 97)
      CHECK(values[i] == Approx(right[i]).epsilon(1e-4).margin(1e-5));
  }
}

TEST_CASE("the gradient of the input of a layer without outputs is zero") {
  const Device device = own_cuda();
  const Tensor x = Tensor::full({4, 5}, 1, DType::f32, device).with_grad();
  const Tensor w = Tensor::zeros({5, 0}, DType::f32, device).with_grad();
  const Tensor b = Tensor::zeros({0}, DType::f32, device).with_grad();
  sum(square(dense(x, w, b))).backward();
  for (const float value : x.grad().to_vector<float>()) CHECK(value == 0);
}

TEST_CASE("products of views that begin anywhere are right, the library's or not") {
  const Machine machine;
  const Device device = own_cuda();
  const auto calls_of = [&](std::int64_t width, bool bias) {
    const std::int64_t rows = 40;
    const auto count = static_cast<std::size_t>(rows * width);
    const Tensor host = Tensor::from(ramp(count), {rows, width});
    const Tensor on_host = slice(host, 1, rows), factor = slice(host, 1, width + 1);
    const Tensor x = slice(host.to(device), 1, rows), w = slice(host.to(device), 1, width + 1);
    const Tensor shift = Tensor::from(ramp(count), {rows * width});
    const auto b = [&](const Tensor& all) { return slice(all, 1, width + 1); };
    const Tensor right = bias ? dense(on_host, factor, b(shift)) : matmul(on_host, factor);
    const std::uint64_t before = machine.statistics().library_calls;
    const Tensor got = bias ? dense(x, w, b(shift.to(device))) : matmul(x, w);
    const std::vector<float> values = got.to_vector<float>(), expected = right.to_vector<float>();
    for (std::size_t i = 0; i < values.size(); i += 13) CHECK(values[i] == Approx(expected[i]));
    return machine.statistics().library_calls - before;
  };
  CHECK(calls_of(4, false) == 1);  // views that begin at multiples of 16 bytes
  CHECK(calls_of(5, false) == 0);
  CHECK(calls_of(4, true) == 0);  // a bias that does not begin at one
}

TEST_CASE("updates of two optimizers, one after the other, are made by the kernel of each") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {4, 8});
  Parameters one(graph, Seed{7}), two(graph, Seed{8});
  const Tensor w = one.declare("w", {8, 8}, initializers::normal(0, 1));
  const Tensor v = two.declare("v", {8, 8}, initializers::normal(0, 1));
  const Tensor loss = mean(square(matmul(matmul(x, w), v)));
  const Tensors steps = {optim::Adam({.learning_rate = 0.01}).minimize(loss, one),
                         optim::Sgd({.learning_rate = 0.1}).minimize(loss, two)};
  const auto trained = [&](const Device& device) {
    device.runtime().set_poisons(false);  // poisoning runs step by step and merges no launches
    Session session(graph, {.device = device});
    session.initialize();
    for (int i = 0; i < 3; ++i) session.run(steps, {{x, Tensor::from(ramp(32), {4, 8})}});
    std::vector<float> values = session.value(one["w"]).to_vector<float>();
    const std::vector<float> others = session.value(two["v"]).to_vector<float>();
    values.insert(values.end(), others.begin(), others.end());
    return values;
  };
  const Machine machine;
  const std::vector<float> right = trained(Device::cpu()), values = trained(own_cuda());
  for (std::size_t i = 0; i < right.size(); ++i)
    CHECK(values[i] == Approx(right[i]).epsilon(1e-4).margin(1e-5));
}

TEST_CASE("TF32 rounds the factors of products where it is allowed, and nothing before") {
  const Device device = own_cuda();
  const float fine = 1 + 0x1p-13f;  // beyond TF32's 10 bits
  const Tensor a = Tensor::full({64, 64}, fine, DType::f32, device);
  const auto product = [&] { return matmul(a, a).item<float>({5, 7}); };
  CHECK(product() == Approx(64 * fine * fine).epsilon(1e-6));
  allow_tf32(true);
  CHECK(product() == 64);
  allow_tf32(false);
  CHECK(product() == Approx(64 * fine * fine).epsilon(1e-6));
}

TEST_CASE("a GPU without TF32 is not asked for it where it is allowed") {
  const Machine machine;
  machine->set_capability(75);
  const Device device = own_cuda();
  const float fine = 1 + 0x1p-13f;
  const Tensor a = Tensor::full({64, 64}, fine, DType::f32, device);
  const std::uint64_t before = machine.statistics().library_calls;
  allow_tf32(true);
  CHECK(matmul(a, a).item<float>({5, 7}) == Approx(64 * fine * fine).epsilon(1e-6));
  allow_tf32(false);
  CHECK(machine.statistics().library_calls > before);
}

TEST_CASE("waits between streams are what makes results right: without them some order is wrong",
          "[concurrent]") {
  const auto differs = [](bool drops, std::uint64_t seed) {
    const Machine machine;
    machine->set_drops_waits(drops);
    machine->set_seed(seed);
    const Device device = own_cuda();
    Tensor x = Tensor::full({1000}, 1, DType::f32, device);
    for (int i = 0; i < 4; ++i) x = x * 2;
    float there = 0;
    std::thread([&] { there = (x + 1).item<float>({999}); }).join();  // on its own stream
    return there != 17;
  };
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CHECK_FALSE(differs(false, seed));
    wrong += differs(true, seed);
  }
  CHECK(wrong > 0);
}

TEST_CASE("a loader copies ahead from page-locked memory, and every batch is its own",
          "[concurrent]") {
  const Machine machine;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    machine->set_seed(seed);
    const Device device = own_cuda();
    const DataSet data(Tensor::from(ramp(1200), {300, 4}), Tensor::from(ramp(300), {300}));
    DataLoader loader(data, {.batch = 32, .device = device});
    const std::vector<float> all = ramp(1200);
    std::size_t at = 0;
    for (const Batch& batch : loader) {
      const std::vector<float> got = (batch.input * 1).to_vector<float>();
      CHECK(std::equal(got.begin(), got.end(), all.begin() + static_cast<std::ptrdiff_t>(at)));
      at += got.size();
    }
    CHECK(at == 1200);
    CHECK(device.runtime().staging()->reserved_bytes() > 0);
  }
}
