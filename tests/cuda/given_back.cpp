// Memory and the objects of CUDA and its libraries are given back once they are no longer needed.
#include <thread>

#include "ebb/core/data/data_loader.h"
#include "ebb/core/device/lent_stream.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/graph/session.h"
#include "ebb/models/lstm.h"
#include "ebb/models/mlp.h"
#include "ebb/optim/adam.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/cuda/fixture.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

constexpr const char* kKinds[] = {"virtual", "plain", "block"};

// Trains in a session whose program is captured, then eagerly, then on another thread.
void work_on(const Device& device) {
  device.runtime().set_poisons(false);  // a program poisoned step by step is not captured
  const Tensor values = Tensor::from(ramp(96), {4, 3, 8});
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {4, 3, 8});
  Parameters parameters(graph, Seed{1});
  const models::Lstm lstm(parameters, 8, {.hidden = 8, .layers = 2});
  const Tensor loss = mean(square(lstm(x, Phase::training).sequence));
  const Tensor step = optim::Adam({.learning_rate = 0.01}).minimize(loss, parameters);
  Session session(graph, {.device = device});
  session.initialize();
  for (int i = 0; i < 4; ++i) session.run(step, {{x, values}});

  Parameters own(device, Seed{2});
  const models::Mlp mlp(own, {8, 8, 8});
  const DataSet data(Tensor::from(ramp(800), {100, 8}), Tensor::from(ramp(100), {100}));
  DataLoader loader(data, {.batch = 32, .device = device});
  for (const Batch& batch : loader) mean(square(mlp(batch.input))).backward();
  std::thread([&] { sum(mlp(values.to(device))).item<float>(); }).join();
}

}  // namespace

TEST_CASE("all that CUDA and its libraries made for a device goes with it", "[concurrent]") {
  const Machine machine;
  for (const char* kind : kKinds) {
    INFO(kind);
    const Variable variable("EBB_CUDA_MEMORY", kind);
    const emulated::Statistics before = machine.statistics();
    {
      const Device device = own_cuda();
      // On a thread that ends: state prepared for eager operators belongs to the thread.
      std::thread([&] { work_on(device); }).join();
      const emulated::Statistics now = machine.statistics();
      CHECK(now.page_locked > before.page_locked);
      CHECK(now.library_objects > before.library_objects);
    }
    const emulated::Statistics after = machine.statistics();
    CHECK(after.streams == before.streams);
    CHECK(after.events == before.events);
    CHECK(after.graphs == before.graphs);
    CHECK(after.page_locked == before.page_locked);
    CHECK(after.library_objects == before.library_objects);
    CHECK(after.bytes == before.bytes);
    CHECK(std::string(machine->last_complaint()) == "");
  }
}

TEST_CASE("idle streams give back what their copies took, but for a few, and copy again") {
  const Machine machine;
  const Device device = own_cuda();
  Runtime& runtime = device.runtime();
  const Held to(runtime.allocator(), sizeof(int));
  const std::uint64_t before = machine.statistics().page_locked;
  for (int round = 0; round < 2; ++round) {
    std::vector<std::unique_ptr<LentStream>> lent;
    for (int i = 0; i < 12; ++i) {
      lent.push_back(std::make_unique<LentStream>(runtime));
      runtime.copy_in(lent.back()->get(), to.data(), &i, sizeof(i));
      int copied = -1;
      runtime.copy_out(lent.back()->get(), &copied, to.data(), sizeof(copied));
      CHECK(copied == i);
    }
    CHECK(machine.statistics().page_locked == before + 12);
    lent.clear();
    CHECK(machine.statistics().page_locked == before + 4);
  }
}

TEST_CASE("a device's capacity is the same, however much of it is taken") {
  const Machine machine;
  for (const char* kind : kKinds) {
    INFO(kind);
    const Variable variable("EBB_CUDA_MEMORY", kind);
    const Device device = own_cuda();
    const std::size_t capacity = device.runtime().capacity_bytes();
    const std::size_t page = device.runtime().profile().page_bytes;
    const auto is_unchanged = [&] {
      const std::size_t now = device.runtime().capacity_bytes();
      return now <= capacity + page && now + page >= capacity;  // rounded by both
    };
    {
      const Tensor held = Tensor::full({8 << 20}, 1, DType::f32, device);
      CHECK(memory::stats(device).reserved.current >= held.bytes());
      CHECK(is_unchanged());
    }
    CHECK(memory::release_cached(device).returned_bytes >= std::size_t{32} << 20);
    CHECK(is_unchanged());
  }
}

TEST_CASE("a device whose blocks are its own cuts none of them") {
  const Machine machine;
  const Variable variable("EBB_CUDA_MEMORY", "block");
  const Device device = own_cuda();
  { const Tensor large = Tensor::full({1 << 20}, 1, DType::f32, device); }
  const std::size_t reserved = memory::stats(device).reserved.current;
  const Tensor small = Tensor::full({1000}, 1, DType::f32, device);
  CHECK(memory::stats(device).reserved.current >= reserved + small.bytes());
}

TEST_CASE("what of a range could not be mapped whole is not mapped at all, and can be again") {
  const Machine machine;
  const detail::CudaDevice device = detail::open_cuda(0);
  memory::MemorySource& source = *device.source;
  const std::size_t page = source.page_bytes();
  const std::size_t before = machine.statistics().bytes;
  void* const base = source.reserve(4 * page);
  REQUIRE(base);
  for (const emulated::Fault fault : {emulated::Fault::map, emulated::Fault::allocate}) {
    machine->inject(fault, 2, 2);  // cudaErrorMemoryAllocation
    CHECK_FALSE(source.commit(base, 4 * page));
    CHECK(machine.statistics().bytes == before);
  }
  CHECK(source.commit(base, 4 * page));
  CHECK(machine.statistics().bytes == before + 4 * page);
  CHECK(source.decommit(base, 4 * page));
  CHECK(machine.statistics().bytes == before);
  source.unreserve(base, 4 * page);
}

TEST_CASE(
    "memory goes back after the work that was asked for before, and streams end after theirs") {
  const Machine machine;
  for (const char* kind : {"virtual", "plain"})
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      INFO(kind);
      machine->set_seed(seed);
      const Variable variable("EBB_CUDA_MEMORY", kind);
      const detail::CudaDevice device = detail::open_cuda(0);
      Backend& backend = *device.backend;
      const std::size_t bytes = std::size_t{4} << 20;
      void* const memory = device.source->map(bytes);
      void* const locked = device.staging->map(bytes);
      REQUIRE((memory && locked));
      const auto first = backend.make_stream();
      auto ended = backend.make_stream();
      const auto second = backend.make_stream();
      const float value = 7;
      REQUIRE(backend.copy_in(ended.get(), memory, &value, sizeof(value)).ok());
      ended.reset();  // with its source buffer
      REQUIRE(backend.copy_in_later(second.get(), memory, locked, bytes).ok());
      CHECK(device.staging->unmap(locked, bytes));
      REQUIRE(backend.fill(second.get(), memory, 1, bytes).ok());
      CHECK(device.source->unmap(memory, bytes));
      CHECK(backend.synchronise(second.get()).ok());
      CHECK(std::string(machine->last_complaint()) == "");
    }
}
