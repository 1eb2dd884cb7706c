#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <thread>

#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/create.h"
#include "ebb/core/ops/lstm.h"
#include "ebb/core/ops/order.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/graph/graph.h"
#include "ebb/graph/random.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/failing_allocation.h"

namespace ebb::tests {
namespace {

using Doubles = std::vector<double>;

double mean_of(const Doubles& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation_of(const Doubles& values) {
  const double mean = mean_of(values);
  double total = 0;
  for (const double value : values) total += (value - mean) * (value - mean);
  return std::sqrt(total / static_cast<double>(values.size()));
}

}  // namespace

TEST_CASE("A seed repeats a program's draws, and the next draw is another") {
  const auto program = [] {
    return std::array{uniform({5}).to_vector<float>(), normal({5}).to_vector<float>(),
                      uniform({5}).to_vector<float>()};
  };
  set_seed({42});
  const auto first = program();
  set_seed({42});
  CHECK(program() == first);
  CHECK(first[0] != first[2]);
  set_seed({43});
  CHECK(program() != first);
}

TEST_CASE("Threads without a seed draw differently") {
  std::vector<float> a, b;
  std::thread([&] { a = uniform({4}).to_vector<float>(); }).join();
  std::thread([&] { b = uniform({4}).to_vector<float>(); }).join();
  CHECK(a != b);
}

TEST_CASE("Random tensors have the distribution they are named after") {
  set_seed({7});
  constexpr std::int64_t kCount = 100'000;
  const Doubles u =
      uniform({kCount}, {.low = -1, .high = 3, .dtype = DType::f64}).to_vector<double>();
  CHECK(std::all_of(u.begin(), u.end(), [](double x) { return x >= -1 && x < 3; }));
  CHECK(std::abs(mean_of(u) - 1) < 0.02);
  CHECK(std::abs(deviation_of(u) - 4 / std::sqrt(12.0)) < 0.02);
  const Doubles n = normal({kCount}, {.mean = 2, .standard_deviation = 3, .dtype = DType::f64})
                        .to_vector<double>();
  CHECK(std::abs(mean_of(n) - 2) < 0.05);
  CHECK(std::abs(deviation_of(n) - 3) < 0.05);
  const Doubles b =
      bernoulli({kCount}, {.probability = 0.3, .dtype = DType::f64}).to_vector<double>();
  CHECK(std::all_of(b.begin(), b.end(), [](double x) { return x == 0 || x == 1; }));
  CHECK(std::abs(mean_of(b) - 0.3) < 0.01);
}

TEST_CASE(
    "dropout zeroes about its share and scales the rest, and its gradient has the same mask") {
  set_seed({1});
  const Tensor x = Tensor::full({50, 200}, 2, DType::f64).with_grad();
  const Tensor y = dropout(x, 0.25, Phase::training);
  const Doubles values = y.to_vector<double>();
  const auto zeros = std::count(values.begin(), values.end(), 0.0);
  CHECK(std::abs(static_cast<double>(zeros) / 10'000 - 0.25) < 0.02);
  const double scaled = 2 / 0.75;
  CHECK(std::all_of(values.begin(), values.end(),
                    [&](double value) { return value == 0 || std::abs(value - scaled) < 1e-15; }));
  sum(y).backward();
  const Doubles gradient = x.grad().to_vector<double>();
  for (std::size_t i = 0; i < values.size(); ++i) CHECK((gradient[i] == 0) == (values[i] == 0));
}

TEST_CASE("dropout in inference, or of nothing, is the tensor itself") {
  const Tensor x = Tensor::from({1.f, 2.f});
  CHECK(dropout(x, 0.5, Phase::inference).impl() == x.impl());
  CHECK(dropout(x, 0, Phase::training).impl() == x.impl());
}

TEST_CASE("A graph draws anew in every run, and each place of its own") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1});
  const Tensor a = dropout(x, 0.5, Phase::training), b = dropout(x, 0.5, Phase::training);
  const Feeds feeds = {{x, Tensor::full({64}, 1)}};
  const auto two_runs = [&] {
    Session session(graph, {.seed = Seed{1}});
    std::array<std::vector<float>, 4> values;
    for (std::size_t run = 0; run < 2; ++run) {
      const auto results = session.run({a, b}, feeds);
      values[2 * run] = results[0].to_vector<float>();
      values[2 * run + 1] = results[1].to_vector<float>();
    }
    return values;
  };
  const auto values = two_runs();
  CHECK(values[0] != values[1]);
  CHECK(values[0] != values[2]);
  CHECK(two_runs() == values);  // a new session with that seed begins again
}

TEST_CASE("A graph's lstm draws anew in every run, of captured sequences as well") {
  Graph graph;
  const Parameters parameters(graph);
  const auto weight = [&](const char* name, const Shape& shape) {
    return parameters.declare(name, shape, initializers::uniform(-1, 1));
  };
  const std::vector<LstmWeights> layers = {
      {weight("w0", {2, 12}), weight("r0", {3, 12}), weight("b0", {12})},
      {weight("w1", {3, 12}), weight("r1", {3, 12}), weight("b1", {12})}};
  const LstmResult result =
      lstm(Tensor::full({4, 6, 2}, 0.5), layers, {.dropout = 0.5, .phase = Phase::training});
  Session session(graph);
  session.initialize();
  const auto first = session.run(result.sequence).to_vector<float>();
  CHECK(session.run(result.sequence).to_vector<float>() != first);
}

TEST_CASE("A permutation has each number once, in another order each time") {
  set_seed(Seed{5});
  const auto of = [](const Tensor& order) { return order.to_vector<std::int64_t>(); };
  CHECK(permutation(0).shape() == Shape{0});
  CHECK(of(permutation(1)) == std::vector<std::int64_t>{0});
  std::vector<std::int64_t> expected(1000);
  std::iota(expected.begin(), expected.end(), 0);
  set_seed(Seed{5});
  const Tensor drawn = permutation(1000);
  CHECK(of(drawn) != expected);
  CHECK(of(permutation(1000)) != of(drawn));
  CHECK(of(sort(drawn)) == expected);
  set_seed(Seed{5});
  CHECK(of(permutation(1000)) == of(drawn));
  const Device twin = Device::cpu().twin();
  CHECK(permutation(5, {.device = twin}).device() == twin);
}

TEST_CASE("A permutation that runs out of memory has drawn nothing") {
  set_seed(Seed{5});
  const Tensor drawn = permutation(100);
  for (std::size_t n = 0;; ++n) {
    set_seed(Seed{5});
    if (!fails_at(n, [] { permutation(100); })) break;
    CHECK(permutation(100).to_vector<std::int64_t>() == drawn.to_vector<std::int64_t>());
  }
}

TEST_CASE("Each order of four numbers is drawn as often as the others") {
  set_seed(Seed{11});
  std::map<std::vector<std::int64_t>, int> times;
  constexpr int kDraws = 4800;
  for (int i = 0; i < kDraws; ++i) ++times[permutation(4).to_vector<std::int64_t>()];
  REQUIRE(times.size() == 24);
  double deviation = 0;  // chi squared of 23 degrees of freedom: above 60 once in 27,000
  for (const auto& [order, count] : times)
    deviation += (count - kDraws / 24.) * (count - kDraws / 24.) / (kDraws / 24.);
  CHECK(deviation < 60);
}

TEST_CASE("A graph draws another permutation in each run, and the same for the same seed") {
  Graph graph;
  const Tensor order = permutation(graph, 100);
  const auto runs = [&](std::uint64_t seed) {
    Session session(graph, {.seed = Seed{seed}});
    std::vector<std::vector<std::int64_t>> all;
    for (int i = 0; i < 2; ++i) all.push_back(session.run(order).to_vector<std::int64_t>());
    return all;
  };
  const auto first = runs(1);
  CHECK(first[0] != first[1]);
  CHECK(runs(1) == first);
  CHECK(runs(2)[0] != first[0]);
  CHECK(sort(Tensor::from(first[0])).to_vector<std::int64_t>() ==
        arange(100).to_vector<std::int64_t>());
}

}  // namespace ebb::tests
