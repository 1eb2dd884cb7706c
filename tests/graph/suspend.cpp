// A session that lends its memory to others for a while: MEMORY.md, row 25.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "ebb/core/device/runtime.h"
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/eager/bytes.h"
#include "ebb/tests/failing_allocation.h"
#include "ebb/tests/graph/suspend.h"

using namespace ebb;
using namespace ebb::literals;
using namespace ebb::tests;

TEST_CASE("a session that was suspended, to memory or a file, between any steps loses nothing",
          "[row25]") {
  const TemporaryFolder folder;
  const std::string file = folder.path("suspended");
  for (const Device& device : devices())
    for (const bool to_file : {false, true})
      for (const bool prepared : {false, true}) {
        CAPTURE(device.name(), to_file, prepared);
        Lent lent(device);
        Session& session = lent.session;
        session.close();
        memory::release_cached(device);
        const std::size_t reserved = memory::stats(device).reserved.current;
        const Bytes bytes(device);
        session = lent.make();
        auto step = session.prepare(lent.model.train, {lent.model.x, lent.model.y});
        for (int i = 0; i < Lent::kSteps; ++i) {
          lent.check(prepared ? step(lent.data.x, lent.data.y).item<float>() : lent.run(session));
          const memory::Stats held = session.stats();
          const memory::CloseReport report = to_file ? session.suspend(file) : session.suspend();
          CHECK(report.freed_bytes == held.allocated.current);
          CHECK(report.freed_blocks == held.allocations);
          CHECK(report.returned_bytes == held.reserved.current);
          CHECK(session.suspended());
          CHECK(is_empty(session));
          CHECK(bytes.now() == 0);
          CHECK(std::filesystem::exists(file) == to_file);
          memory::release_cached(device);
          CHECK(memory::stats(device).reserved.current == reserved);
          CHECK((to_file ? session.suspend(file) : session.suspend()).freed_bytes == 0);
          session.resume();
          session.resume();
          CHECK_FALSE(session.suspended());
          CHECK_FALSE(std::filesystem::exists(file));
        }
      }
}

TEST_CASE("a suspended session's variables come back at the addresses that they had", "[row25]") {
  Lent lent;
  Session& session = lent.session;
  lent.steps(1);
  const memory::Plan plan = lent.model.plan(kRows);
  const std::size_t total = session.stats().allocated.total;
  const memory::Breakdown before = session.memory();
  session.suspend();
  session.resume();
  // The arena comes back with the next run.
  CHECK(session.memory().total_bytes == before.total_bytes - plan.arena_bytes);
  CHECK(session.memory().parameter_bytes == before.parameter_bytes);
  CHECK(session.memory().optimizer_state_bytes == before.optimizer_state_bytes);
  lent.steps(1);
  CHECK(session.memory().total_bytes == before.total_bytes);
  CHECK(session.memory().reserved_bytes == before.reserved_bytes);
  CHECK(session.stats().allocated.total == total + plan.peak_bytes);
  CHECK(session.plans() == 1);
}

TEST_CASE("a prepared step whose plan the session has dropped goes on after a resume elsewhere",
          "[row25]") {
  for (const Device& device : devices()) {
    Lent lent(device, {.max_plans = 1});
    auto step = lent.session.prepare(lent.model.train, {lent.model.x, lent.model.y});
    lent.check(step(lent.data.x, lent.data.y).item<float>());
    lent.session.run(lent.model.parameters["out.bias"] * 2);  // by now the only plan kept
    lent.session.suspend();
    const Tensor taken = Tensor::zeros({1 << 16}, DType::f32, device);
    lent.session.resume();
    for (int i = 0; i < 2; ++i) lent.check(step(lent.data.x, lent.data.y).item<float>());
  }
}

TEST_CASE("a run that takes no arena finds its variables wherever a resume has put them",
          "[row25]") {
  Graph graph;
  const Parameters parameters(graph);
  const Tensor w = parameters.declare("w", {1 << 10}, initializers::constant(1));
  const Tensor twice = w * 2;
  for (const Device& device : {without_ranges(false), without_ranges(), Device::cpu()}) {
    CAPTURE(device.name());
    if (!device.runtime().profile().captures_programs)
      CHECK(graph.plan({twice}, {}, device).arena_bytes == 0);
    Session session(graph, {.device = device});
    session.initialize();
    auto prepared = session.prepare(twice, {});
    for (int i = 0; i < 3; ++i) {
      CHECK(prepared().to_vector<float>() == std::vector<float>(1 << 10, 2));
      CHECK(session.run(twice).to_vector<float>() == std::vector<float>(1 << 10, 2));
      session.suspend();
      const Tensor taken = Tensor::zeros({1 << 16}, DType::f32, device);
      session.resume();
    }
    CHECK(prepared().to_vector<float>() == std::vector<float>(1 << 10, 2));
  }
}

