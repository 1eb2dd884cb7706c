// Limits and growth of sessions, and idle arenas that give way: MEMORY.md, rows 9 to 11.
#include <algorithm>
#include <atomic>
#include <thread>

#include "ebb/core/device/runtime.h"
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/second_device.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/graph/models.h"

using namespace ebb;
using namespace ebb::literals;
using ebb::tests::ClassifierData;
using ebb::tests::ClassifierGraph;
using ebb::tests::reserved;

namespace {

constexpr std::int64_t kManyRows = 512;

Device second(tests::SecondDevice how = {}) {
  how.capacity_bytes = 256_MiB;
  return tests::make_second_device(how);
}
std::vector<Device> limited_devices() {
  return {second({.captures_programs = true}), second(), Device::simulated("cpu", 1_GiB)};
}

Session trained(const ClassifierGraph& model, const ClassifierData& data, SessionOptions options) {
  Session session = model.open(options);
  session.run(model.train, feeds(model, data));
  return session;
}

}  // namespace

TEST_CASE("a session preallocates its limit, or nearly all that is left, and keeps it until closed",
          "[row9][host]") {
  const ClassifierGraph model;
  for (const Device& device : limited_devices())
    for (const std::size_t limit : {16_MiB, 16_MiB + 5, 0_MiB}) {
      CAPTURE(device.name(), limit);
      const ClassifierData data(kManyRows, device);
      const std::size_t before = reserved(device);
      SessionOptions options{.device = device, .growth = memory::Growth::preallocate};
      if (limit) options.memory_limit = limit;
      const std::size_t left = memory::available(device);
      Session session(model.graph, options);
      const std::size_t most = limit ? 16_MiB : session.stats().reserved.current;
      CHECK(most <= left);
      const memory::Profile& profile = device.runtime().profile();
      const std::size_t spared = std::max(left / 8, profile.in_pages(profile.left_free(left)));
      if (!limit) CHECK(left - most <= spared);
      CHECK(session.stats().reserved.current == most);
      CHECK(reserved(device) == before + most);
      session.initialize(model.parameters);
      session.run(model.train, feeds(model, data));  // its fetches find room
      memory::release_cached(device);
      CHECK(session.stats().reserved.current == most);
      CHECK(session.close().returned_bytes == most);
      CHECK(reserved(device) == before);
    }
}

TEST_CASE("without a limit 5 % of a GPU stay free, at least 512 MiB but never more than half",
          "[row9][host]") {
  struct Row {
    const char* profile;
    std::size_t capacity, left_by_session, left_by_device;
  };
  const ClassifierGraph model;
  for (const Row& row : {Row{"h100", 80_GiB, 4_GiB, 4_GiB}, Row{"t4", 4_GiB, 512_MiB, 512_MiB},
                         Row{"a100", 600_MiB, 300_MiB, 300_MiB}, Row{"cpu", 8_GiB, 256_MiB, 0}}) {
    const Device device = Device::simulated(row.profile, row.capacity);
    CAPTURE(device.name());
    SessionOptions options{.device = device, .growth = memory::Growth::preallocate};
    const auto left_by_session = [&] {
      const Session session(model.graph, options);
      return row.capacity - reserved(device);
    };
    CHECK(left_by_session() == row.left_by_session);
    options.memory_limit = row.capacity;
    CHECK(left_by_session() == 0);
    memory::set_growth(device, memory::Growth::preallocate);
    CHECK(row.capacity - reserved(device) == row.left_by_device);
    memory::set_limit(device, row.capacity / 4);
    memory::set_growth(device, memory::Growth::preallocate);
    CHECK(reserved(device) == row.capacity / 4);
  }
}

TEST_CASE("a session has available what it holds and what the rest leaves, within its own limit",
          "[row9][row10][host]") {
  const ClassifierGraph model;
  for (const Device& device : limited_devices())
    for (const memory::Growth growth : {memory::Growth::on_demand, memory::Growth::preallocate}) {
      CAPTURE(device.name(), growth == memory::Growth::preallocate);
      const ClassifierData small(8, device), large(kManyRows, device);
      memory::set_limit(device, reserved(device) + 64_MiB);
      {
        Session session(model.graph, {.device = device, .growth = growth});
        CHECK(session.available() == 64_MiB);
        session.initialize(model.parameters);
        CHECK(session.available() == 64_MiB);
        for (const ClassifierData* data : {&small, &large, &small}) {
          session.run(model.train, feeds(model, *data));
          CHECK(session.available() == 64_MiB);
        }
        session.set_memory_limit(16_MiB);
        CHECK(session.available() == 16_MiB);
        session.set_memory_limit({});
        Session other(model.graph, {.device = device});
        // An idle arena counts as available to others, unless its session preallocated it.
        const std::size_t resting =
            growth == memory::Growth::on_demand
                ? device.runtime().profile().in_pages(session.memory().arena_bytes)
                : 0;
        CHECK(other.available() == 64_MiB - session.stats().reserved.current + resting);
      }
      memory::set_limit(device, std::nullopt);
    }
}

