#include <filesystem>

#include "ebb/tests/bytes.h"
#include "ebb/tests/distributed/ranks.h"

namespace ebb::tests {
namespace {

// Batches of 7 fit into groups of 14 samples, however ranks share them.
std::int64_t batch_for(std::int64_t samples) { return samples ? samples / 2 : kBatch; }

// Losses, then parameters and slots by name.
struct Trained {
  std::vector<double> losses;
  std::map<std::string, Tensor> values;
};

// Two epochs over the ranks of a world; with `samples` accumulated over several batches.
Trained train_over(const World& world, InMode::Kind mode, std::int64_t samples, optim::Clip clip,
                   DType sums = DType::f32) {
  InMode in(mode, DType::f32, {1}, {}, world);
  const models::Mlp model(in.parameters, {5, 16, 1});
  const optim::Adam adam = adam_over(world, clip);
  const optim::Accumulator accumulate(
      adam, {.samples = std::max<std::int64_t>(samples, 1), .sum_dtype = sums});
  const auto step =
      in.function({{DType::f32, {-1, 5}}, {DType::f32, {-1, 1}}}, [&](const Tensors& t) -> Tensors {
        const Tensor loss = mse(model(t[0]), t[1]);
        return {samples ? accumulate.minimize(loss, in.parameters, rows(t[1]))
                        : adam.minimize(loss, in.parameters)};
      });
  DataLoader loader(some_data(), {.batch = batch_for(samples), .shuffle = Seed{3}, .shard = world});
  Trained trained;
  for (int epoch = 0; epoch < 2; ++epoch)
    for (auto [x, y] : loader) trained.losses.push_back(step({x, y})[0].item<float>());
  trained.values = in.values();
  return trained;
}

// The same by one process that accumulates the parts of `ranks` ranks in their order.
Trained train_alone(int ranks, InMode::Kind mode, std::int64_t samples, optim::Clip clip,
                    DType sums = DType::f32) {
  InMode in(mode);
  const models::Mlp model(in.parameters, {5, 16, 1});
  const optim::Adam adam = adam_over({}, clip);
  const optim::Accumulator accumulate(adam,
                                      {.samples = samples ? samples : kBatch, .sum_dtype = sums});
  const auto step =
      in.function({{DType::f32, {-1, 5}}, {DType::f32, {-1, 1}}}, [&](const Tensors& t) -> Tensors {
        return {accumulate.minimize(mse(model(t[0]), t[1]), in.parameters, rows(t[1]))};
      });
  std::function<Tensors(const Tensors&)> flush;
  DataLoader loader(some_data(), {.batch = batch_for(samples), .shuffle = Seed{3}});
  Trained trained;
  for (int epoch = 0; epoch < 2; ++epoch)
    for (auto [x, y] : loader) {
      const std::int64_t all = x.shape()[0];
      double weighted = 0;
      for (int k = 0; k < ranks; ++k) {
        const std::int64_t begin = all * k / ranks, end = all * (k + 1) / ranks;
        if (begin == end) continue;
        const double loss = step({slice(x, begin, end), slice(y, begin, end)})[0].item<float>();
        weighted += loss * static_cast<double>(end - begin);
      }
      trained.losses.push_back(static_cast<float>(weighted / static_cast<double>(all)));
      if (samples || all == kBatch) continue;
      if (!flush)
        flush = in.function(
            {}, [&](const Tensors&) -> Tensors { return {accumulate.flush(in.parameters)}; });
      flush({});
    }
  trained.values = in.values();
  return trained;
}

constexpr Sharding kShardings[] = {Sharding::none, Sharding::optimizer_state, Sharding::gradients,
                                   Sharding::parameters};
constexpr distributed::WorldOptions kWorlds[] = {{},
                                                 {.ordered = true},
                                                 {.sharding = Sharding::optimizer_state},
                                                 {.sharding = Sharding::gradients},
                                                 {.sharding = Sharding::parameters}};

// This rank's share of a tensor that is whole in one process.
Tensor share_of(const Tensor& whole, const World& world) {
  const std::int64_t all = whole.shape().elements(), each = (all + world.size() - 1) / world.size();
  const std::int64_t begin = std::min(all, each * world.rank());
  return slice(reshape(whole, {all}), begin, std::min(all, begin + each));
}

TEST_CASE("An ordered world trains bit for bit as one process that accumulates the ranks' parts") {
  const Sharding sharding = GENERATE(from_range(std::begin(kShardings), std::end(kShardings)));
  const World world({.ordered = true, .sharding = sharding});
  for (const InMode::Kind mode : kModes)
    for (const std::int64_t samples : {0, 14})
      for (const optim::Clip clip : {optim::Clip{}, optim::Clip{.global_norm = 0.1}}) {
        INFO("mode " << mode << ", samples " << samples);
        const DType sums = samples && clip.global_norm > 0 ? DType::f64 : DType::f32;
        const Trained here = train_over(world, mode, samples, clip, sums);
        const Trained alone = train_alone(world.size(), mode, samples, clip, sums);
        CHECK(here.losses == alone.losses);
        for (const auto& [name, value] : here.values) {
          INFO(name);
          const Tensor& whole = alone.values.at(name);
          const bool is_share = value.shape().elements() != whole.shape().elements();
          if (name == "adam/gradient_norm" && sharding >= Sharding::gradients)  // adds norms
            CHECK(value.item<double>() == Approx(whole.item<double>()).epsilon(1e-12));
          else
            CHECK(bytes_of(value) == bytes_of(is_share ? share_of(whole, world) : whole));
        }
      }
}

TEST_CASE("A world that is not ordered trains within rounding of one process") {
  const World world;
  for (const InMode::Kind mode : kModes) {
    const Trained here = train_over(world, mode, 0, {.global_norm = 0.1});
    const Trained alone = train_alone(world.size(), mode, 0, {.global_norm = 0.1});
    for (std::size_t i = 0; i < here.losses.size(); ++i)
      CHECK(std::abs(here.losses[i] - alone.losses[i]) < 1e-5 * (1 + std::abs(alone.losses[i])));
  }
}

TEST_CASE("Groups of parameters of two dtypes train over a world as alone, bit for bit") {
  const auto train = [](const std::optional<World>& world) {
    const Parameters wide(Device::cpu(), Seed{1}, DType::f64),
        narrow(Device::cpu(), {}, DType::bf16);
    const models::Dense first(wide, 5, 4), second(narrow, 4, 1);
    const optim::Sgd sgd({.learning_rate = 0.1, .world = world});
    for (int i = 1; i < 4; ++i) {  // the same on all ranks, which are a power of two
      const Tensor x = Tensor::full({4, 5}, 0.1 * i, DType::f64);
      const Tensor y = second(cast(first(x), DType::bf16));
      optim::minimize(mean(square(y)), {{wide, sgd}, {narrow, sgd}});
    }
    return std::pair(bytes_of(wide["weight"]), bytes_of(narrow["weight"]));
  };
  for (const bool ordered : {false, true}) CHECK((train(World({.ordered = ordered})) == train({})));
}

TEST_CASE("A loss with gradients in it trains over a world as alone") {
  const auto train = [](const std::optional<World>& world, InMode::Kind mode) {
    InMode in(mode, DType::f64);
    const models::Mlp model(in.parameters, {5, 4, 1});
    const auto step = in.function({{DType::f64, {-1, 5}}}, [&](const Tensors& t) -> Tensors {
      const Tensor x = t[0].is_symbolic() ? t[0] : t[0].with_grad(), y = model(x);
      const Tensor dx = gradients(sum(y), x, {.create_graph = true})[0];
      return {optim::Sgd({.world = world}).minimize(mean(square(dx)), in.parameters)};
    });
    for (int i = 1; i < 4; ++i) step({Tensor::full({4, 5}, 0.1 * i, DType::f64)});
    return in["0.weight"].to_vector<double>();
  };
  const World world;
  for (const InMode::Kind mode : kModes) {
    const std::vector<double> here = train(world, mode), alone = train({}, mode);
    for (std::size_t i = 0; i < here.size(); ++i) CHECK(std::abs(here[i] - alone[i]) < 1e-12);
  }
}

TEST_CASE("A loader over a world deals out each sample once, in rank 0's order") {
  const World world;
  set_seed({static_cast<std::uint64_t>(7 + world.rank())});  // ranks would draw other orders
  const Tensor numbers = reshape(arange(21, {.dtype = DType::i64}), {21, 1});
  DataLoader loader(DataSet::of({numbers}), {.batch = kBatch, .shuffle = true, .shard = world});
  CHECK(loader.size() == 3);
  std::vector<std::int64_t> seen(21, 0);
  for (const Batch& batch : loader) {
    Tensor counts = zeros({21}, {.dtype = DType::i64});
    for (std::int64_t i = 0; i < batch.input.shape()[0]; ++i) {
      const std::int64_t n = select(select(batch.input, 0, i), 0, 0).item<std::int64_t>();
      counts = counts +
               cast(equal(arange(21, {.dtype = DType::i64}), static_cast<double>(n)), DType::i64);
    }
    const std::vector<std::int64_t> all =
        distributed::all_reduce(counts, world).to_vector<std::int64_t>();
    for (std::size_t i = 0; i < seen.size(); ++i) seen[i] += all[i];
  }
  CHECK(seen == std::vector<std::int64_t>(21, 1));
}

TEST_CASE("Ranks draw different numbers, and the same parameters") {
  const World world;
  set_seed({5});
  const Tensor draws = uniform({1, 4});
  const std::vector<float> all = distributed::all_gather(draws, world).to_vector<float>();
  for (std::size_t k = 4; k < all.size(); k += 4) CHECK(all[k] != all[0]);
  const Parameters parameters(Device::cpu(), Seed{5});
  const models::Mlp model(parameters, {4, 3});
  const Tensor weight = parameters.entries()[0].tensor.detach();
  CHECK(bytes_of(distributed::all_reduce(weight, world, ReduceOp::max)) == bytes_of(weight));
}

TEST_CASE("A rank without rows adds nothing, though its gradient is NaN") {
  for (const bool ordered : {false, true}) {
    const World world({.ordered = ordered});
    const Parameters parameters(Device::cpu());
    const Tensor weight = parameters.declare("weight", {3}, initializers::ones());
    const optim::Accumulator accumulate(optim::Sgd({.learning_rate = 1, .world = world}));
    const Tensor x = ones({world.rank() == 0 ? 2 : 0, 3});
    accumulate.minimize(mean(x) * sum(weight), parameters, rows(x));
    CHECK(weight.to_vector<float>() == std::vector<float>(3, 0));
  }
}

TEST_CASE("A rank's prediction is what it measures, in bytes held and sent") {
  for (const distributed::WorldOptions& options : kWorlds) {
    INFO("ordered " << options.ordered << ", sharding " << static_cast<int>(options.sharding));
    const World world(options);
    const Device cpu = Device::cpu();
    const DataSet data = some_data();
    const auto program = [&](const World& over, const Device& device) {
      const Parameters parameters(device, {}, {.world = over});
      const models::Mlp model(parameters, {5, 300, 1});
      const optim::Adam adam = adam_over(over);
      DataLoader loader(data, {.batch = kBatch, .device = device, .shard = over});
      for (auto [x, y] : loader) adam.minimize(mse(model(x), y), parameters);
      parameters.entries()[0].tensor.to_vector<float>();  // by all ranks, where they have shares
      distributed::mean(1, 2, over);
    };
    const memory::Prediction predicted = memory::predict(
        cpu, [&](Device twin) { program(World(options), twin); },
        {.values = 0, .world = World::simulated(world.rank(), world.size(), options)});
    const std::size_t before = memory::stats(cpu).allocated.current;
    const std::uint64_t sent = world.sent_bytes();
    memory::reset_peaks(cpu);
    program(world, cpu);
    CHECK(predicted.peak_bytes == memory::stats(cpu).allocated.peak - before);
    CHECK(predicted.sent_bytes == world.sent_bytes() - sent);
    CHECK((predicted.sent_bytes > 0) == (world.size() > 1));
  }
}

TEST_CASE("A graph's plan for a rank is what the rank's session measures, in bytes held and sent") {
  const auto options = GENERATE(from_range(std::begin(kWorlds), std::end(kWorlds)));
  const World world(options);
  Graph graph;
  const Parameters parameters(graph, Seed{1}, {.world = world});
  const models::Mlp model(parameters, {5, 300, 1});
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 5});
  const Tensor step = adam_over(world).minimize(mean(square(model(x))), parameters);
  const memory::Plan plan = graph.plan({step}, {{x, {4, 5}}}, Device::cpu());
  Session session(graph);
  session.initialize(parameters);
  session.run(step, {{x, ones({4, 5})}});
  const std::uint64_t sent = world.sent_bytes();
  session.run(step, {{x, ones({4, 5})}});
  CHECK(plan.sent_bytes == world.sent_bytes() - sent);
  CHECK(plan.peak_bytes == session.stats().allocated.peak);
}