TEST_CASE("what needs values of a suspended session says that it is suspended, and closing closes",
          "[row25]") {
  const TemporaryFolder folder;
  const Bytes bytes;
  for (const bool to_file : {false, true}) {
    const std::string file = folder.path("suspended");
    Lent lent;
    Session &session = lent.session, other = lent.make();
    auto step = session.prepare(lent.model.train, {lent.model.x, lent.model.y});
    const auto prepared = [&] { step(lent.data.x, lent.data.y); };
    prepared();
    const Tensor bias = lent.model.parameters["out.bias"];
    session.save(folder.path("saved"));
    to_file ? session.suspend(file) : session.suspend();
    const char* why = "suspended; call resume()";
    CHECK_ERROR(lent.run(session), Error, why);
    CHECK_ERROR(prepared(), Error, why);
    CHECK_ERROR(session.value(bias), Error, why);
    CHECK_ERROR(session.assign(bias, Tensor::zeros({4})), Error, why);
    CHECK_ERROR(session.initialize(), Error, why);
    CHECK_ERROR(session.initialize(lent.model.parameters), Error, why);
    CHECK_ERROR(session.save(folder.path("never")), Error, why);
    CHECK_ERROR(session.restore(folder.path("saved")), Error, why);
    CHECK_ERROR(session.copy_from(other), Error, why);
    CHECK_ERROR(other.copy_from(session), Error, why);
    CHECK(is_empty(session));
    CHECK_FALSE(std::filesystem::exists(folder.path("never")));
    CHECK(session.close().returned_bytes == 0);
    CHECK(session.closed());
    CHECK_FALSE(session.suspended());
    CHECK_FALSE(std::filesystem::exists(file));
    CHECK_ERROR(session.resume(), SessionClosed, "closed");
    CHECK_ERROR(session.suspend(), SessionClosed, "closed");
    CHECK_ERROR(prepared(), SessionClosed, "closed");
  }
  CHECK(bytes.now() == 0);
}

TEST_CASE("a resume that a limit refuses leaves the session suspended, and a later one succeeds",
          "[row25]") {
  EBB_SKIP_WITH_LARGE_PAGES();
  for (const Device& device : devices())
    for (const bool of_session : {false, true}) {
      CAPTURE(device.name(), of_session);
      Lent lent(device);
      Session& session = lent.session;
      lent.steps(2);
      const std::size_t held = session.stats().reserved.current;
      session.suspend();
      const std::size_t page = device.runtime().profile().page_bytes;
      memory::release_cached(device);
      const std::size_t others = memory::stats(device).reserved.current;
      std::size_t refused = 0;
      for (std::size_t limit = 0; session.suspended(); limit += page) {
        if (of_session)
          session.set_memory_limit(limit);
        else
          memory::set_limit(device, others + limit);
        try {
          session.resume();
        } catch (const OutOfMemory& error) {
          ++refused;
          CHECK(session.suspended());
          CHECK(is_empty(session));
          CHECK(memory::stats(device).reserved.current == others);
          CHECK(std::string(error.what()).find("suspended") != std::string::npos);
        }
      }
      CHECK(refused > 2);
      CHECK(session.stats().reserved.current <= refused * page);
      session.set_memory_limit(held);
      memory::set_limit(device, std::nullopt);
      lent.steps(2);
      CHECK(session.stats().reserved.current == held);
    }
}

TEST_CASE("while a session is suspended its memory is what others run in", "[row25]") {
  const Device device = tests::own_test_device();
  Lent lent(device);
  Session &session = lent.session, other = lent.make();
  const tests::ClassifierData large(64 * kRows, device);
  lent.steps(2);
  lent.run(other);
  memory::release_cached(device);
  memory::set_limit(device, memory::stats(device).reserved.current);
  const std::size_t reserved = session.stats().reserved.current;
  // Idle arenas give way before a request is refused, so that only the variables' memory is left.
  session.suspend();
  Tensor taken =
      Tensor::zeros({static_cast<std::int64_t>(reserved / sizeof(float))}, DType::f32, device);
  CHECK_THROWS_AS(session.resume(), OutOfMemory);
  CHECK(session.suspended());
  taken = {};
  session.resume();  // the cache gives way
  memory::set_limit(device, std::nullopt);
  lent.steps(2);
  CHECK_NOTHROW(other.run(lent.model.train, feeds(lent.model, large)));
}

