// The bytes that a session holds, and that all of them come back.
#include <fstream>
#include <string>
#include <thread>

#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/eager/bytes.h"
#include "ebb/tests/failing_allocation.h"
#include "ebb/tests/graph/models.h"

using namespace ebb;
using namespace ebb::literals;
using ebb::tests::Bytes;
using ebb::tests::ClassifierData;
using ebb::tests::ClassifierGraph;

namespace {

std::size_t mapped_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmSize:") {
      std::size_t kib = 0;
      status >> kib;
      return kib;
    }
  return 0;
}

// A session's bytes and its number of plans.
struct Holding {
  explicit Holding(const Session& session)
      : total_bytes(session.memory().total_bytes),
        reserved_bytes(session.memory().reserved_bytes),
        optimizer_state_bytes(session.memory().optimizer_state_bytes),
        arena_bytes(session.memory().arena_bytes),
        plans(session.plans()) {}
  std::size_t total_bytes, reserved_bytes, optimizer_state_bytes, arena_bytes, plans;
  friend bool operator==(const Holding&, const Holding&) = default;
};

}  // namespace

TEST_CASE("close() returns every byte of the session, and says how many") {
  const ClassifierGraph model;
  const ClassifierData data(32);
  memory::CachingAllocator& device = Device::cpu().runtime().allocator();
  const std::size_t reserved = device.reserved_bytes();
  const Bytes bytes;
  Session session = model.open();
  for (int i = 0; i < 3; ++i) session.run(model.train, feeds(model, data));
  const memory::Plan plan = model.plan(32);
  const memory::Breakdown held = session.memory();
  CHECK(held.total_bytes == plan.peak_bytes);
  CHECK(held.parameter_bytes == plan.parameter_bytes);
  CHECK(held.optimizer_state_bytes == plan.optimizer_state_bytes);
  CHECK(held.arena_bytes == plan.arena_bytes);
  CHECK(held.reserved_bytes == plan.reserved_bytes);
  CHECK(session.stats().at_peak == plan.by_category);
  CHECK(plan.by_category[static_cast<std::size_t>(memory::Category::gradient)] > 0);
  CHECK(bytes.now() == plan.peak_bytes);
  const memory::CloseReport report = session.close();
  CHECK(report.freed_bytes == plan.peak_bytes);
  CHECK(report.returned_bytes == plan.reserved_bytes);
  CHECK(bytes.now() == 0);
  CHECK(session.stats().reserved.current == 0);
  CHECK(device.reserved_bytes() <= reserved + 2_MiB);  // the fetches' cache
}

TEST_CASE("a session closes at the end of its scope, twice is harmless, afterwards it says so") {
  const ClassifierGraph model;
  const ClassifierData data(4);
  const Bytes bytes;
  {
    Session session = model.open();
    auto step = session.prepare(model.train, {model.x, model.y});
    step(data.x, data.y);
    CHECK(bytes.now() > 0);
    session.close();
    CHECK(session.closed());
    CHECK(session.close().returned_bytes == 0);
    CHECK_ERROR(session.run(model.loss, feeds(model, data)), SessionClosed, "closed");
    CHECK_ERROR(step(data.x, data.y), SessionClosed, "closed");
    CHECK_ERROR(session.initialize(model.parameters), SessionClosed, "closed");
    CHECK_ERROR(session.value(model.parameters["out.bias"]), SessionClosed, "closed");
    CHECK_ERROR(session.save("never.safetensors"), SessionClosed, "closed");
  }
  {
    Session session = model.open();
    Session moved = std::move(session);
    moved.run(model.loss, feeds(model, data));
  }
  CHECK(bytes.now() == 0);
}

TEST_CASE("a thousand build-run-close cycles leave the process's memory where the first left it") {
  if (tests::on_cuda()) return;  // a driver's memory is not ours, not even an emulated driver's
  const ClassifierData data(8);
  std::size_t after_first = 0;
  for (int cycle = 0; cycle < 1000; ++cycle) {
    {
      const ClassifierGraph model;
      Session session = model.open();
      session.run(model.train, feeds(model, data));
    }
    if (cycle == 0) {
      memory::CachingAllocator& device = Device::cpu().runtime().allocator();
      device.release_cached();
      after_first = mapped_kib();
    }
  }
  Device::cpu().runtime().allocator().release_cached();
  CHECK(mapped_kib() <= after_first);
}