TEST_CASE("What ranks have shares of takes a part of the memory on each, as budgets know") {
  for (const InMode::Kind mode : kModes) {
    INFO("mode " << mode);
    const auto program = [&](const Device& twin) {
      const World over;
      InMode in(mode, DType::f32, {1}, {.device = twin}, over);
      const models::Mlp model(in.parameters, {256, 256, 256, 256, 256, 256, 256});
      const auto step = in.function({{DType::f32, {2, 256}}}, [&](const Tensors& t) {
        return Tensors{adam_over(over).minimize(mse(model(t[0]), t[0]), in.parameters)};
      });
      for (int i = 0; i < 2; ++i) step({ones({2, 256}, {.device = twin})});
    };
    const auto predicted = [&](Sharding sharding) {
      return memory::predict(Device::cpu(), program,
                             {.world = World::simulated(5, 32, {.sharding = sharding})});
    };
    constexpr std::size_t kLayer = 256 * 257 * sizeof(float), kAll = 6 * kLayer;
    const std::size_t whole = predicted(Sharding::none).peak_bytes;
    CHECK(whole > 4 * kAll);  // parameters, gradients, two moments
    CHECK(predicted(Sharding::optimizer_state).peak_bytes < whole - 3 * kAll / 2);
    CHECK(predicted(Sharding::gradients).peak_bytes < kAll + 3 * kLayer);
    CHECK(predicted(Sharding::parameters).peak_bytes < 13 * kLayer / 4);

    const auto fits = [&](std::size_t budget) {
      return distributed::least_sharding(Device::cpu(), budget, program,
                                         {.world = World::simulated(5, 32)});
    };
    for (const auto sharding : {Sharding::optimizer_state, Sharding::gradients}) {
      const std::size_t takes = predicted(sharding).least_limit_bytes;
      CHECK(fits(takes) == sharding);
      CHECK(fits(takes - 1) > sharding);
    }
    CHECK(fits(whole * 2) == Sharding::none);
    CHECK(error_of([&] { fits(kLayer); }).find("keeps to 263,168 bytes; none takes ") !=
          std::string::npos);
  }
  const std::string error = error_of([] {
    const auto throws_alone = [](const Device& twin) {
      if (World().sharding() == Sharding::none) throw Error("too large");
      zeros({1000}, {.device = twin});
    };
    distributed::least_sharding(Device::cpu(), 100, throws_alone,
                                {.world = World::simulated(0, 8)});
  });
  CHECK(error.find("none throws too large") != std::string::npos);
  const auto has_its_own = [](const Device& twin) {
    const World over({.sharding = Sharding::gradients});
    zeros({1000}, {.device = twin});
  };
  CHECK(distributed::least_sharding(Device::cpu(), 1 << 20, has_its_own,
                                    {.world = World::simulated(0, 8)}) == Sharding::gradients);
}

