// Values that a budget moves to page-locked memory of the host and back.
#include "ebb/core/base/error.h"
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/cuda/fixture.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

// A training step with activations of 256 KiB. batch_norm keeps it from being cut.
struct Normed {
  static constexpr std::int64_t kRows = 4096, kWidth = 16;
  Graph graph;
  Tensor x, loss;
  Parameters params{graph, Seed{1}};

  explicit Normed(int layers) {
    x = graph.placeholder("x", DType::f32, {-1, kWidth});
    Tensor y = x;
    for (int i = 0; i < layers; ++i) {
      const Parameters own = params.scope("layer" + std::to_string(i));
      y = tanh(models::BatchNorm(own.scope("norm"), kWidth)(
          models::Dense(own.scope("dense"), kWidth, kWidth)(y), Phase::training));
    }
    loss = optim::Sgd({.learning_rate = 0.1}).minimize(mean(square(y)), params);
  }
  memory::Plan plan(const Device& device, std::optional<std::size_t> budget = {}) const {
    memory::PlanOptions options{.details = true};
    if (budget) options.budget = *budget;
    return graph.plan({loss}, {{x, {kRows, kWidth}}}, device, options);
  }
  std::size_t least(const Device& device) const {
    return graph.least_budget({loss}, {{x, {kRows, kWidth}}}, device);
  }
  Session open(const Device& device, std::optional<std::size_t> budget = {}) const {
    SessionOptions options{.device = device, .seed = Seed{3}};
    if (budget) options.budget = *budget;
    Session session(graph, options);
    session.initialize(params);
    return session;
  }
  Tensor feed() const { return Tensor::from(ramp(kRows * kWidth), {kRows, kWidth}); }
  // Losses of some runs: one that is launched, one that is captured, and replays.
  std::vector<float> run(Session& session, int runs = 4) const {
    std::vector<float> losses;
    for (int i = 0; i < runs; ++i) losses.push_back(session.run(loss, {{x, feed()}}).item<float>());
    return losses;
  }
};

// Number of values that come back before the step just ahead of their reader.
std::size_t ahead_of_need(const memory::Plan& plan) {
  const auto is = [&](std::size_t step, const char* name) {
    return std::string(plan.details->steps[step].tag.operator_name) == name;
  };
  std::size_t count = 0;
  for (std::size_t s = 0; s + 1 < plan.details->steps.size(); ++s)
    count += is(s, "move_in") && !is(s + 1, "moved") && !is(s + 1, "move_in");
  return count;
}

}  // namespace

TEST_CASE("values moved to the host change no number, and take what the plan says",
          "[row14][row18]") {
  const Machine machine;
  const Normed model(6);
  const Device device = own_cuda(true);
  memory::CachingAllocator& locked = *device.runtime().staging();
  const std::size_t least = model.least(device), most = model.plan(device).reserved_bytes;
  Session free = model.open(device);
  const std::vector<float> right = model.run(free);
  free.close();
  std::size_t moved = 0, ahead = 0;
  for (std::uint64_t seed = 1; seed <= 2; ++seed)
    for (const std::size_t budget : {least, least + (most - least) / 2})
      for (const bool poisons : {false, true}) {
        CAPTURE(seed, budget, poisons);
        machine->set_seed(seed);
        device.runtime().set_poisons(poisons);
        const memory::Plan plan = model.plan(device, budget);
        CHECK(model.plan(device.twin(), budget).describe() == plan.describe());
        const std::size_t graphs = machine.statistics().graph_launches;
        Session session = model.open(device, budget);
        CHECK(model.run(session) == right);
        CHECK((machine.statistics().graph_launches > graphs) == !poisons);
        CHECK(session.stats().reserved.peak == plan.reserved_bytes);
        CHECK(session.stats().allocated.peak == plan.peak_bytes);
        CHECK(plan.reserved_bytes <= budget);
        CHECK(session.memory().page_locked_bytes == plan.page_locked_bytes);
        CHECK(locked.reserved_bytes() ==
              locked.profile().in_pages(plan.page_locked_bytes) + session.memory().staged_bytes);
        moved += plan.moved_values;
        ahead += ahead_of_need(plan);
        session.close();
        CHECK(locked.reserved_bytes() == 0);
      }
  CHECK(moved > 0);
  CHECK(ahead > 0);
  CHECK(std::string(machine->last_complaint()) == "");
}

