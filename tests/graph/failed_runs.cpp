// A run that cannot get its memory gives back what it had got: MEMORY.md, row 11.
#include "ebb/core/base/error.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/elementary.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/eager/bytes.h"
#include "ebb/tests/graph/models.h"
#include "ebb/tests/graph/room.h"

using namespace ebb;
using namespace ebb::literals;
using ebb::tests::Bytes;
using ebb::tests::ClassifierData;
using ebb::tests::ClassifierGraph;
using ebb::tests::Room;

namespace {

// What a session holds, and its plans.
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

TEST_CASE("a larger batch that a limit refuses leaves the smaller one's memory where it was",
          "[row11]") {
  EBB_SKIP_WITH_LARGE_PAGES();
  const ClassifierGraph model;
  const ClassifierData small(8), large(4096);
  Session straight(model.graph, {.seed = Seed{1}});
  straight.initialize(model.parameters);
  for (const bool of_the_device : {false, true}) {
    CAPTURE(of_the_device);
    Session session(model.graph, {.seed = Seed{1}});
    session.initialize(model.parameters);
    session.run(model.train, feeds(model, small));
    const Holding before(session);
    if (!of_the_device) session.set_memory_limit(before.reserved_bytes);
    {
      const Room room(of_the_device ? 0 : 1_GiB);
      for (int i = 0; i < 3; ++i) {
        CHECK_THROWS_AS(session.run(model.train, feeds(model, large)), OutOfMemory);
        CHECK(Holding(session) == before);
      }
      // As far as the device is concerned there is not a byte to be had: a warm run takes its fetch
      // alone.
      memory::set_limit(Device::cpu(), std::nullopt);
      session.run(model.train, feeds(model, small));
      CHECK(Holding(session) == before);
    }
    session.set_memory_limit({});
    session.run(model.train, feeds(model, large));
    CHECK(session.plans() == 2);
  }
}

TEST_CASE("an arena that grew for a run whose fetch is refused is as small as before", "[row11]") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1});
  const Tensor y = tanh(tanh(x) * x + tanh(x));  // as large as each of what it is made of
  Session session(graph);
  const Tensor few = Tensor::full({1 << 10}, 1), many = Tensor::full({1 << 23}, 1);
  const std::size_t arena = graph.plan({y}, {{x, many.shape()}}, Device::cpu()).arena_bytes;
  REQUIRE(arena >= many.bytes());
  const float wanted = session.run(y, {{x, few}}).item<float>({0});
  const Holding before(session);
  const Bytes bytes;
  {
    const Room room(arena + many.bytes() / 2);
    CHECK_THROWS_AS(session.run(y, {{x, many}}), OutOfMemory);
    // It may have been taken for the fetch: nothing was in it.
    CHECK((session.memory().arena_bytes == 0 || (Holding(session) == before && bytes.now() == 0)));
    CHECK(session.run(y, {{x, few}}).item<float>({0}) == wanted);
  }
  CHECK(session.run(y, {{x, many}}).item<float>({1 << 22}) == wanted);
  CHECK(session.memory().arena_bytes >= arena);
}

TEST_CASE("a session that was refused its first run holds what it held before it", "[row11]") {
  const ClassifierGraph model;
  const ClassifierData data(8);
  Session session(model.graph, {.memory_limit = model.plan(8).reserved_bytes - 1});
  session.initialize(model.parameters);
  const Holding before(session);
  CHECK_THROWS_AS(session.run(model.train, feeds(model, data)), OutOfMemory);
  CHECK(Holding(session) == before);
  CHECK(before.optimizer_state_bytes == 0);
  auto step = session.prepare(model.train, {model.x, model.y});
  CHECK_THROWS_AS(step(data.x, data.y), OutOfMemory);
  CHECK(Holding(session) == before);
  session.set_memory_limit(model.plan(8).reserved_bytes);
  step(data.x, data.y);
  CHECK(session.memory().total_bytes == model.plan(8).peak_bytes);
}

TEST_CASE("what asks for values and fails leaves a session without the memory for them",
          "[row11]") {
  const tests::TemporaryFolder folder;
  const ClassifierGraph model;
  const Tensor slot = model.parameters.slots()[0].tensor;
  memory::CachingAllocator& allocator = Device::cpu().runtime().allocator();
  Session session(model.graph);
  const Holding before(session);
  CHECK_THROWS_AS(session.restore(folder.path("nowhere")), FileError);
  CHECK(Holding(session) == before);
  CHECK_THROWS_AS(session.value(model.parameters["out.weight"]), Error);  // it has none
  CHECK(Holding(session) == before);
  for (std::size_t n = 0; n < 3; ++n) {  // parameters, slot, copy
    allocator.fail_allocation_after(n);
    CHECK_THROWS_AS(session.value(slot), OutOfMemory);
    CHECK(Holding(session) == before);
  }
  allocator.fail_allocation_after(~std::size_t{0});
  CHECK_NOTHROW(session.value(slot));
  CHECK(session.memory().optimizer_state_bytes > 0);
}
