#include <fcntl.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "ebb/core/device/messenger.h"
#include "ebb/tests/bytes.h"
#include "ebb/tests/distributed/ranks.h"

namespace ebb::tests {
namespace {

TEST_CASE("Loaders of ranks that cut their data in different ways are an error") {
  if (World().size() == 1) return;
  const auto error_where = [](const std::function<void(DataLoaderOptions&)>& differs) {
    return error_of([&] {
      const World world;
      DataLoaderOptions options{.batch = 5, .shuffle = Seed{1}, .shard = world};
      if (world.rank() == 1) differs(options);
      DataLoader loader(some_data(), options);
    });
  };
  CHECK(error_where([](DataLoaderOptions& o) { o.batch = 6; }).find("in batches of 6") !=
        std::string::npos);
  CHECK(error_where([](DataLoaderOptions& o) { o.shuffle = {}; }) != "");
  CHECK(error_where([](DataLoaderOptions& o) { o.drop_last = true; }) != "");
}

TEST_CASE("A rank that does something else is an error on all, which names rank and tensor") {
  if (World().size() == 1) return;
  {
    const World world;
    const bool differs = world.rank() == 1;
    const std::string error =
        error_of([&] { distributed::all_reduce(zeros({differs ? 3 : 4}), world); });
    INFO(error);
    CHECK(error.find("rank 0 calls all_reduce of f32[4] (" __FILE__ ":") != std::string::npos);
    CHECK(error.find("rank 1 calls all_reduce of f32[3] (" __FILE__ ":") != std::string::npos);
    CHECK(error_of([&] { distributed::all_reduce(zeros({4}), world); }) != "");  // it is over
  }
  for (const distributed::WorldOptions& other :
       {distributed::WorldOptions{.ordered = true}, {.sharding = Sharding::gradients}}) {
    const World world(World().rank() == 1 ? other : distributed::WorldOptions{});
    const std::string error = error_of([&] { distributed::all_reduce(zeros({4}), world); });
    CHECK(error.find("options of the world must be the same") != std::string::npos);
  }
  {
    const World world;  // another model
    const bool differs = world.rank() == 1;
    const Parameters parameters(Device::cpu());
    const models::Mlp model(parameters, {5, differs ? 7 : 6, 6, 6, 6, 6, 6, 6, 6, 1});
    const optim::Sgd sgd({.world = world});
    const auto before = bytes_of(parameters.entries()[0].tensor);
    const std::string error = error_of([&] {
      sgd.minimize(mse(model(ones({2, 5})), zeros({2, 1})), parameters);
    });
    INFO(error);
    CHECK(error.find("the gradients of '0.weight' to '8.bias'") != std::string::npos);
    CHECK(error.find(".. (" __FILE__ ":") != std::string::npos);  // long lists leave room for it
    CHECK(bytes_of(parameters.entries()[0].tensor) == before);
  }
  {
    const World world;  // another number of steps
    const bool differs = world.rank() == 1;
    const std::string error = error_of([&] {
      for (int i = 0; i < (differs ? 2 : 3); ++i) distributed::all_reduce(zeros({4}), world);
      world.close();
    });
    INFO(error);
    CHECK(error.find("rank 0 calls all_reduce of f32[4]") != std::string::npos);
    CHECK(error.find("rank 1 closes it") != std::string::npos);
  }
}

TEST_CASE("A rank that waits for long says what for") {
  const World world;
  if (world.size() == 1) return;
  const SharedFolder folder(world);
  const std::string file = folder.path + "/log" + std::to_string(world.rank());
  auto& messenger = ebb::detail::Messenger::instance();
  messenger.patience = std::chrono::milliseconds(20);
  const int kept = ::dup(2), log = ::open(file.c_str(), O_CREAT | O_WRONLY, 0600);
  ::dup2(log, 2);
  if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(400));
  distributed::all_reduce(zeros({4}), world);
  ::dup2(kept, 2);
  ::close(kept);
  ::close(log);
  messenger.patience = std::chrono::seconds(30);
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  const std::string waits = "waits for the other ranks in all_reduce of f32[4] (" __FILE__ ":";
  if (world.rank() != 1) CHECK(text.str().find(waits) != std::string::npos);
}

TEST_CASE("A world can be closed again at once") {
  for (int i = 0; i < 20; ++i) {
    const World world;
    distributed::all_reduce(zeros({4}), world);
    world.close();
    CHECK(error_of([&] { world.close(); }) == "");
  }
}

TEST_CASE("A prediction knows that a message has too many elements") {
  const auto gather = [](Device twin) {
    distributed::all_gather(zeros({1 << 30}, {.dtype = DType::u8, .device = twin}), World());
  };
  CHECK_THROWS_WITH(memory::predict(Device::cpu(), gather, {.world = World::simulated(1, 2)}),
                    Catch::Contains("at most 2147483647 elements"));
}

TEST_CASE("A rank that trains another parameter of the same size is an error on all") {
  if (World().size() == 1) return;
  const World world;
  const Parameters parameters(Device::cpu());
  Tensors all;
  for (const char* const name : {"a", "b", "c", "d"})
    all.push_back(parameters.declare(name, {3}, initializers::ones()));
  const Tensor loss = sum(all[0]) + sum(all[world.rank() == 1 ? 1 : 2]) + sum(all[3]);
  const std::string error =
      error_of([&] { optim::Sgd({.world = world}).minimize(loss, parameters); });
  CHECK(error.find("'a' to 'd' (d [3], c [3], a [3])") != std::string::npos);
  CHECK(error.find("'a' to 'd' (d [3], b [3], a [3])") != std::string::npos);
}

TEST_CASE("A rank that fails does not wait for ranks that wait in another of its worlds") {
  if (World().size() == 1) return;
  const std::string error = error_of([] {
    const World first, second;
    if (first.rank() == 0) throw Error("out of something");
    distributed::all_reduce(zeros({4}), first);
  });
  CHECK(error.find("out of something") != std::string::npos);
}

// Fails once, in the second step.
struct FailingRule final : optim::Rule {
  explicit FailingRule(bool on_this_rank) : fails(on_this_rank) {}
  const char* name() const noexcept override { return "failing"; }
  std::span<const char* const> slots() const noexcept override { return {}; }
  optim::RuleResult update(const optim::RuleInput& in) const override {
    if (++steps == 2 && fails) throw Error("out of something");
    return {in.parameter - in.gradient, {}};
  }
  const bool fails;
  mutable int steps = 0;
};

TEST_CASE("A step that fails on all ranks ends their world") {
  if (World().size() == 1) return;
  const World world;
  const Parameters parameters(Device::cpu());
  const Tensor weight = parameters.declare("weight", {3}, initializers::ones());
  const optim::Optimizer optimizer(std::make_shared<FailingRule>(true), 1.0, "", {},
                                   CallSite::here(), world);
  optimizer.minimize(sum(weight), parameters);
  CHECK(error_of([&] { optimizer.minimize(sum(weight), parameters); }) != "");
  const std::string error = error_of([&] { distributed::all_reduce(zeros({4}), world); });
  CHECK(error.find("has failed: out of something") != std::string::npos);
}

TEST_CASE("A step that fails on one rank after the sum is an error on all in the next") {
  if (World().size() == 1) return;
  for (const bool accumulates : {false, true}) {
    const World world;
    const Parameters parameters(Device::cpu());
    const Tensor weight = parameters.declare("weight", {3}, initializers::ones());
    const optim::Optimizer optimizer(std::make_shared<FailingRule>(world.rank() == 1), 1.0, "", {},
                                     CallSite::here(), world);
    const optim::Accumulator accumulate(optimizer);
    std::vector<std::string> errors;
    for (int i = 0; i < 3; ++i)
      errors.push_back(error_of([&] {  // which the program passes over
        const Tensor loss = mean(square(weight));
        accumulates ? accumulate.minimize(loss, parameters, Tensor::from(std::int64_t{1}))
                    : optimizer.minimize(loss, parameters);
      }));
    CHECK(errors[0] == "");
    CHECK((errors[1] != "") == (world.rank() == 1));
    CHECK(errors[2].find("rank 1 of " + std::to_string(world.size()) + " has failed: out of") !=
          std::string::npos);
  }
}

// On the host: a GPU does not look at indices.
TEST_CASE("A run that fails on one rank after the sum is an error on all in the next", "[host]") {
  if (World().size() == 1) return;
  const World world;
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {3});
  const Tensor i = graph.placeholder("i", DType::i32, {1});
  const Tensor y = index_select(distributed::all_reduce(x, world), i + 0);
  Session session(graph);
  const auto run = [&](int index) {
    return error_of([&] { session.run(y, {{x, ones({3})}, {i, Tensor::from({index})}}); });
  };
  CHECK((run(world.rank() == 1 ? 5 : 0) != "") == (world.rank() == 1));
  CHECK(run(0).find("rank 1 of " + std::to_string(world.size()) + " has failed") !=
        std::string::npos);
}

std::optional<World> closed_late;  // after everything else is gone

TEST_CASE("A world may outlive main()") { closed_late.emplace(); }

}  // namespace
}  // namespace ebb::tests
