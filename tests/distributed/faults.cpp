// Ranks that are late, out of memory or killed, at each place of a step.
#include <fcntl.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <random>
#include <thread>

#include "ebb/core/parameters/shared_parameter.h"
#include "ebb/custom_operator.h"
#include "ebb/tests/bytes.h"
#include "ebb/tests/distributed/ranks.h"

namespace ebb::tests {
namespace {

std::function<void(std::string_view place)> at_place;

void reach(std::string_view place) {
  if (at_place) at_place(place);
}

// Passes numbers on, and their gradients.
struct PassedBack {
  static constexpr const char* name = "passed_back";
  template <class X>
  X operator()(X /*x*/) const {
    reach("backward");
    return 1;
  }
};
struct Passed {
  static constexpr const char* name = "passed";
  using Derivatives = ebb::Derivatives<PassedBack>;
  template <class X>
  X operator()(X x) const {
    reach(place);
    return x;
  }
  const char* place;
};

struct PlacedRule final : optim::Rule {
  const char* name() const noexcept override { return "placed"; }
  std::span<const char* const> slots() const noexcept override { return {}; }
  bool is_elementwise() const noexcept override { return true; }
  optim::RuleResult update(const optim::RuleInput& in) const override {
    return {in.parameter - in.rate * custom_operator(Passed{"update"}, in.gradient), {}};
  }
};

// A training program that reaches "loading", "forward", "backward" and "update" in each step.
struct Placed {
  Placed(const World& world, InMode::Kind mode, std::int64_t width)
      : in(mode, DType::f32, {1}, {}, world),
        lower(in.parameters.scope("lower"), {5, width}),
        upper(in.parameters.scope("upper"), {width, width, 1}),
        optimizer(std::make_shared<PlacedRule>(), 0.05, "", {}, CallSite::here(), world),
        loader(some_data(), {.batch = 7,
                             .shuffle = Seed{3},
                             .transform =
                                 [](const Batch& batch) {
                                   reach("loading");
                                   return batch;
                                 },
                             .shard = world}),
        step(in.function({{DType::f32, {-1, 5}}, {DType::f32, {-1, 1}}},
                         [this](const Tensors& t) -> Tensors {
                           // The sum of upper's gradients begins before the gradient comes here.
                           const Tensor x = custom_operator(Passed{"forward"}, lower(t[0]));
                           return {optimizer.minimize(mse(upper(x), t[1]), in.parameters)};
                         })) {}

  std::vector<float> run(int passes) {
    std::vector<float> losses;
    for (int pass = 0; pass < passes; ++pass)
      for (auto [x, y] : loader) losses.push_back(step({x, y})[0].item<float>());
    return losses;
  }