TEST_CASE("a compiled step moves values to the host for a budget, and computes the same",
          "[row18][row21]") {
  const Machine machine;
  const Device device = own_cuda(true);
  const Tensor x = Tensor::from(ramp(8192 * 16), {8192, 16}, device);
  const auto train = [&](std::optional<memory::Limit> budget, std::vector<float>& losses) {
    const Parameters params(device, Seed{7});
    const models::Mlp model(params, {16, 16, 16, 16, 16, 16, 16, 1});
    const optim::Sgd sgd({.learning_rate = 0.1});
    const auto step =
        compile([&](const Tensor& in) { return sgd.minimize(mean(square(model(in))), params); },
                {.budget = budget});
    for (int i = 0; i < 3; ++i) losses.push_back(step(x).item<float>());
    CHECK(step.memory().page_locked_bytes == step.plan(x).page_locked_bytes);
    return step.plan(x);
  };
  std::vector<float> right;
  std::size_t budget = train({}, right).reserved_bytes;
  memory::Plan plan;
  try {
    while (plan.moved_values == 0) {
      budget -= device.runtime().profile().page_bytes;
      std::vector<float> losses;
      plan = train(budget, losses);
      CHECK(losses == right);
      CHECK(plan.reserved_bytes <= budget);
    }
  } catch (const Error& error) {
    FAIL_CHECK("no budget moves a value: " << error.what());
  }
  CHECK(device.runtime().staging()->reserved_bytes() == 0);
}

TEST_CASE("optimizer state that a budget has no room for stays on the host, and trains the same",
          "[row11][row14][row18]") {
  const Machine machine;
  const Device device = own_cuda(true);
  memory::CachingAllocator& locked = *device.runtime().staging();
  const memory::Profile& profile = device.runtime().profile();
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 16});
  const Parameters params(graph, Seed{1});
  const Tensor error = mean(square(models::Mlp(params, {16, 4096, 64, 16})(x)));
  const Tensor loss = optim::Adam({.learning_rate = 0.01}).minimize(error, params);
  const FedShapes shapes{{x, {4, 16}}};
  const Tensor fed = Tensor::from(ramp(64), {4, 16});
  const auto run = [&](Session& session) { return session.run(loss, {{x, fed}}).item<float>(); };
  const memory::Plan all = graph.plan({loss}, shapes, device);
  // No less would do, were the state on the device.
  const std::size_t budget =
      profile.in_pages(all.parameter_bytes) + profile.in_pages(all.optimizer_state_bytes);
  const memory::Plan plan = graph.plan({loss}, shapes, device, {.budget = budget});
  CHECK(plan.host_state_bytes == all.optimizer_state_bytes);
  CHECK(plan.optimizer_state_bytes == 0);
  CHECK(plan.reserved_bytes <= budget);
  CHECK(plan.moved_bytes > 3 * plan.host_state_bytes / 2);
  CHECK(plan.moved_bytes <= 2 * plan.host_state_bytes);
  const std::size_t least = graph.least_budget({loss}, shapes, device);
  CHECK(least < budget);
  Session free(graph, {.device = device, .seed = Seed{3}});
  free.initialize();
  const TemporaryFolder folder;
  const std::string file = folder.path("state.safetensors");
  std::vector<float> right;
  for (std::size_t i = 0; i < 6; ++i) {
    if (i == 3) free.save(file);
    right.push_back(run(free));
  }

  Session session(graph, {.device = device, .budget = budget, .seed = Seed{3}});
  session.initialize();
  device.runtime().allocator().fail_allocation_after(1);  // after the fetch
  CHECK_THROWS_AS(run(session), OutOfMemory);
  device.runtime().allocator().fail_allocation_after(~std::size_t{0});
  session.value(params.slots()[0].tensor);
  CHECK(session.memory().page_locked_bytes == 0);
  for (std::size_t i = 0; i < 3; ++i) CHECK(run(session) == right[i]);
  CHECK(session.stats().reserved.peak == plan.reserved_bytes);
  CHECK(session.memory().optimizer_state_bytes == 0);
  CHECK(session.memory().page_locked_bytes == plan.page_locked_bytes);
  CHECK(locked.allocated_bytes() == plan.page_locked_bytes);
  session.suspend();
  session.resume();
  for (std::size_t i = 3; i < 6; ++i) CHECK(run(session) == right[i]);
  SECTION("restored where it lies") {
    session.restore(file);
    for (std::size_t i = 3; i < 6; ++i) CHECK(run(session) == right[i]);
  }
  SECTION("restored before the first step, with and without room on the device") {
    const bool has_room = GENERATE(false, true);
    Session other(graph, {.device = device, .budget = has_room ? budget : least});
    other.restore(file);
    const std::size_t on_device = has_room ? all.optimizer_state_bytes : 0;
    if (has_room) {
      locked.fail_allocation_after(0);
      CHECK_THROWS_AS(run(other), OutOfMemory);
      locked.fail_allocation_after(~std::size_t{0});
    }
    machine->inject(emulated::Fault::copy, has_room ? 3 : 0, 1);
    CHECK_THROWS_AS(other.run(error, {{x, fed}}), Error);
    CHECK(other.memory().optimizer_state_bytes == on_device);
    other.run(error, {{x, fed}});  // has no room beside the state, which it does not read
    CHECK(other.memory().optimizer_state_bytes == 0);
    for (std::size_t i = 3; i < 6; ++i) CHECK(run(other) == right[i]);
    CHECK(other.memory().optimizer_state_bytes == 0);
    other.save(file);
    session.copy_from(other);
    free.restore(file);
    CHECK(run(free) == run(other));
  }
  session.close();
  CHECK(locked.reserved_bytes() == 0);
  CHECK(std::string(machine->last_complaint()) == "");
}

