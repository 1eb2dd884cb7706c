// Programs are captured once and replayed, updates take one launch, and nothing uses the default
// stream.
#include <thread>

#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/data/data_loader.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/kernels/tf32.h"
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
  const std::uint64_t kept = machine.statistics().graphs;
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
  CHECK(machine.statistics().graphs == kept + 1);
  // A second plan has a larger arena. The first program's addresses must stay valid.
  const Tensor more = Tensor::from(ramp(80000), {10000, 8});
  session.run(y, {{x, more}});
  CHECK(std::get<0>(run()) == first);
  CHECK(std::string(machine->last_complaint()) == "");
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
    return machine.count(&emulated::Statistics::launches, [&] { adam.step(parameters); });
  };
  for (const DType dtype : {DType::f32, DType::bf16})
    CHECK(launches_of_step(1, dtype) == launches_of_step(4, dtype));
}

TEST_CASE("the gradient of the input of a layer without outputs is zero") {
  const Device device = own_cuda();
  const Tensor x = Tensor::full({4, 5}, 1, DType::f32, device).with_grad();
  const Tensor w = Tensor::zeros({5, 0}, DType::f32, device).with_grad();
  const Tensor b = Tensor::zeros({0}, DType::f32, device).with_grad();
  sum(square(dense(x, w, b))).backward();
  for (const float value : x.grad().to_vector<float>()) CHECK(value == 0);
}

TEST_CASE("products of views that begin anywhere are right, and the library's") {
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
  CHECK(calls_of(5, false) == 1);
  CHECK(calls_of(4, true) == 1);  // a bias that does not begin at one
}

TEST_CASE("TF32 rounds the factors of products where it is allowed and there, and nothing else") {
  const Machine machine;
  const float fine = 1 + 0x1p-13f;  // beyond TF32's 10 bits
  for (const int capability : {75, 80}) {
    machine->set_capability(capability);
    const Device device = own_cuda();
    const Tensor a = Tensor::full({64, 64}, fine, DType::f32, device);
    const auto product = [&] { return matmul(a, a).item<float>({5, 7}); };
    CHECK(product() == Approx(64 * fine * fine).epsilon(1e-6));
    allow_tf32(true);
    const std::uint64_t before = machine.statistics().library_calls;
    CHECK(product() == Approx(capability == 80 ? 64 : 64 * fine * fine).epsilon(1e-6));
    CHECK(machine.statistics().library_calls > before);
    allow_tf32(false);
    CHECK(product() == Approx(64 * fine * fine).epsilon(1e-6));
  }
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