TEST_CASE("an arena that cannot grow where it is goes before a larger one comes", "[row14][host]") {
  const ClassifierGraph model;
  for (const bool captures : {true, false}) {
    const Device device = second({.captures_programs = captures, .grows = false});
    const ClassifierData small(kManyRows / 2, device), large(kManyRows, device);
    Session session = trained(model, small, {.device = device});
    session.run(model.train, feeds(model, large));
    CHECK(session.stats().allocated.peak == model.plan(kManyRows, device).peak_bytes);
  }
}

TEST_CASE("what a session has preallocated is its own: at any limit, and no other's arena",
          "[row9][row11][host]") {
  const ClassifierGraph model;
  for (const Device& device : limited_devices()) {
    CAPTURE(device.name());
    const ClassifierData data(kManyRows, device);
    Session session = model.open(
        {.device = device, .memory_limit = 16_MiB, .growth = memory::Growth::preallocate});
    const Tensor fetched = session.run(model.loss, feeds(model, data));
    // A device limit below the reserved bytes refuses new requests only.
    memory::set_limit(device, 1_MiB);
    CHECK_NOTHROW(session.run(model.loss, feeds(model, data)));
    CHECK(session.stats().reserved.current == 16_MiB);
    CHECK_THROWS_AS(Tensor::zeros({1 << 20}, DType::f32, device), OutOfMemory);
    CHECK(session.stats().reserved.current == 16_MiB);
    memory::set_limit(device, std::nullopt);
    // A session's own limit makes it return its unused bytes.
    const std::size_t used = session.stats().allocated.current;
    session.set_memory_limit(used + 64_KiB);
    CHECK(session.stats().reserved.current <= used + 64_KiB);
    CHECK_NOTHROW(session.run(model.loss, feeds(model, data)));
    session.set_memory_limit(std::nullopt);
    CHECK_NOTHROW(session.run(model.train, feeds(model, data)));
  }
}

TEST_CASE("what a device has preallocated is there for its sessions before anything gives way",
          "[row9][row11][host]") {
  const ClassifierGraph model;
  for (const Device& device : limited_devices()) {
    CAPTURE(device.name());
    const ClassifierData data(kManyRows, device);
    memory::set_limit(device, 64_MiB);
    memory::set_growth(device, memory::Growth::preallocate);
    int calls = 0;
    const memory::Watch watch =
        memory::on_pressure(device, [&](const memory::Pressure&) { ++calls; });
    Session first = trained(model, data, {.device = device});
    const std::size_t arena = first.memory().arena_bytes;
    Session second = trained(model, data, {.device = device});
    CHECK(first.memory().arena_bytes == arena);
    CHECK(second.memory().arena_bytes == arena);
    CHECK(calls == 0);
    CHECK(memory::stats(device).reserved.current <= 64_MiB);
  }
}

TEST_CASE("the limits of a session and of its device both hold, as bytes and as fractions",
          "[row10][host]") {
  const ClassifierGraph model;
  for (const Device& device : limited_devices()) {
    CAPTURE(device.name());
    const ClassifierData data(kManyRows, device);
    const std::size_t needs = model.plan(kManyRows, device).reserved_bytes;
    const std::size_t others = reserved(device);
    const auto runs = [&](std::optional<memory::Limit> its, std::optional<memory::Limit> all) {
      memory::set_limit(device, all);
      try {
        trained(model, data, {.device = device, .memory_limit = its});
        memory::set_limit(device, std::nullopt);
        return std::string();
      } catch (const OutOfMemory& error) {
        memory::set_limit(device, std::nullopt);
        return std::string(error.reason() == OutOfMemory::Reason::pool_limit ? "session"
                                                                             : "device");
      }
    };
    const std::size_t fetch = device.runtime().profile().page_bytes;  // at most
    CHECK(runs(needs, std::nullopt) == "");
    CHECK(runs(needs - 1, std::nullopt) == "session");
    CHECK(runs(std::nullopt, others + needs + fetch) == "");
    CHECK(runs(std::nullopt, others + needs - 1) == "device");
    CHECK(runs(needs, others + needs + fetch) == "");
    CHECK(runs(needs - 1, others + needs + fetch) == "session");
    CHECK(runs(needs, others + needs - 1) == "device");
    const auto of_capacity = [&](double bytes) {
      return memory::Limit::fraction(bytes / double(device.runtime().capacity_bytes()));
    };
    CHECK(runs(of_capacity(double(needs)), std::nullopt) == "");
    CHECK(runs(of_capacity(double(needs - 1)), std::nullopt) == "session");
    CHECK(runs(std::nullopt, of_capacity(double(others + needs + fetch))) == "");
    CHECK(runs(std::nullopt, of_capacity(double(others + needs - 1))) == "device");
  }
}