  InMode in;
  models::Mlp lower, upper;
  optim::Optimizer optimizer;
  DataLoader loader;
  InMode::Function step;
};

TEST_CASE("Ranks that are late at random train bit for bit as ranks that are not", "[host]") {
  const auto sharding = GENERATE(Sharding::none, Sharding::optimizer_state, Sharding::gradients,
                                 Sharding::parameters);
  const World world({.ordered = true, .sharding = sharding});
  for (const InMode::Kind mode : kModes) {
    const auto losses = [&](bool late) {
      if (late)
        at_place = [rank = world.rank()](std::string_view) {
          thread_local std::minstd_rand random(static_cast<unsigned>(1 + rank));
          if (random() % 64 == 0)
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
        };
      const std::vector<float> all = Placed(world, mode, 16).run(2);
      at_place = {};
      return all;
    };
    INFO("sharding " << static_cast<int>(sharding) << ", mode " << mode);
    CHECK(losses(true) == losses(false));
  }
}

// Two steps of larger batches than before. The n-th allocation of the first fails on the last rank.
// Returns the rank's error.
std::string starve(std::size_t n, InMode::Kind mode, Sharding sharding) {
  const auto fail_after = [](std::size_t count) {
    Device::cpu().runtime().allocator().fail_allocation_after(count);
  };
  const auto held = [] { return memory::stats(Device::cpu()).allocated.current; };
  const std::size_t at_first = held();
  const std::string error = error_of([&] {
    const World world({.sharding = sharding});
    Placed program(world, mode, 16);
    const auto values = [&] {
      std::map<std::string, std::vector<std::byte>> all;
      for (const auto& [name, tensor] : program.in.parameters.entries())
        all[name] = bytes_of(mode == InMode::graph ? program.in[name] : detail::stored(tensor));
      return all;
    };
    const bool fails = world.rank() == world.size() - 1;
    const Tensor x = ones({20, 5}), y = ones({20, 1});
    program.run(1);
    auto before = values();
    std::size_t bytes = held();
    try {
      if (fails) fail_after(n);
      program.step({x, y});
      fail_after(~std::size_t{0});
      before = values();
      bytes = held();
      program.step({x, y});
    } catch (const Error&) {
      fail_after(~std::size_t{0});
      CHECK(values() == before);
      // Elsewhere an arena may have grown, or another layer be whole.
      if (mode == InMode::eager ? sharding == Sharding::none : fails) CHECK(held() == bytes);
      throw;
    }
  });
  CHECK(held() == at_first);
  return error;
}

TEST_CASE("A rank that is out of memory is named with its cause, and all keep what they had",
          "[host]") {
  const World world;
  const int last = world.size() - 1;
  const std::string of = "rank " + std::to_string(last) + " of " + std::to_string(last + 1);
  for (const Sharding sharding : {Sharding::none, Sharding::parameters})
    for (const InMode::Kind mode : kModes) {
      std::size_t n = 0;
      for (;; n = last == 0 ? n + 1 : 3 * n + 1) {
        INFO("sharding " << static_cast<int>(sharding) << ", mode " << mode << ", allocation "
                         << n);
        const std::string error = starve(n, mode, sharding);
        INFO(error);
        if (distributed::mean(error.empty() ? 0 : 1, 1, world) == 0) break;
        CHECK(error.find("out of memory on cpu") != std::string::npos);
        if (world.rank() != last) CHECK(error.find(of + " has failed: ") != std::string::npos);
      }
      CHECK(n > 0);
    }
}

struct Death {
  const char* place;
  int rank;
  std::int64_t saved;  // steps in the checkpoint that is left
};
constexpr Death kDeaths[] = {{"loading", 1, 3},  {"forward", 1, 3}, {"backward", 1, 3},
                             {"update", 1, 3},   {"writing", 0, 3}, {"replacing", 0, 3},
                             {"replaced", 0, 6}, {"closing", 1, 6}};

void die(InMode::Kind mode, Sharding sharding, const Death& death) {
  const World world({.sharding = sharding});
  Placed program(world, mode, 1100);  // upper fills a bucket
  const std::string file = "killed.safetensors";
  if (world.size() == 1) {  // afterwards
    program.in.load(file);
    CHECK(program.in["placed/step"].item<std::int64_t>() == death.saved);
    return;
  }
  program.run(1);
  program.in.save(file);
  if (world.rank() == death.rank)
    at_place = [death](std::string_view place) {
      if (place == death.place) raise(SIGKILL);
    };
  program.run(1);
  program.in.save(file);
  reach("closing");
}

// tests/distributed/killed.sh runs each section as a job, then alone.
TEST_CASE("A rank ends by a signal and leaves a whole checkpoint", "[.killed]") {
  for (const bool is_graph : {false, true})
    for (const bool shares : {false, true})
      for (const Death& death : kDeaths)
        DYNAMIC_SECTION((is_graph ? "graph" : "eager")
                        << (shares ? " shares " : " copies ") << death.place) {
          die(is_graph ? InMode::graph : InMode::eager,
              shares ? Sharding::parameters : Sharding::none, death);
        }
}

}  // namespace
}  // namespace ebb::tests

// In place of libc's. Of a checkpoint in parts the index comes last.
extern "C" int rename(const char* from, const char* to) noexcept {
  const bool is_last = std::string_view(to).find("-of-") == std::string_view::npos;
  ebb::tests::reach("writing");
  if (is_last) ebb::tests::reach("replacing");
  const int result = ::renameat(AT_FDCWD, from, AT_FDCWD, to);
  if (is_last) ebb::tests::reach("replaced");
  return result;
}
