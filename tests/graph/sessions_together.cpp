// Several sessions, eager work beside them, and sessions that end in errors: MEMORY.md, rows 1 to
// 3.
#include <algorithm>
#include <atomic>
#include <functional>
#include <numeric>
#include <random>
#include <stdexcept>
#include <thread>

#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/eager/bytes.h"
#include "ebb/tests/graph/models.h"

using namespace ebb;
using ebb::tests::Bytes;
using ebb::tests::ClassifierData;
using ebb::tests::ClassifierGraph;
using ebb::tests::reserved;

namespace {

constexpr std::int64_t kBatch = 8;

// Returns the losses of an eager training; before(i) is called before each step.
template <class Before>
std::vector<float> train_eagerly(const ClassifierData& data, int steps, const Before& before) {
  const Parameters parameters(Device::cpu(), Seed{7});
  const models::Dense hidden(parameters.scope("hidden"), 16, 32, Activation::relu);
  const models::Dense out(parameters.scope("out"), 32, 4);
  std::vector<float> losses;
  for (int i = 0; i < steps; ++i) {
    before(i);
    const Tensor loss = softmax_cross_entropy(out(hidden(data.x)), data.y);
    losses.push_back(optim::Adam().minimize(loss, parameters).item<float>());
  }
  return losses;
}

std::vector<std::size_t> shuffled(std::size_t count, unsigned seed) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  return order;
}

}  // namespace

TEST_CASE("sessions close from several threads, each returning its own, beside an eager program",
          "[row1][row3][concurrent]") {
  constexpr std::size_t kSessions = 12, kThreads = 3;
  constexpr int kSteps = 20;
  const ClassifierGraph model;
  const ClassifierData data(kBatch);
  const memory::Plan plan = model.plan(kBatch);
  const std::vector<float> quiet = train_eagerly(data, kSteps, [](int) {});
  const auto last_loss = [&](Session& session, int steps) {
    float loss = 0;
    for (int i = 0; i < steps; ++i)
      loss = session.run(model.train, feeds(model, data)).item<float>();
    return loss;
  };
  float second_loss = 0;
  {
    Session session = model.open();
    second_loss = last_loss(session, 2);
  }
  const std::size_t reserved_before = reserved(Device::cpu());
  const Bytes bytes;
  for (unsigned round = 0; round < 4; ++round) {
    std::vector<Session> sessions;
    for (std::size_t i = 0; i < kSessions; ++i) {
      sessions.push_back(model.open());
      sessions.back().run(model.train, feeds(model, data));
    }
    CHECK(bytes.now() == kSessions * plan.peak_bytes);
    const std::vector<std::size_t> order = shuffled(kSessions, round);
    std::atomic<bool> begin{false};
    std::atomic<std::size_t> exact{0};
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        while (!begin) std::this_thread::yield();
        for (std::size_t i = t; i < kSessions; i += kThreads) {
          Session& session = sessions[order[i]];
          const float loss = last_loss(session, 1);
          const memory::CloseReport report = session.close();
          exact += loss == second_loss && report.freed_bytes == plan.peak_bytes &&
                   report.returned_bytes == plan.reserved_bytes;
        }
      });
    const std::vector<float> losses =
        train_eagerly(data, kSteps, [&](int i) { begin = begin || i == 2; });
    for (std::thread& thread : threads) thread.join();
    CHECK(losses == quiet);
    CHECK(exact == kSessions);
    CHECK(bytes.now() == 0);
    CHECK(reserved(Device::cpu()) == reserved_before);
  }
}

TEST_CASE("a thousand small sessions reserve what they use, rounded to pages, closed in any order",
          "[row3]") {
  // Each piece of work of the emulated GPU looks at every stream: a thousand sessions would be
  // slow.
  const std::size_t count = tests::on_host() ? 1000 : 100;
  for (const Device& device : {Device::cpu(), Device::cpu().twin()}) {
    CAPTURE(device.name());
    const ClassifierGraph model;
    const ClassifierData data(kBatch, device);
    const memory::Plan plan = model.plan(kBatch, device);
    // Parameters, slots and arena have a segment each.
    CHECK(plan.reserved_bytes < plan.peak_bytes + 3 * device.runtime().profile().page_bytes);
    std::vector<Session> sessions;
    const Bytes bytes(device);
    const std::size_t before = reserved(device);
    for (std::size_t i = 0; i < count; ++i) {
      sessions.push_back(model.open({.device = device}));
      sessions.back().run(model.train, feeds(model, data));
    }
    CHECK(bytes.now() == count * plan.peak_bytes);
    CHECK(reserved(device) - before == count * plan.reserved_bytes);
    const std::vector<std::size_t> order = shuffled(count, 5);
    Session& last = sessions[order.back()];
    const memory::Stats of_last = last.stats();
    for (std::size_t closed = 1; closed < count; ++closed) {
      const memory::CloseReport report = sessions[order[closed - 1]].close();
      REQUIRE(report.freed_bytes == plan.peak_bytes);
      REQUIRE(report.returned_bytes == plan.reserved_bytes);
      REQUIRE(bytes.now() == (count - closed) * plan.peak_bytes);
      // A close changes nothing of another session.
      REQUIRE(last.stats().allocated == of_last.allocated);
      REQUIRE(last.stats().reserved == of_last.reserved);
      REQUIRE(last.stats().allocations == of_last.allocations);
    }
    CHECK_NOTHROW(last.run(model.train, feeds(model, data)));
    last.close();
    CHECK(reserved(device) == before);
  }
}

TEST_CASE("a session that dies by an exception gives everything back", "[row1][row2]") {
  const ClassifierGraph model;
  const Tensor failing = tests::failing(model.train);
  const ClassifierData data(kBatch);
  const std::size_t reserved_before = reserved(Device::cpu());
  const Bytes bytes;
  using Death = std::function<void(Session&)>;
  const std::vector<Death> deaths = {
      [](Session&) { throw std::runtime_error("the program's own"); },
      [&](Session& session) { session.run(failing, feeds(model, data)); },
      [&](Session& session) { session.run(model.train); },  // nothing is fed
      [&](Session& session) {
        session.set_memory_limit(session.memory().reserved_bytes);
        const ClassifierData more(1000 * kBatch);
        session.run(model.train, feeds(model, more));
      },
      [&](Session& session) { session.restore("nowhere.safetensors"); },
  };
  for (std::size_t i = 0; i < deaths.size(); ++i)
    for (const bool ran : {false, true}) {
      CAPTURE(i, ran);
      const auto dies = [&] {
        Session session = model.open();
        auto step = session.prepare(model.train, {model.x, model.y});
        if (ran) step(data.x, data.y);
        deaths[i](session);
      };
      CHECK_THROWS_AS(dies(), std::exception);
      CHECK(bytes.now() == 0);
      CHECK(reserved(Device::cpu()) == reserved_before);
    }
}