TEST_CASE("A session's budget is kept on every rank, with shares or without") {
  for (const distributed::WorldOptions& options : kWorlds) {
    INFO("ordered " << options.ordered << ", sharding " << static_cast<int>(options.sharding));
    const World world(options);
    Graph graph;
    const Parameters parameters(graph, Seed{1}, {.world = world});
    const models::Mlp model(parameters, {5, 50, 50, 50, 1});
    const Tensor x = graph.placeholder("x", DType::f32, {-1, 5});
    const Tensor step = adam_over(world).minimize(mean(square(model(x))), parameters);
    const std::int64_t rows = 600 + world.rank();
    const FedShapes shapes{{x, {rows, 5}}};
    const std::size_t least = graph.least_budget({step}, shapes, Device::cpu());
    CHECK(least < graph.plan({step}, shapes, Device::cpu()).reserved_bytes);
    std::vector<float> losses;
    for (const bool is_bound : {false, true}) {
      SessionOptions session_options;
      if (is_bound) session_options.budget = least;
      Session session(graph, session_options);
      session.initialize(parameters);
      for (int i = 0; i < 2; ++i)
        losses.push_back(session.run(step, {{x, ones({rows, 5})}}).item<float>());
      if (is_bound) CHECK(session.stats().reserved.peak <= least);
    }
    CHECK(losses[2] == Approx(losses[0]));
    CHECK(losses[3] == Approx(losses[1]));
  }
}

