// Watches of a device's memory that act in the middle of a run: MEMORY.md, row 17.
#include <atomic>
#include <stdexcept>
#include <thread>

#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/eager/bytes.h"
#include "ebb/tests/graph/models.h"

using namespace ebb;
using namespace ebb::literals;
using ebb::tests::ClassifierData;
using ebb::tests::ClassifierGraph;

namespace {

// Limits the CPU, for a scope, to so many bytes more than it has reserved now.
class Room {
 public:
  explicit Room(std::size_t bytes) {
    memory::set_limit(Device::cpu(), tests::reserved(Device::cpu()) + bytes);
  }
  ~Room() { memory::set_limit(Device::cpu(), std::nullopt); }
};

Tensor mib(std::int64_t size) { return Tensor::zeros({size << 18}); }

// A session that runs out of room for its first arena unless a watch frees some.
struct Short {
  ClassifierGraph model;
  ClassifierData data{1024};
  // The loss of a run that has room.
  float wanted = model.open({.seed = Seed{1}}).run(model.train, feeds(model, data)).item<float>();
  Session session = model.open({.seed = Seed{1}});

  float run() { return session.run(model.train, feeds(model, data)).item<float>(); }
};

}  // namespace

TEST_CASE("a watch that frees tensors lets the run that is short of memory go on", "[row17]") {
  Short is_short;
  Tensor held = mib(4);
  const Room room(0);
  CHECK_THROWS_AS(is_short.run(), OutOfMemory);
  int calls = 0;
  const memory::Watch watch = memory::on_pressure(Device::cpu(), [&](const memory::Pressure& why) {
    ++calls;
    CHECK(why.missing_bytes > 0);
    CHECK(why.requested_bytes > 0);
    held = {};
    memory::release_cached(Device::cpu());
  });
  CHECK(is_short.run() == is_short.wanted);
  CHECK(calls >= 1);
}

TEST_CASE("a watch may close or suspend another session, plan the graph that runs, and allocate",
          "[row17]") {
  Short is_short;
  const auto other = [&] {
    Session session = is_short.model.open();
    session.run(is_short.model.train, feeds(is_short.model, is_short.data));
    return session;
  };
  for (const bool closes : {true, false}) {
    CAPTURE(closes);
    is_short.session = is_short.model.open({.seed = Seed{1}});
    Session first = other(), second = other();
    const Room room(0);
    int calls = 0;
    const memory::Watch watch = memory::on_pressure(Device::cpu(), [&](const memory::Pressure&) {
      ++calls;
      for (Session* each : {&first, &second}) closes ? each->close() : each->suspend();
      CHECK(is_short.model.plan(64).peak_bytes > 0);
      const Tensor small = Tensor::zeros({16});
      CHECK(is_short.session.memory().parameter_bytes > 0);
      CHECK_FALSE(is_short.session.closed());
      CHECK_FALSE(is_short.session.suspended());
      CHECK(is_short.session.plans() == 0);
    });
    CHECK(is_short.run() == is_short.wanted);
    CHECK(calls >= 1);
  }
}

TEST_CASE("a watch may free what a session was given to run with or to assign", "[row17]") {
  Short is_short;
  Session& session = is_short.session;
  const ClassifierGraph& model = is_short.model;
  const Tensor bias = model.parameters["out.bias"], weight = model.parameters["hidden.weight"];
  std::vector<Tensor> cache;
  Feeds fed;
  const auto begin = [&] {
    const ClassifierData data{1024};
    cache = {data.x, data.y, Tensor::full({16, 32}, 0.25)};
    fed = feeds(model, data);
  };
  const std::vector<std::pair<const char*, std::function<std::vector<float>()>>> uses = {
      {"run", [&] { return session.run(model.train, fed).to_vector<float>(); }},
      {"a prepared step",
       [&] {
         auto step = session.prepare(model.train, {model.x, model.y});
         return step(cache[0], cache[1]).to_vector<float>();
       }},
      {"assign",
       [&] {
         session.assign(weight, cache[2]);
         return session.value(weight).to_vector<float>();
       }},
  };
  for (const auto& [name, use] : uses) {
    INFO(name);
    std::vector<float> wanted;
    for (const bool watched : {false, true}) {
      session = Session(model.graph, {.seed = Seed{1}});
      begin();
      if (name != std::string("assign")) session.initialize(model.parameters);
      int calls = 0;
      memory::Watch watch;
      if (watched)
        watch = memory::on_threshold(Device::cpu(), memory::stats(Device::cpu()).allocated.current,
                                     [&](const memory::Pressure&) {
                                       ++calls;
                                       std::vector<Tensor>().swap(cache);
                                       Feeds().swap(fed);
                                       memory::release_cached(Device::cpu());
                                       Tensor::full({1024, 16}, 1e9);  // overwrites free memory
                                     });
      const std::vector<float> values = use();
      if (!watched)
        wanted = values;
      else
        CHECK((values == wanted && calls > 0));
    }
  }
}

