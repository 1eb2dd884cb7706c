// The table that plan_cluster makes.
#include <cmath>
#include <sstream>

#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/examples/run.h"

namespace ebb::tests {
namespace {

struct Row {
  int ranks = 0;
  double peak = 0;  // GiB
  std::string fits;
  double sent = 0, computes = 0, tree = 0, ring = 0, step = 0;
};

double read_gib(std::istream& in) {
  double value = 0;
  std::string unit;
  in >> value >> unit;
  return unit == "TiB" ? value * 1024 : unit == "MiB" ? value / 1024 : unit == "B" ? 0 : value;
}

// The rows of each kind of sharding, from 1 rank on.
std::vector<std::vector<Row>> table(const std::string& arguments) {
  const Ended ended = run("plan_cluster " + arguments);
  INFO(ended.output);
  REQUIRE(ended.code == 0);
  std::vector<std::vector<Row>> parts;
  std::istringstream lines(ended.output);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("sharded")) parts.emplace_back();
    std::istringstream in(line);
    Row row;
    if (!(in >> row.ranks)) continue;
    row.peak = read_gib(in);
    in >> row.fits;
    row.sent = read_gib(in);
    REQUIRE(in >> row.computes >> row.tree >> row.ring >> row.step);
    parts.back().push_back(row);
  }
  return parts;
}

}  // namespace

TEST_CASE("a cluster's steps fit by their peak, and take the time of the formulas") {
  const auto parts = table("sim:cpu:4GiB --flops 1e12 --link 1073741824 --latency 1e-30");
  REQUIRE(parts.size() == 4);
  for (const auto& part : parts) {
    REQUIRE(part.size() == 11);
    for (std::size_t i = 0; i < part.size(); ++i) {
      const Row &row = part[i], &whole = parts[0][i];
      INFO(row.ranks << " ranks, peak " << row.peak);
      CHECK(row.ranks == 1 << i);
      CHECK(row.fits == (row.peak <= 4 ? "yes" : "no"));
      CHECK(row.peak <= whole.peak);
      CHECK(std::abs(row.ring - row.sent) < 0.06);  // a GiB a second
      CHECK(row.tree == row.ring);
      CHECK(std::abs(row.step - row.computes - row.ring) < 0.02);
      CHECK(std::abs(row.computes * row.ranks - part[0].computes) < 0.01 * row.ranks);
      if (i > 0) CHECK(row.peak < part[i - 1].peak);
    }
  }
  // Of 124 million parameters: 8 bytes of moments each, and 4 of its own.
  CHECK(parts[0][10].peak - parts[1][10].peak == Approx(0.93).margin(0.1));
  CHECK(parts[2][10].peak - parts[3][10].peak == Approx(0.46).margin(0.06));
  // As many sums whatever the number of ranks, in messages of a second each.
  const auto slow = table("sim:cpu:4GiB --link 1e30 --latency 1");
  for (const auto& part : slow)
    for (const Row& row : part) {
      if (row.ranks == 1) continue;
      const double others = row.ranks - 1;
      CHECK(row.ring / others == part[1].ring);
      CHECK(row.tree == Approx(part[1].ring * std::log2(row.ranks)));
    }
}

TEST_CASE("rank 0 of ranks with as many rows takes and sends most") {
  for (const int size : {2, 3, 5})
    for (const auto sharding :
         {distributed::Sharding::none, distributed::Sharding::optimizer_state,
          distributed::Sharding::gradients, distributed::Sharding::parameters}) {
      const auto plan_of = [&](int rank) {
        const auto world = distributed::World::simulated(rank, size, {.sharding = sharding});
        Graph graph;
        const Parameters params(graph, Seed{1}, {.world = world});
        const models::Mlp model(params, {7, 301, 3});
        const Tensor x = graph.placeholder("x", DType::f32, {-1, 7});
        const optim::Adam adam({.world = world});
        return graph.plan({adam.minimize(mean(square(model(x))), params)}, {{x, {4, 7}}},
                          Device::cpu());
      };
      const memory::Plan first = plan_of(0);
      if (sharding == distributed::Sharding::none)  // one bucket, and the rows with the loss
        CHECK(first.sent_messages == static_cast<std::size_t>(2 * 2 * (size - 1)));
      for (int rank = 1; rank < size; ++rank) {
        INFO("rank " << rank << " of " << size << ", sharding " << static_cast<int>(sharding));
        const memory::Plan plan = plan_of(rank);
        CHECK(plan.peak_bytes <= first.peak_bytes);
        CHECK(plan.sent_bytes <= first.sent_bytes);
        CHECK(plan.sent_messages == first.sent_messages);
      }
    }
}

TEST_CASE("a cluster's speeds are positive, and bytes the same on every device") {
  for (const char* value : {"0", "-1", "nan", "inf", "fast"}) {
    const Ended ended = run(std::string("plan_cluster --link ") + value);
    INFO(ended.output);
    CHECK(ended.code == 2);
    CHECK(holds(ended, "--link: takes a number above 0, not"));
    CHECK(is_one_line(ended));
  }
  CHECK(table("sim:h200:80GiB")[0][10].sent == table("sim:cpu:80GiB")[0][10].sent);
}

}  // namespace ebb::tests