TEST_CASE("Shares are refused to what would lose or mistake them") {
  const World world({.sharding = Sharding::parameters});
  const Parameters parameters(Device::cpu(), Seed{1}, {.world = world}), plain(Device::cpu());
  const models::Dense dense(parameters, 3, 2), alone(plain, 3, 2);
  const auto loss = [](const models::Dense& of) { return sum(of(ones({1, 3}))); };
  CHECK_ERROR(optim::Adam().minimize(loss(dense), parameters), Error, "give it to both");
  CHECK_ERROR(adam_over(world).minimize(loss(alone), plain), Error, "give it to both");
  CHECK_ERROR(assign(parameters["weight"], ones({3, 2})), Error, "only an optimizer updates");
  CHECK_ERROR(compile([&] {
                return assign(parameters["weight"], ones({3, 2}));
              })(),
              Error, "only an optimizer updates");
  struct Mean final : optim::Rule {
    const char* name() const noexcept override { return "mean"; }
    std::span<const char* const> slots() const noexcept override { return {}; }
    optim::RuleResult update(const optim::RuleInput& in) const override {
      return {in.parameter - mean(in.gradient), {}};
    }
  };
  const optim::Optimizer by_mean(std::make_shared<Mean>(), 0.1, {}, {}, CallSite::here(), world);
  CHECK_ERROR(by_mean.minimize(loss(dense), parameters), Error, "is_elementwise");
  const Parameters copy(Device::cpu(), Seed{2}, {.world = world});
  const models::Dense other(copy, 3, 2);
  copy.copy_from(parameters);
  CHECK(bytes_of(copy["weight"]) == bytes_of(parameters["weight"]));
  CHECK(bytes_of(alone(ones({1, 3}))) != bytes_of(other(ones({1, 3}))));
}