TEST_CASE("a resume of which an allocation fails, or a watch throws, leaves it suspended and empty",
          "[row25][row11][row17]") {
  for (const Device& device : devices()) {
    CAPTURE(device.name());
    Lent lent(device);
    Session& session = lent.session;
    lent.steps(2);
    session.suspend();
    std::size_t failures = 0;
    for (; tests::fails_at(
             failures, [&] { session.resume(); }, device);
         ++failures) {
      CHECK(session.suspended());
      CHECK(is_empty(session));
      session.resume();
      lent.steps(1);
      session.suspend();
    }
    CHECK(failures == 2);  // parameters, slots
    for (int i = 0; i < 2; ++i) {
      session.suspend();
      {
        const memory::Watch watch = memory::on_threshold(
            device, memory::stats(device).allocated.current + 1000,
            [](const memory::Pressure&) { throw std::runtime_error("not now"); });
        CHECK_ERROR(session.resume(), std::runtime_error, "not now");
      }
      CHECK(session.suspended());
      CHECK(is_empty(session));
      session.resume();
      lent.steps(1);
    }
  }
}

TEST_CASE("a variable that holds half a step still does after a resume", "[row25]") {
  Graph graph;
  const Parameters parameters(graph);
  const Tensor w = parameters.declare("w", {8}, initializers::constant(3));
  const Tensor failing = tests::failing(assign(w, w * 2));
  Session session(graph);
  session.initialize();
  CHECK_ERROR(session.run(failing), Error, "as it must");
  const std::string torn = ebb::tests::why_not_thrown<Error>([&] { session.value(w); }, "half a");
  session.suspend();
  session.resume();
  CHECK(ebb::tests::why_not_thrown<Error>([&] { session.value(w); }, "half a") == torn);
  session.initialize();
  CHECK(session.value(w).to_vector<float>() == std::vector<float>(8, 3));
}

TEST_CASE("a variable without a value, and none at all, are suspended as they are", "[row25]") {
  Graph graph;
  const Parameters parameters(graph);
  {
    Session nothing(graph);
    CHECK(nothing.suspend().freed_bytes == 0);
    CHECK(nothing.suspended());
    nothing.resume();
    CHECK_FALSE(nothing.suspended());
  }
  const Tensor w = parameters.declare("w", {8}, initializers::constant(3));
  Session session(graph);
  CHECK_ERROR(session.value(w), Error, "has no value");
  session.suspend();
  session.resume();
  CHECK_ERROR(session.value(w), Error, "has no value");
  session.suspend();
  const Tensor later = parameters.declare("later", {1000}, initializers::constant(4));
  session.resume();
  session.initialize();
  CHECK(session.value(later).to_vector<float>()[999] == 4);
  CHECK(session.value(w).to_vector<float>()[7] == 3);
}

TEST_CASE("a twin counts a suspension as the device does", "[row25]") {
  const ClassifierGraph model(0.5);
  const auto figures = [&](const Device& device) {
    const tests::ClassifierData data(kRows, device);
    Session session = model.open({.device = device});
    std::vector<std::size_t> seen;
    const auto look = [&] {
      const memory::Stats stats = session.stats();
      for (const memory::Figure& each : {stats.allocated, stats.reserved})
        seen.insert(seen.end(), {each.current, each.peak, each.total});
    };
    for (int i = 0; i < 3; ++i) {
      session.run(model.train, feeds(model, data));
      look();
      const memory::CloseReport report = session.suspend();
      seen.insert(seen.end(), {report.freed_blocks, report.freed_bytes, report.returned_bytes});
      look();
      session.resume();
      look();
    }
    return seen;
  };
  for (const Device& device : devices()) CHECK(figures(device) == figures(device.twin()));
}

TEST_CASE("runs on several threads meet a suspension as an Error or not at all",
          "[row25][concurrent]") {
  const Lent lent;
  for (int round = 0; round < 5; ++round) {
    Session session = lent.make();
    std::atomic<int> ran = 0, others = 0;
    std::atomic<bool> stop = false;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        while (!stop) try {
            lent.run(session);
            ++ran;
          } catch (const OutOfMemory&) {
          } catch (const Error& error) {
            others += std::string(error.what()).find("suspended") == std::string::npos;
          }
      });
    threads.emplace_back([&] {  // a thread that is short of memory
      while (!stop) {
        memory::set_limit(Device::cpu(), memory::stats(Device::cpu()).reserved.current / 2);
        memory::set_limit(Device::cpu(), std::nullopt);
        std::this_thread::yield();
      }
    });
    for (int i = 0; i < 20 || ran < 20; ++i) {
      session.suspend();
      while (session.suspended()) try {
          session.resume();
        } catch (const OutOfMemory&) {
        }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // a mutex serves no queue
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
    memory::set_limit(Device::cpu(), std::nullopt);
    CHECK(others == 0);
    CHECK(lent.run(session) > 0);
  }
}