TEST_CASE("a limit lowered takes the arenas of sessions that do not run, and the next run has them",
          "[row10][row11][host]") {
  const ClassifierGraph model;
  for (const Device& device : limited_devices()) {
    CAPTURE(device.name());
    const ClassifierData data(kManyRows, device);
    Session a = trained(model, data, {.device = device}),
            b = trained(model, data, {.device = device});
    auto step = a.prepare(model.train, {model.x, model.y});
    step(data.x, data.y);
    const memory::Breakdown before = a.memory();
    REQUIRE(before.arena_bytes > 0);
    memory::set_limit(device, reserved(device) - 1);  // taking one of the two arenas is enough
    CHECK((a.memory().arena_bytes == 0) + (b.memory().arena_bytes == 0) == 1);
    memory::set_limit(device, 0);
    CHECK(a.memory().arena_bytes + b.memory().arena_bytes == 0);
    CHECK(a.memory().parameter_bytes == before.parameter_bytes);
    CHECK_THROWS_AS(step(data.x, data.y), OutOfMemory);
    memory::set_limit(device, std::nullopt);
    step(data.x, data.y);
    CHECK(a.memory().total_bytes == before.total_bytes);
    CHECK(a.memory().reserved_bytes == before.reserved_bytes);
    // A session's own limit takes its arena as well.
    a.set_memory_limit(0);
    CHECK(a.memory().arena_bytes == 0);
    CHECK(a.memory().parameter_bytes == before.parameter_bytes);
    CHECK_THROWS_AS(step(data.x, data.y), OutOfMemory);
    a.set_memory_limit(before.reserved_bytes);
    step(data.x, data.y);
    CHECK(a.memory().reserved_bytes == before.reserved_bytes);
  }
}

TEST_CASE("a session at the limit takes the arena of one that does not run, in turns and for good",
          "[row11]") {
  EBB_SKIP_WITH_LARGE_PAGES();
  const ClassifierGraph model;
  const Device device = tests::own_test_device();
  const ClassifierData data(kManyRows, device);
  const auto losses = [&](bool limited) {
    memory::set_limit(device, std::nullopt);
    Session a = trained(model, data, {.device = device, .seed = Seed{1}});
    Session b = model.open({.device = device, .seed = Seed{2}});
    auto step_a = a.prepare(model.train, {model.x, model.y});
    auto step_b = b.prepare(model.train, {model.x, model.y});
    const memory::Plan plan = model.plan(kManyRows, device);
    const std::size_t page = device.runtime().profile().page_bytes;
    const std::size_t arena = (plan.arena_bytes + page - 1) / page * page;
    if (limited)  // all but one arena
      memory::set_limit(device, reserved(device) - arena + plan.reserved_bytes -
                                    b.stats().reserved.current + 2 * page);
    std::vector<float> values;
    for (int i = 0; i < 4; ++i)
      for (PreparedStep* step : {&step_a, &step_b}) {
        values.push_back((*step)(data.x, data.y).item<float>());
        if (!limited) continue;
        CHECK((a.memory().arena_bytes > 0) == (step == &step_a));
        CHECK((b.memory().arena_bytes > 0) == (step == &step_b));
      }
    memory::set_limit(device, std::nullopt);
    return values;
  };
  CHECK(losses(true) == losses(false));
}