TEST_CASE("a session that is used from within its own run says so, and the run goes on or fails",
          "[row17]") {
  Short is_short;
  Session& session = is_short.session;
  const Tensor bias = is_short.model.parameters["out.bias"];
  auto step = session.prepare(is_short.model.train, {is_short.model.x, is_short.model.y});
  const std::vector<std::function<void()>> uses = {
      [&] { session.close(); },
      [&] { session.suspend(); },
      [&] { session.resume(); },
      [&] { is_short.run(); },
      [&] { step(is_short.data.x, is_short.data.y); },
      [&] { session.value(bias); },
      [&] { session.initialize(); },
      [&] { session.copy_from(session); },
  };
  for (std::size_t i = 0; i < uses.size(); ++i) {
    CAPTURE(i);
    const Room room(0);
    {
      bool catches = true;
      const memory::Watch watch = memory::on_pressure(Device::cpu(), [&](const memory::Pressure&) {
        if (!catches) return uses[i]();
        CHECK_ERROR(uses[i](), Error, "in the middle of something on this thread");
      });
      CHECK_THROWS_AS(is_short.run(), OutOfMemory);
      catches = false;
      CHECK_ERROR(is_short.run(), Error, "in the middle of something on this thread");
    }
    CHECK_FALSE(session.closed());
    CHECK_FALSE(session.suspended());
  }
  CHECK(is_short.run() == is_short.wanted);  // no random number was drawn, nothing was updated
}

TEST_CASE("a session's handle may go within what it does, which ends as if it had not", "[row17]") {
  const tests::Bytes bytes;
  {
    const ClassifierGraph model;
    const ClassifierData data(1024);
    Session other(model.graph, {.seed = Seed{1}});
    other.initialize();
    std::optional<Session> session;
    std::optional<PreparedStep> step;
    const std::function<std::optional<float>()> uses[] = {
        [&] { return (*step)(data.x, data.y).item<float>(); },
        [&] { return session->run(model.train, feeds(model, data)).item<float>(); },
        [&] { return session->initialize(), std::nullopt; },
        [&] { return session->copy_from(other), std::nullopt; }};
    const float wanted = other.run(model.train, feeds(model, data)).item<float>();
    for (std::size_t i = 0; i < std::size(uses); ++i) {
      CAPTURE(i);
      session.emplace(model.graph, SessionOptions{.seed = Seed{1}});
      if (i < 2) session->initialize();
      step.emplace(session->prepare(model.train, {model.x, model.y}));
      Tensor held = mib(4);
      const Room room(0);
      int calls = 0;
      const memory::Watch watch = memory::on_pressure(Device::cpu(), [&](const memory::Pressure&) {
        ++calls;
        session.reset();
        held = {};
        memory::release_cached(Device::cpu());
      });
      CHECK(uses[i]().value_or(wanted) == wanted);
      CHECK(calls >= 1);
      CHECK_ERROR((*step)(data.x, data.y), SessionClosed, "closed");
    }
  }
  memory::release_cached(Device::cpu());
  CHECK(bytes.now() == 0);
}

