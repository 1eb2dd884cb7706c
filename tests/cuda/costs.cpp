// The number of requests to a GPU does not grow with the past, nor with what the GPU refuses.
#include <atomic>
#include <thread>
#include <vector>

#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/data/data_loader.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/figures.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/memory/summary.h"
#include "ebb/core/ops/loss.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/graph/session.h"
#include "ebb/models/mlp.h"
#include "ebb/optim/adam.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/cuda/fixture.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

// Runs `count` threads that all have a stream at the same time and use one tensor.
void run_threads(const Device& device, int count) {
  const Tensor shared = Tensor::full({4}, 1).to(device);
  std::atomic<int> begun{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&] {
      const Tensor own = Tensor::full({4}, 2).to(device);
      ++begun;
      while (begun < count) std::this_thread::yield();
      static_cast<void>((own + shared).to_vector<float>());
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("steps ask for as many waits however many threads have been there", "[concurrent]") {
  const Machine machine;
  const Device device = own_cuda();
  const Tensor x = Tensor::full({4, 8}, 0.1), y = Tensor::from({0, 1, 2, 3});
  const optim::Adam adam;
  const Parameters parameters(device);
  const models::Mlp model(parameters, {8, 16, 4});
  Graph graph;
  const Tensor px = graph.placeholder("x", DType::f32, {4, 8});
  const Tensor py = graph.placeholder("y", DType::i32, {4});
  const Parameters declared(graph);
  const models::Mlp in_graph(declared, {8, 16, 4});
  const Tensor loss = adam.minimize(softmax_cross_entropy(in_graph(px), py), declared);
  Session session(graph, {.device = device});
  session.initialize();
  const auto step = [&] {
    adam.minimize(softmax_cross_entropy(model(x.to(device)), y.to(device)), parameters)
        .item<float>();
    session.run(loss, {{px, x}, {py, y}}).item<float>();
  };
  const auto waits_of_a_step = [&] {
    for (int i = 0; i < 5; ++i) step();
    return machine.count(&emulated::Statistics::waits, [&] {
      for (int i = 0; i < 10; ++i) step();
    }) / 10;
  };
  run_threads(device, 4);
  const std::size_t after_4 = waits_of_a_step();
  run_threads(device, 16);
  CHECK(waits_of_a_step() <= after_4);
  CHECK(after_4 <= 12);
}

TEST_CASE("memory goes back with as many waits however many threads have been there",
          "[concurrent]") {
  const Machine machine;
  const Device device = own_cuda();
  run_threads(device, 16);
  memory::release_cached(device);
  static_cast<void>((Tensor::full({4}, 1).to(device) + 1).to_vector<float>());
  const auto release = [&] { CHECK(memory::release_cached(device).returned_bytes > 0); };
  CHECK(machine.count(&emulated::Statistics::synchronisations, release) <= 2);
}

TEST_CASE("a request beyond what the device has left is refused before its pages are mapped") {
  const Machine machine;
  const Device device = own_cuda();
  const Tensor kept = Tensor::full({4}, 1).to(device);
  const std::uint64_t before = machine.statistics().maps;
  const memory::Stats stats = memory::stats(device);
  const auto elements = static_cast<std::int64_t>(stats.device_free / 4 + (64 << 20));
  for (int i = 0; i < 2; ++i)
    CHECK_THROWS_AS(Tensor::full({elements}, 1, DType::f32, device), OutOfMemory);
  CHECK(machine.statistics().maps == before);
  CHECK(memory::stats(device).device_free >= stats.device_free);
}

TEST_CASE("page-locked memory goes back with what else is cached", "[concurrent]") {
  const Machine machine;
  const Device device = own_cuda();
  const DataSet data(Tensor::full({64, 8}, 1), Tensor::full({64}, 1));
  {
    DataLoader loader(data, {.batch = 16, .device = device});
    for (const Batch& batch : loader) static_cast<void>(batch);
  }
  const std::size_t locked = device.runtime().staging()->reserved_bytes();
  CHECK(locked > 0);
  CHECK(locked <= 4 * std::size_t{64 << 10});  // pages of the host, for a few batches ahead
  const std::string figure = memory::figure(locked);
  CHECK(memory::summary(device).find("\npage-locked (host)" + std::string(13 - figure.size(), ' ') +
                                     figure + "  ") != std::string::npos);
  CHECK(memory::summary_json(device).find("\"page_locked_bytes\": {\n    \"current\": " +
                                          std::to_string(locked) + ",") != std::string::npos);
  memory::release_cached(device);
  CHECK(device.runtime().staging()->reserved_bytes() == 0);
}

TEST_CASE("a large feed from the host waits for the one before it, and not for that run's work") {
  const Machine machine;
  const Device device = own_cuda();
  memory::CachingAllocator& locked = *device.runtime().staging();
  constexpr std::int64_t kCount = 1 << 17;
  constexpr std::size_t kBytes = kCount * sizeof(float);
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {kCount});
  const Tensor small = graph.placeholder("small", DType::f32, {4}), doubled = x * 2 + sum(small);
  Session session(graph, {.device = device});
  for (const bool can_lock : {false, true}) {
    locked.set_limit(can_lock ? kBytes : kBytes - 1);
    std::vector<Tensor> results;
    const auto run = [&] {
      const Tensor large = Tensor::full({kCount}, static_cast<double>(results.size()));
      results.push_back(session.run(doubled, {{x, large}, {small, Tensor::full({4}, 0.25)}}));
      return machine.statistics().pending;
    };
    for (int i = 0; i < 3; ++i) run();            // captures
    CHECK(results.back().item<float>({0}) == 5);  // when all is done
    const std::uint64_t pending = run();
    CHECK((run() > pending) == can_lock);
    float right = 1;
    for (const Tensor& result : results) {
      CHECK(result.item<float>({kCount - 1}) == right);
      right += 2;
    }
    CHECK(session.memory().staged_bytes == (can_lock ? kBytes : 0));
    CHECK(locked.reserved_bytes() == (can_lock ? kBytes : 0));
  }
  session.close();
  CHECK(locked.reserved_bytes() == 0);
  CHECK(std::string(machine->last_complaint()) == "");
}