TEST_CASE("eager work takes an idle arena at the limit: watches first, then arenas, then the cache",
          "[row11][host]") {
  const ClassifierGraph model;
  for (const Device& device : limited_devices()) {
    CAPTURE(device.name());
    const ClassifierData data(16'384, device);
    Session session = trained(model, data, {.device = device});
    const std::size_t arena = session.memory().arena_bytes;
    REQUIRE(arena > 3_MiB);
    { const Tensor cached = Tensor::zeros({1 << 18}, DType::f32, device); }
    const auto now = [&] { return memory::stats(device).reserved.current; };
    const std::size_t all = now();
    memory::set_limit(device, all);
    std::vector<std::string> order;
    const memory::Watch watch = memory::on_pressure(device, [&](const memory::Pressure&) {
      order.push_back(session.memory().arena_bytes == arena ? "watch" : "watch after arenas");
    });
    const Tensor taken = Tensor::zeros({5 << 17}, DType::f32, device);  // 2.5 MiB
    CHECK(session.memory().arena_bytes == 0);
    CHECK(now() >= all - device.runtime().profile().in_pages(arena) + taken.bytes());
    CHECK(memory::fragmentation(device).free_bytes >= 1_MiB);  // the cache is as it was
    const std::size_t before = now();
    memory::set_limit(device, before);
    const Tensor more = Tensor::zeros({9 << 15}, DType::f32, device);  // 1.1 MiB: the cache goes
    CHECK(now() <= before);
    CHECK_THROWS_AS(Tensor::zeros({1 << 22}, DType::f32, device), OutOfMemory);
    CHECK(order.front() == "watch");
    CHECK(order.back() == "watch after arenas");
    memory::set_limit(device, std::nullopt);
    CHECK_NOTHROW(session.run(model.train, feeds(model, data)));
    CHECK(session.memory().arena_bytes == arena);
  }
}

TEST_CASE(
    "a refused larger batch leaves the smaller one able to run, also where the fetch is large",
    "[row11][host]") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 64});
  const Tensor y = square(x) + softmax(x) * x;
  for (const Device& device : limited_devices())
    for (const bool of_session : {false, true}) {
      CAPTURE(device.name(), of_session);
      const auto rows = [&](std::int64_t count) {
        return Tensor::zeros({count, 64}, DType::f32, device);
      };
      const Tensor small = rows(1000), large = rows(20'000);
      Session session(graph, {.device = device});
      session.run(y, {{x, small}});
      if (of_session)
        session.set_memory_limit(session.stats().reserved.current);
      else
        memory::set_limit(device, reserved(device) + small.bytes());
      for (int i = 0; i < 3; ++i) {
        CHECK_THROWS_AS(session.run(y, {{x, large}}), OutOfMemory);
        CHECK_NOTHROW(session.run(y, {{x, small}}));
      }
      memory::set_limit(device, std::nullopt);
    }
}

TEST_CASE("a refused larger batch leaves the arena that was there, however much larger it is",
          "[row11][host]") {
  const ClassifierGraph model;
  const Tensor average = mean(model.scores);
  std::vector<Device> all = limited_devices();
  all.push_back(second({.captures_programs = true, .grows = false}));  // none grows in place
  for (const Device& device : all) {
    CAPTURE(device.name());
    const ClassifierData small(kManyRows, device);
    Session session = trained(model, small, {.device = device});
    const memory::Breakdown before = session.memory();
    const Tensor larger[] = {Tensor::zeros({64 * kManyRows, 16}, DType::f32, device),
                             Tensor::zeros({1200 * kManyRows, 16}, DType::f32, device)};
    for (const bool of_session : {true, false})
      for (const Tensor& x : larger) {
        CAPTURE(of_session, x.shape()[0]);
        if (of_session)
          session.set_memory_limit(before.reserved_bytes + 64_KiB);
        else
          memory::set_limit(device, reserved(device) + 64_KiB);
        CHECK_THROWS_AS(session.run(average, {{model.x, x}}), OutOfMemory);
        CHECK(session.memory().arena_bytes == before.arena_bytes);
        CHECK(session.memory().reserved_bytes == before.reserved_bytes);
        CHECK_NOTHROW(session.run(model.train, feeds(model, small)));
        session.set_memory_limit(std::nullopt);
        memory::set_limit(device, std::nullopt);
      }
  }
}

TEST_CASE("an arena in use is left alone, whatever another thread needs", "[row11][concurrent]") {
  const ClassifierGraph model;
  const Device device = tests::own_test_device();
  const ClassifierData data(64, device);
  float wanted = 0;
  const auto train = [&](Session& session) {
    auto step = session.prepare(model.train, {model.x, model.y});
    for (int i = 0; i < 60; ++i) {
      while (true) try {
          wanted = step(data.x, data.y).item<float>();
          break;
        } catch (const OutOfMemory&) {
          std::this_thread::yield();
        }
    }
    return wanted;
  };
  Session quiet = model.open({.device = device}), session = model.open({.device = device});
  const float expected = train(quiet);
  std::atomic<bool> stop = false;
  std::thread other([&] {
    while (!stop) try {
        memory::set_limit(device, memory::stats(device).reserved.current);
        const Tensor some = Tensor::zeros({1 << 16}, DType::f32, device);
        memory::set_limit(device, 0);
        memory::set_limit(device, std::nullopt);
        std::this_thread::yield();  // else one core might never train
      } catch (const OutOfMemory&) {
        memory::set_limit(device, std::nullopt);
      }
  });
  const float loss = train(session);
  stop = true;
  other.join();
  memory::set_limit(device, std::nullopt);
  CHECK(loss == expected);
}