TEST_CASE("state that moves to the host between steps is found there by plans of before",
          "[row14][row18]") {
  const Machine machine;
  const Device device = own_cuda(true);
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 16});
  const Parameters params(graph, Seed{1});
  const Tensor objective = mean(square(models::Mlp(params, {16, 4096, 16})(x)));
  const Tensor loss = optim::Adam().minimize(objective, params);
  const std::size_t slots = params.slots().size();
  const Tensor other = optim::Sgd({.momentum = 0.9}).minimize(objective, params);
  const std::size_t budget = graph.plan({loss}, {{x, {1, 16}}}, device).reserved_bytes;
  Session free(graph, {.device = device}), session(graph, {.device = device, .budget = budget});
  free.initialize();
  session.copy_from(free);
  const auto check = [&](std::int64_t rows) {
    const Tensor fed = Tensor::full({rows, 16}, 0.5);
    const float right = free.run(loss, {{x, fed}}).item<float>();
    CHECK(session.run(loss, {{x, fed}}).item<float>() == tests::Approx(right));
  };
  check(1);
  CHECK(session.memory().optimizer_state_bytes > 0);
  SECTION("for a larger batch") { check(256); }
  SECTION("for another optimizer's slots") {
    for (std::size_t i = slots; i < params.slots().size(); ++i)
      session.value(params.slots()[i].tensor);
    CHECK(session.stats().allocated.current == session.memory().parameter_bytes);
  }
  for (int i = 0; i < 3; ++i) check(1);
  CHECK(session.memory().optimizer_state_bytes == 0);
  CHECK(session.stats().reserved.peak <= budget);
}

TEST_CASE("a run that fails while values move leaves nothing behind, and the next one is right",
          "[row11]") {
  const Machine machine;
  const Device device = own_cuda(true);
  memory::CachingAllocator& locked = *device.runtime().staging();
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {1 << 17});
  // Needs three others and x to be computed again, and no room for them where it is read.
  Tensors made{x, x * 2, x * 3};
  for (std::size_t i = 3; i < 12; ++i)
    made.push_back(tanh(made[i - 1] + made[i - 2] + made[i - 3]));
  Tensor y = made[11];
  for (std::size_t i = 11; i-- > 1;) y = y * made[i] + made[i];
  const FedShapes shapes{{x, {1 << 17}}};
  const std::size_t least = graph.least_budget({y}, shapes, device);
  const memory::Plan plan = graph.plan({y}, shapes, device, {.budget = least});
  REQUIRE(plan.moved_values > 2);
  const Tensor fed = Tensor::from(ramp(1 << 17), {1 << 17});
  Session free(graph, {.device = device});
  const std::vector<float> right = free.run(y, {{x, fed}}).to_vector<float>();
  free.close();
  const auto run = [&](Session& session) { return session.run(y, {{x, fed}}).to_vector<float>(); };

  SECTION("the host locks no more memory") {
    Session session(graph, {.device = device, .budget = least});
    locked.set_limit(plan.page_locked_bytes / 2);
    CHECK_THROWS_WITH(run(session), Catch::Contains("out of memory on page-locked") &&
                                        Catch::Contains("values that plans move to the host"));
    CHECK(locked.reserved_bytes() == 0);
    CHECK(session.memory().total_bytes == 0);
    CHECK(session.plans() == 0);
    locked.set_limit(std::nullopt);
    CHECK(run(session) == right);
    session.suspend();
    CHECK(locked.reserved_bytes() == 0);
    session.resume();
    CHECK(run(session) == right);
  }
  SECTION("the device has no more memory") {
    Session session(graph, {.device = device, .budget = least});
    device.runtime().allocator().fail_allocation_after(1);  // after the fetch
    CHECK_THROWS_AS(run(session), OutOfMemory);
    device.runtime().allocator().fail_allocation_after(~std::size_t{0});
    CHECK(locked.reserved_bytes() == 0);
    CHECK(run(session) == right);
  }
  SECTION("a copy or a launch fails") {
    std::size_t failures = 0;
    for (const emulated::Fault fault : {emulated::Fault::copy, emulated::Fault::launch})
      for (std::size_t n = 1; n < plan.nodes; n += 7) {
        CAPTURE(n);
        Session session(graph, {.device = device, .budget = least});
        machine->set_seed(n);
        if (n % 2 == 0) CHECK(run(session) == right);  // then it fails in the capture
        machine->inject(fault, n, 1);
        bool has_failed = false;
        try {
          run(session);
        } catch (const Error&) {
          has_failed = true;
        }
        machine->inject(fault, 0, -1);
        failures += has_failed;
        for (int i = 0; i < 2; ++i) CHECK(run(session) == right);
      }
    CHECK(failures > plan.nodes / 12);
  }
  CHECK(std::string(machine->last_complaint()) == "");
}
