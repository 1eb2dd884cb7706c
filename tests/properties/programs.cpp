// Hundreds of random programs: the two executors agree, plans and twins are exact, no bytes are
// left.
#include <cstring>

#include "ebb/core/memory/memory.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/poisoned.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/eager/bytes.h"
#include "ebb/tests/properties/check_plan.h"
#include "ebb/tests/properties/random_program.h"

using namespace ebb;
using namespace ebb::literals;
using namespace ebb::tests;

namespace {

// An emulated GPU takes ten times as long.
std::uint64_t program_count() { return on_emulated_cuda() ? 75 : 300; }
constexpr int kSteps = 4;

// Results of a program: losses (none on a simulated device), final parameters, and bytes.
struct Outcome {
  std::vector<float> losses;
  std::vector<float> values;
  std::size_t peak_bytes = 0;
  std::size_t total_bytes = 0;
  std::size_t left_bytes = 0;
  memory::Plan plan;
  memory::Stats session;
};

void take(std::vector<float>& into, const Tensor& tensor) {
  if (tensor.device().is_simulated()) return;
  for (const float value : tensor.to_vector<float>()) into.push_back(value);
}

std::int64_t rows_of_step(const Recipe& recipe, int step) {
  return step % 3 == 2 ? recipe.smaller_batch : recipe.batch;
}

Outcome run_eagerly(const Recipe& recipe, const Device& device) {
  Outcome outcome;
  const Bytes bytes(device);
  const std::size_t before = memory::stats(device).allocated.total;
  {
    Parameters parameters(device, Seed{recipe.seed});
    for (int step = 0; step < kSteps; ++step) {
      const Samples samples = draw_samples(recipe, rows_of_step(recipe, step),
                                           recipe.seed + static_cast<std::uint64_t>(step), device);
      take(outcome.losses, minimize(recipe, loss_of(recipe, parameters, samples.x, samples.y),
                                    samples.y, parameters));
    }
    for (const Parameters::Entry& entry : parameters.entries()) take(outcome.values, entry.tensor);
  }
  outcome.peak_bytes = bytes.peak();
  outcome.total_bytes = memory::stats(device).allocated.total - before;
  outcome.left_bytes = bytes.now();
  return outcome;
}

Outcome run_as_graph(const Recipe& recipe, const Device& device, bool passes) {
  Outcome outcome;
  const Bytes bytes(device);
  const std::size_t before = memory::stats(device).allocated.total;
  {
    Graph graph;
    const Tensor x = graph.placeholder("x", DType::f32, {-1, recipe.in});
    const Tensor y = graph.placeholder("y", DType::i32, {-1});
    Parameters parameters(graph, Seed{recipe.seed});
    const Tensor train = minimize(recipe, loss_of(recipe, parameters, x, y), y, parameters);
    outcome.plan =
        graph.plan({train}, {{x, {recipe.batch, recipe.in}}, {y, {recipe.batch}}}, device);
    Session session(graph, {.device = device, .passes = passes});
    session.initialize(parameters);
    auto step = session.prepare(train, {x, y});
    for (int i = 0; i < kSteps; ++i) {
      const Samples samples = draw_samples(recipe, rows_of_step(recipe, i),
                                           recipe.seed + static_cast<std::uint64_t>(i), device);
      take(outcome.losses, step(samples.x, samples.y));
      if (i == 0) outcome.session = session.stats();
    }
    for (const Parameters::Entry& entry : parameters.entries())
      take(outcome.values, session.value(entry.tensor));
  }
  outcome.peak_bytes = bytes.peak();
  outcome.total_bytes = memory::stats(device).allocated.total - before;
  outcome.left_bytes = bytes.now();
  return outcome;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 1e-30;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    norm += double{a[i]} * a[i];
  }
  return a.size() == b.size() ? std::sqrt(difference / norm) : 1;
}

}  // namespace

TEST_CASE("random programs give the same bits in both modes, and take what plan and twin say") {
  const Device cpu = Device::cpu();
  for (std::uint64_t seed = 1; seed <= program_count(); ++seed) {
    const Recipe recipe = draw_recipe(seed);
    INFO(recipe.describe());
    const Outcome eager = run_eagerly(recipe, cpu), eager_twin = run_eagerly(recipe, cpu.twin());
    const Outcome plain = run_as_graph(recipe, cpu, false);
    const Outcome graph = run_as_graph(recipe, cpu, true);
    const Outcome graph_twin = run_as_graph(recipe, cpu.twin(), true);
    REQUIRE(same_bits(eager.losses, plain.losses));
    REQUIRE(same_bits(eager.values, plain.values));
    REQUIRE(distance(eager.losses, graph.losses) <= 1e-6);
    REQUIRE(distance(eager.values, graph.values) <= 1e-6);
    for (const Outcome* each : {&eager, &eager_twin, &plain, &graph, &graph_twin})
      REQUIRE(each->left_bytes == 0);

    check_plan(graph.plan, graph.session);
    REQUIRE(eager_twin.peak_bytes == eager.peak_bytes);
    REQUIRE(eager_twin.total_bytes == eager.total_bytes);
    REQUIRE(graph_twin.peak_bytes == graph.peak_bytes);
    REQUIRE(graph_twin.total_bytes == graph.total_bytes);

    if (seed % 3 != 0) continue;
    const Poisoned poisoned;
    const Outcome eager_again = run_eagerly(recipe, cpu);
    const Outcome graph_again = run_as_graph(recipe, cpu, true);
    REQUIRE(same_bits(eager.losses, eager_again.losses));
    REQUIRE(same_bits(eager.values, eager_again.values));
    REQUIRE(same_bits(graph.losses, graph_again.losses));
    REQUIRE(same_bits(graph.values, graph_again.values));
  }
}
