#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <thread>

#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/comparison.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/create.h"
#include "ebb/core/ops/lstm.h"
#include "ebb/core/ops/order.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/statistics.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/graph/create.h"
#include "ebb/graph/graph.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

using Doubles = std::vector<double>;

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
  const auto close = [](const Tensor& x, double expected_mean, double deviation) {
    const double error = 5 * deviation / std::sqrt(kCount);  // five standard errors, at least
    CHECK(std::abs(mean(x).item<double>() - expected_mean) < error);
    CHECK(std::abs(standard_deviation(x).item<double>() - deviation) < error);
  };
  const Tensor u = uniform({kCount}, {.low = -1, .high = 3, .dtype = DType::f64});
  CHECK(all((u >= -1) & (u < 3)).item<bool>());
  close(u, 1, 4 / std::sqrt(12.0));
  close(normal({kCount}, {.mean = 2, .standard_deviation = 3, .dtype = DType::f64}), 2, 3);
  const Tensor b = bernoulli({kCount}, {.probability = 0.3, .dtype = DType::f64});
  CHECK(all((b == 0) | (b == 1)).item<bool>());
  close(b, 0.3, std::sqrt(0.3 * 0.7));
}

TEST_CASE("dropout in inference, or of nothing, is the tensor itself") {
  const Tensor x = Tensor::from({1.f, 2.f});
  CHECK(dropout(x, 0.5, Phase::inference).impl() == x.impl());
  CHECK(dropout(x, 0, Phase::training).impl() == x.impl());
}

TEST_CASE("A graph draws anew in every run, each place of its own, and alike under the same seed") {
  Graph graph;
  const Parameters parameters(graph, Seed{1});
  const auto layer = [&](const char* name, std::int64_t in) -> LstmWeights {
    const Parameters scope = parameters.scope(name);
    const Initializer start = initializers::uniform(-1, 1);
    return {scope.declare("w", {in, 12}, start), scope.declare("r", {3, 12}, start),
            scope.declare("b", {12}, start)};
  };
  const std::vector<LstmWeights> layers = {layer("0", 2), layer("1", 3)};
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 4});
  const auto dropped = [&] { return dropout(x, 0.5, Phase::training); };
  const Tensors draws = {
      dropped(), dropped(), categorical(x), permutation(graph, 100),
      randint(graph, 0, 256, {64}, {.dtype = DType::u8}),
      // Of a captured sequence.
      lstm(Tensor::full({4, 6, 2}, 0.5), layers, {.dropout = 0.5, .phase = Phase::training})
          .sequence};
  const auto two_runs = [&](std::uint64_t seed) {
    Session session(graph, {.seed = Seed{seed}});
    session.initialize();
    std::vector<Doubles> values;
    for (int run = 0; run < 2; ++run)
      for (const Tensor& drawn : session.run(draws, {{x, Tensor::full({64, 4}, 1)}}))
        values.push_back(cast(drawn, DType::f64).to_vector<double>());
    return values;
  };
  const std::vector<Doubles> values = two_runs(1), others = two_runs(2);
  CHECK(values[0] != values[1]);
  CHECK(two_runs(1) == values);
  for (std::size_t i = 0; i < draws.size(); ++i) {
    INFO("draw " << i);
    CHECK(values[i] != values[i + draws.size()]);
    CHECK(values[i] != others[i]);
  }
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

}  // namespace ebb::tests