TEST_CASE("Several parameters in shares can be fed, saved and read at once") {
  const World world({.sharding = Sharding::parameters});
  const Parameters parameters(Device::cpu(), Seed{1}, {.world = world}),
      plain(Device::cpu(), Seed{1});
  for (const Parameters& p : {parameters, plain})
    for (const char* layer : {"a", "b", "c"})
      p.scope(layer).declare("w", {40}, initializers::normal(0, 1));
  const auto of = [](const Parameters& p, const char* name) { return p[name].detach(); };
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {40}),
               y = graph.placeholder("y", DType::f32, {40});
  Session session(graph);
  const auto fed = [&](const Parameters& p) {
    return bytes_of(session.run(x - y, {{x, of(p, "a.w")}, {y, of(p, "b.w")}}));
  };
  CHECK(fed(parameters) == fed(plain));
  std::optional<SharedFolder> folder(world);
  const std::string file = folder->path + '/' + std::to_string(world.rank());
  save_safetensors(
      file,
      {{"a", of(parameters, "a.w")}, {"b", of(parameters, "b.w")}, {"c", of(parameters, "c.w")}});
  const TensorsByName saved = load_safetensors(file);
  for (const auto& [name, value] : saved)
    CHECK(bytes_of(value) == bytes_of(of(plain, (name + ".w").c_str())));
  CHECK_ERROR(to_dlpack(of(parameters, "a.w")), Error, "clone()");
  folder.reset();
  parameters.scope("d").declare("w", {40}, initializers::zeros());
  world.close();
  if (world.size() > 1)
    CHECK_ERROR(session.run(x - y, {{x, of(parameters, "d.w")}, {y, ones({40})}}), Error, "closed");
}

