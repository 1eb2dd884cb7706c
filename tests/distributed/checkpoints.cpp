#include "ebb/tests/bytes.h"
#include "ebb/tests/distributed/ranks.h"

namespace ebb::tests {
namespace {

// A training program with its position in the data.
struct Program {
  Program(const std::optional<World>& world, InMode::Kind mode, bool accumulates)
      : in(mode, DType::f32, {1}, {}, world),
        model(in.parameters, {5, 16, 1}),
        adam(adam_over(world, {.global_norm = 1})),
        accumulate(adam, {.samples = 14}),
        loader(some_data(), {.batch = 7, .shuffle = Seed{3}, .shard = world}) {
    step = in.function({{DType::f32, {-1, 5}}, {DType::f32, {-1, 1}}},
                       [=, this](const Tensors& t) -> Tensors {
                         const Tensor loss = mse(model(t[0]), t[1]);
                         return {accumulates ? accumulate.minimize(loss, in.parameters, rows(t[1]))
                                             : adam.minimize(loss, in.parameters)};
                       });
  }
  // Losses of some batches; calls `between` before the fifth.
  std::vector<double> run(std::size_t batches, const std::function<void()>& between = {}) {
    std::vector<double> losses;
    while (losses.size() < batches)
      for (auto [x, y] : loader) {
        losses.push_back(step({x, y})[0].item<float>());
        if (between && losses.size() == 4) between();
        if (losses.size() == batches) break;
      }
    return losses;
  }

  InMode in;
  models::Mlp model;
  optim::Adam adam;
  optim::Accumulator accumulate;
  DataLoader loader;
  InMode::Function step;
};

TEST_CASE("A job goes on from its checkpoint with any number of ranks, and with one process") {
  const auto sharding = GENERATE(Sharding::none, Sharding::optimizer_state, Sharding::gradients,
                                 Sharding::parameters);
  const World world({.sharding = sharding});
  const World part = world.split(world.rank() > 0);  // one rank, and all others
  const SharedFolder folder(world);
  const std::string file = folder.path + "/model.safetensors";
  for (const InMode::Kind mode : kModes)
    for (const bool accumulates : {false, true}) {
      INFO("sharding " << static_cast<int>(sharding) << ", mode " << mode << ", " << accumulates);
      Program first(world, mode, accumulates);
      std::vector<double> losses = first.run(9, [&] {  // in a pass, and in a group of samples
        for (int time = 0; time < 2; ++time) first.in.save(file, first.loader);
        folder.wait();
        const auto parts = static_cast<std::size_t>(world.size());
        CHECK(folder.files() == (sharding == Sharding::none ? 1 : parts + 1));
        folder.wait();
      });
      losses.erase(losses.begin(), losses.begin() + 4);
      const auto check = [&](const std::optional<World>& over) {
        Program next(over, mode, accumulates);
        next.in.load(file, next.loader);
        const std::vector<double> again = next.run(5);
        REQUIRE(again.size() == losses.size());
        for (std::size_t i = 0; i < losses.size(); ++i)
          CHECK(std::abs(again[i] - losses[i]) < 1e-4 * (1 + std::abs(losses[i])));
      };
      check({});  // each rank for itself
      check(part);
      check(world);
      folder.wait();
    }
}

TEST_CASE("A checkpoint in parts is whole tensors, the same that one process has") {
  const World world({.ordered = true, .sharding = Sharding::gradients});
  const SharedFolder folder(world);
  const std::string file = folder.path + "/model.safetensors";
  Program program(world, InMode::eager, false), alone({}, InMode::eager, false);
  program.run(3);
  program.in.save(file);
  alone.in.load(file);
  const TensorsByName all = load_safetensors(file + ".index.json");
  for (const auto& [name, value] : alone.in.values()) {
    INFO(name);
    CHECK(bytes_of(value) == bytes_of(all.at(name)));
    const Tensor& here = program.in.parameters[name];
    if (name.find("moment") == std::string::npos) {
      CHECK(bytes_of(value) == bytes_of(here));
    } else {
      Tensor whole = zeros(value.shape());
      const std::int64_t each = (value.shape().elements() + world.size() - 1) / world.size();
      CHECK(here.shape().elements() <= each);
      const std::int64_t begin = std::min(each * world.rank(), value.shape().elements());
      const Tensor flat = reshape(value, {value.shape().elements()});
      CHECK(bytes_of(here) == bytes_of(slice(flat, begin, begin + here.shape().elements())));
    }
  }
}

TEST_CASE("Where a rank cannot write its part all throw, and the last checkpoint is whole") {
  const World world({.sharding = Sharding::optimizer_state});
  const SharedFolder folder(world);
  const std::string file = folder.path + "/model.safetensors";
  Program program(world, InMode::eager, false);
  program.run(1);
  program.in.save(file);
  const auto before = program.in.values();
  program.run(1);
  const int last = world.size() - 1;
  const bool is_bad = world.rank() == last;
  if (is_bad) std::filesystem::current_path(folder.path);  // where the file's folder is not
  const std::string error = error_of([&] { program.in.save(file); });
  if (is_bad) std::filesystem::current_path("..");
  CHECK(error != "");
  if (!is_bad) CHECK(error.find("rank " + std::to_string(last)) != std::string::npos);
  folder.wait();
  CHECK(folder.files() == static_cast<std::size_t>(world.size()) + 1);
  CHECK_ERROR(program.in.save(file + ".index.json"), FileError, "the name of an index");
  program.in.load(file);
  for (const auto& [name, value] : before)
    CHECK(bytes_of(value) == bytes_of(program.in.parameters[name]));
}

TEST_CASE("Ranks that save to different files are an error on all") {
  if (World().size() == 1) return;
  for (const Sharding sharding : {Sharding::none, Sharding::parameters}) {
    const World world({.sharding = sharding});
    Program program(world, InMode::eager, false);
    const SharedFolder folder{World()};
    const std::string file = folder.path + "/of_rank_" + std::to_string(world.rank());
    const std::string error = error_of([&] { program.in.save(file); });
    CHECK(error.find("rank 0 calls save to " + folder.path + "/of_rank_0") != std::string::npos);
  }
}

TEST_CASE("What each rank has of its own is saved as rank 0 has it, whatever is in shares") {
  for (const Sharding sharding : {Sharding::none, Sharding::parameters}) {
    const World world({.sharding = sharding});
    const SharedFolder folder(world);
    const Parameters parameters(Device::cpu(), {}, {.world = world});
    const Parameters loaded(Device::cpu(), {}, {.world = world});
    const auto declare = [](const Parameters& in, int rank) {
      in.declare("weight", {64}, initializers::ones());
      in.state("own", {100 * (rank + 1)}, initializers::zeros());
      return models::BatchNorm(in, 3);
    };
    declare(loaded, 0);
    const models::BatchNorm norm = declare(parameters, world.rank());
    const auto shift = static_cast<float>(world.rank());
    norm(Tensor::from({0.0f, 1.0f, 2.0f, 4.0f, 3.0f, 5.0f}, {2, 3}) * (1 + shift) + shift,
         Phase::training);
    const Tensor mean = distributed::broadcast(parameters["running_mean"], world);
    const Tensor variance = distributed::broadcast(parameters["running_variance"], world);
    parameters.save(folder.path + "/norm");
    loaded.load(folder.path + "/norm");
    CHECK(bytes_of(loaded["running_mean"]) == bytes_of(mean));
    CHECK(bytes_of(loaded["running_variance"]) == bytes_of(variance));
  }
}

}  // namespace
}  // namespace ebb::tests
