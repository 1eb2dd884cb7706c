// Values that a budget moves to page-locked memory of the host and back.
#include "ebb/core/base/error.h"
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/cuda/fixture.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

// A training step whose activations, of 512 KiB, cannot all be computed again: batch_norm changes
// its running values.
struct Normed {
  static constexpr std::int64_t kRows = 8192, kWidth = 16;
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
    for (int i = 0; i < runs; ++i)
      losses.push_back(session.run(loss, {{x, feed()}}).item<float>());
    return losses;
  }
};

}  // namespace

TEST_CASE("values moved to the host change no number, and take what the plan says",
          "[row14][row18]") {
  const Machine machine;
  const Normed model(6);
  const Device device = own_cuda();
  memory::CachingAllocator& locked = *device.runtime().staging();
  const std::size_t least = model.least(device), most = model.plan(device).reserved_bytes;
  Session free = model.open(device);
  const std::vector<float> right = model.run(free);
  std::size_t moved = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
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
        CHECK(locked.reserved_bytes() == locked.profile().in_pages(plan.page_locked_bytes));
        moved += plan.moved_values;
        session.close();
        CHECK(locked.reserved_bytes() == 0);
      }
  CHECK(moved > 0);
  CHECK(std::string(machine->last_complaint()) == "");
}