TEST_CASE("Sessions copy shares to shares of the same world, and nothing else") {
  const World world({.sharding = Sharding::parameters});
  Graph shared, plain;
  const Parameters p(shared, Seed{1}, {.world = world}), q(plain, Seed{2});
  for (const Parameters& of : {p, q}) of.declare("w", {7}, initializers::normal(0, 1));
  Session here(shared), other(shared), whole(plain);
  here.initialize();
  other.initialize();
  whole.initialize();
  other.assign(p["w"], zeros(other.value(p["w"]).shape()));
  here.copy_from(other);
  CHECK(bytes_of(here.value(p["w"])) == bytes_of(other.value(p["w"])));
  CHECK_ERROR(whole.copy_from(here), Error, "in shares");
  CHECK_ERROR(here.copy_from(whole), Error, "in shares");
  CHECK_ERROR(whole.copy_from(here, p, q), Error, "in shares");
  const Parameters of_part(shared, Seed{1}, {.name = "part", .world = world.split(0)});
  of_part.declare("w", {7}, initializers::zeros());
  here.initialize();
  CHECK_ERROR(here.save("never"), Error, "two worlds");
}

TEST_CASE("Batch normalisation over a world is that of the whole batch in one process") {
  const World world;
  const std::int64_t rows = 6 * world.size() - 1;  // parts differ
  const Tensor numbers = arange(static_cast<double>(12 * rows), {.dtype = DType::f64}) * 0.7;
  const DataSet data = DataSet::of({sin(reshape(numbers, {rows, 3, 4}))});
  for (const InMode::Kind mode : kModes) {
    INFO("mode " << mode);
    const auto results = [&](const std::optional<World>& over) {
      InMode in(mode, DType::f64);
      const models::BatchNorm first(in.parameters.scope("first"), 3, {.world = over});
      const models::BatchNorm norm(in.parameters, 3, {.world = over});
      const optim::Sgd sgd({.learning_rate = 0.1, .world = over});
      const auto step = in.function({{DType::f64, {-1, 3, 4}}}, [&](const Tensors& t) -> Tensors {
        const Tensor y = norm(tanh(first(t[0], Phase::training)), Phase::training);
        return {sgd.minimize(mean(square(y - 0.3 * t[0])), in.parameters)};
      });
      DataLoader loader(data, {.batch = rows, .shard = over});
      for (int i = 0; i < 3; ++i)
        for (const Batch& batch : loader) step({batch.input});
      return in.values();
    };
    const auto here = results(world), alone = results({});
    for (const auto& [name, value] : here) {
      INFO(name);
      CHECK(max(abs(value - alone.at(name))).item<double>() < 1e-12);
    }
  }
}

TEST_CASE("Ranks that restore rank 0's session draw different numbers, and go on as one") {
  const World world;
  Graph graph;
  const Parameters parameters(graph, Seed{1});
  const models::Dense dense(parameters, 4, 4);
  const Tensor x = graph.placeholder("x", DType::f32, {1, 4});
  const Tensor drawn = dropout(dense(x), 0.5, Phase::training) + uniform(graph, {1, 4});
  Session session(graph, {.seed = Seed{9}});
  session.initialize(parameters);
  const SharedFolder folder(world);
  const std::string file = folder.path + "/world.safetensors";
  if (world.rank() == 0) session.save(file);
  CHECK(distributed::mean(world.rank(), world.rank() + 1, world) ==
        2.0 / 3 * (world.size() - 1));  // every rank gets on once the file is there
  session.restore(file);
  const std::vector<float> all =
      distributed::all_gather(session.run(drawn, {{x, ones({1, 4})}}), world).to_vector<float>();
  for (std::size_t k = 4; k < all.size(); k += 4) CHECK(all[k] != all[0]);
}

}  // namespace
}  // namespace ebb::tests