TEST_CASE("a session's handle may go in a watch while another thread runs it: it closes with that",
          "[row17][concurrent]") {
  const ClassifierGraph model;
  const ClassifierData data(1024);
  for (const bool moves : {false, true}) {
    CAPTURE(moves);
    std::optional<Session> session = model.open();
    auto step = session->prepare(model.train, {model.x, model.y});
    const tests::Bytes others;
    const std::size_t before = others.now() - session->stats().allocated.current;
    std::atomic<bool> is_inside = false, is_gone = false;
    std::string why;
    {
      const Room room(0);
      const std::thread::id mine = std::this_thread::get_id();
      const memory::Watch watch = memory::on_pressure(Device::cpu(), [&](const memory::Pressure&) {
        if (std::this_thread::get_id() == mine) {
          if (moves)
            *session = Session(model.graph);
          else
            session.reset();
          is_gone = true;
        } else {
          is_inside = true;
          while (!is_gone) std::this_thread::yield();
        }
      });
      std::thread runs([&] {
        why = ebb::tests::why_not_thrown<OutOfMemory>([&] { step(data.x, data.y); }, "no room");
      });
      while (!is_inside) std::this_thread::yield();
      CHECK_THROWS_AS(mib(4), OutOfMemory);
      runs.join();
    }
    CHECK(why == "");
    CHECK(others.now() == before);  // though the prepared step still exists
    CHECK_ERROR(step(data.x, data.y), SessionClosed, "closed");
  }
}

TEST_CASE("what a watch throws is what the run throws, and nothing has changed", "[row17][row11]") {
  EBB_SKIP_WITH_LARGE_PAGES();
  Short is_short;
  const memory::Stats before = is_short.session.stats();
  {
    const Room room(0);
    const memory::Watch watch = memory::on_pressure(
        Device::cpu(), [](const memory::Pressure&) { throw std::runtime_error("the user's own"); });
    CHECK_ERROR(is_short.run(), std::runtime_error, "the user's own");
    CHECK_ERROR(mib(1), std::runtime_error, "the user's own");
  }
  // A threshold's watch is called after the allocation: if it throws, the memory goes back.
  {
    const memory::Watch watch = memory::on_threshold(
        Device::cpu(), memory::stats(Device::cpu()).allocated.current + 1000,
        [](const memory::Pressure&) { throw std::runtime_error("the user's own"); });
    CHECK_ERROR(is_short.run(), std::runtime_error, "the user's own");
  }
  CHECK(is_short.session.stats().allocated.current == before.allocated.current);
  CHECK(is_short.session.stats().reserved.current == before.reserved.current);
  CHECK(is_short.session.plans() == 0);
  CHECK(is_short.run() == is_short.wanted);
}

TEST_CASE("a threshold tells a training to take smaller batches, which it does from then on",
          "[row17]") {
  const ClassifierGraph model;
  Session session = model.open();
  std::int64_t rows = 2048;
  int calls = 0;
  const std::size_t held = memory::stats(Device::cpu()).allocated.current;
  const std::size_t threshold = held + model.plan(1400).peak_bytes;
  const memory::Watch watch =
      memory::on_threshold(Device::cpu(), threshold, [&](const memory::Pressure& why) {
        ++calls;
        CHECK(why.allocated_bytes > threshold);
        while (held + model.plan(rows).peak_bytes > threshold) rows /= 2;
      });
  for (int i = 0; i < 6; ++i) {
    const std::int64_t now = rows;
    const ClassifierData data(now);
    session.run(model.train, feeds(model, data));
    CHECK(calls == 1);
    if (i > 0) CHECK(now == 1024);
    if (rows < now) {  // returns the bytes that the larger batches took
      session.suspend();
      session.resume();
    }
  }
}

TEST_CASE("two threads whose watch closes the other's session do not wait for each other for ever",
          "[row17][concurrent]") {
  const ClassifierGraph model;
  const ClassifierData data(256);
  for (int round = 0; round < 10; ++round) {
    Session a = model.open(), b = model.open();
    std::atomic<int> errors = 0;
    const Room room(0);
    const memory::Watch watch = memory::on_pressure(Device::cpu(), [&](const memory::Pressure&) {
      for (Session* each : {&a, &b}) try {
          each->close();
        } catch (const Error&) {
          ++errors;
        }
    });
    std::atomic<int> ready = 0;
    const auto run = [&](Session& session) {
      ++ready;
      while (ready < 2) std::this_thread::yield();
      for (int i = 0; i < 20; ++i) try {
          session.run(model.train, feeds(model, data));
        } catch (const Error&) {
        }
    };
    std::thread other([&] { run(b); });
    run(a);
    other.join();
    CHECK(errors > 0);
  }
}