TEST_CASE("a warm run allocates nothing but its fetches") {
  const ClassifierGraph model;
  const ClassifierData data(8);
  Session session = model.open();
  auto step = session.prepare(model.train, {model.x, model.y});
  step(data.x, data.y);
  const memory::Stats warm = session.stats();
  const memory::Stats device = Device::cpu().runtime().allocator().stats();
  for (int i = 0; i < 10; ++i) step(data.x, data.y);
  CHECK(session.stats().allocated.total == warm.allocated.total);
  CHECK(session.stats().reserved.current == warm.reserved.current);
  const memory::Stats after = Device::cpu().runtime().allocator().stats();
  CHECK(after.allocated.total - device.allocated.total == 10 * 512);
  CHECK(after.requested.total - device.requested.total == 10 * 4);
}

TEST_CASE("a larger batch grows the arena to its own plan, not to the sum") {
  const ClassifierGraph model;
  Session session = model.open();
  for (const std::int64_t rows : {8, 64, 16}) {
    const ClassifierData data(rows);
    session.run(model.train, feeds(model, data));
  }
  CHECK(session.stats().allocated.peak == model.plan(64).peak_bytes);
  CHECK(session.memory().total_bytes == model.plan(64).peak_bytes);
}

TEST_CASE("dropping a graph frees no session, closing the session does") {
  const Bytes bytes;
  const ClassifierData data(4);
  const std::size_t fed = bytes.now();
  auto model = std::make_unique<ClassifierGraph>();
  const std::size_t taken = model->plan(4).peak_bytes;
  const Tensor x = model->x, y = model->y, train = model->train;
  Session session(model->graph);
  session.initialize(model->parameters);
  model.reset();
  session.run(train, {{x, data.x}, {y, data.y}});
  CHECK(bytes.now() == fed + taken);
  session.close();
  CHECK(bytes.now() == fed);
}

TEST_CASE("closing waits for a run in progress, and runs of one session are serialised",
          "[concurrent]") {
  const ClassifierGraph model;
  const ClassifierData data(64);
  for (int round = 0; round < 6; ++round) {
    Session session = model.open();
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        try {
          for (int i = 0; i < 20; ++i) session.run(model.train, feeds(model, data));
        } catch (const SessionClosed&) {
        }
      });
    if (round % 2) session.close();
    for (std::thread& thread : threads) thread.join();
  }
  CHECK(Device::cpu().runtime().allocator().stats().by_category[0].current == 0);
}

TEST_CASE("a layer's input is not kept where nobody asks for its weight's gradient") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {256, 64}),
               w = graph.placeholder("w", DType::f32, {64, 64});
  const Tensor loss = sum(square(softmax(dense(x + 1, w))));
  const auto arrays = [&](const Tensors& fetches) {
    const FedShapes shapes = {{x, {256, 64}}, {w, {64, 64}}};
    return graph.plan(fetches, shapes, Device::cpu()).arena_bytes / (256 * 64 * sizeof(float));
  };
  CHECK(arrays(gradients(loss, {x})) == 2);     // y, and its input or its square
  CHECK(arrays(gradients(loss, {x, w})) == 3);  // all three
}

TEST_CASE("what asks for values and fails leaves a session without the memory for them",
          "[row11]") {
  const ebb::tests::TemporaryFolder folder;
  const ClassifierGraph model;
  const Tensor slot = model.parameters.slots()[0].tensor;
  Session session(model.graph);
  const Holding before(session);
  CHECK_THROWS_AS(session.restore(folder.path("nowhere")), FileError);
  CHECK(Holding(session) == before);
  CHECK_THROWS_AS(session.value(model.parameters["out.weight"]), Error);  // it has no value
  CHECK(Holding(session) == before);
  CHECK(tests::fails_at(0, [&] { session.initialize(); }));
  CHECK(Holding(session) == before);
  for (std::size_t n = 0; n < 3; ++n) {  // parameters, slot, copy
    CHECK(tests::fails_at(n, [&] { session.value(slot); }));
    CHECK(Holding(session) == before);
  }
  CHECK_NOTHROW(session.value(slot));
  CHECK(session.memory().optimizer_state_bytes > 0);
}
