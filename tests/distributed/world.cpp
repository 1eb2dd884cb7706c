// Run alone and by mpirun: every rank runs these tests, in the same order.
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <thread>

#include "ebb/ebb.h"
#include "ebb/tests/bytes.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/in_mode.h"

namespace ebb::tests {
namespace {

using distributed::World;

constexpr InMode::Kind kModes[] = {InMode::eager, InMode::graph, InMode::compiled};

// 21 samples of 5 features and a target.
DataSet some_data() {
  std::vector<float> x, y;
  for (int i = 0; i < 21; ++i) {
    for (int k = 0; k < 5; ++k) x.push_back(std::sin(0.37f * static_cast<float>(i * 5 + k)));
    y.push_back(std::cos(0.71f * static_cast<float>(i)));
  }
  return {Tensor::from(x, {21, 5}), Tensor::from(y, {21, 1})};
}

// The message of the error that `work` throws on this rank.
std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

constexpr std::int64_t kBatch = 10;  // 21 samples end in a batch of 1: most ranks have none

// Batches of 7 fit into groups of 14 samples, however ranks share them.
std::int64_t batch_for(std::int64_t samples) { return samples ? samples / 2 : kBatch; }

// A tensor that differs by rank, of values that sum exactly.
Tensor ranks_own(const World& world, DType dtype, std::int64_t rows = 8) {
  const Tensor x =
      arange(static_cast<double>(rows * 3), {.dtype = DType::f32}) + 100.0 * world.rank();
  return cast(reshape(x, {rows, 3}), dtype);
}

TEST_CASE("Collectives give every rank what their names say, in all modes and dtypes") {
  for (const bool ordered : {false, true}) {
    const World world({.ordered = ordered});
    const int size = world.size();
    const double rank_sum = 100.0 * size * (size - 1) / 2;
    for (const InMode::Kind mode : kModes)
      for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::i32, DType::i64}) {
        INFO(name(dtype) << ", mode " << mode);
        const std::int64_t rows = 4 * size;
        const Tensor x = ranks_own(world, dtype, rows);
        InMode in(mode);
        const auto all = in.function({{dtype, {rows, 3}}}, [&](const Tensors& t) -> Tensors {
          return {distributed::all_reduce(t[0], world),
                  distributed::all_reduce(t[0], world, ReduceOp::max),
                  distributed::all_gather(t[0], world), distributed::reduce_scatter(t[0], world),
                  distributed::broadcast(t[0], world, size - 1)};
        });
        const Tensors results = all({x});
        const Tensor base =
            cast(reshape(arange(static_cast<double>(rows * 3), {.dtype = DType::f32}), {rows, 3}),
                 DType::f64);
        const auto same = [](const Tensor& got, const Tensor& want) {
          return got.shape() == want.shape() &&
                 max(abs(cast(got, DType::f64) - want)).item<double>() == 0;
        };
        CHECK(same(results[0], base * size + rank_sum));
        CHECK(same(results[1], base + 100.0 * (size - 1)));
        for (int k = 0; k < size; ++k)
          CHECK(same(slice(results[2], k * rows, (k + 1) * rows), base + 100.0 * k));
        CHECK(same(results[3],
                   slice(base * size + rank_sum, world.rank() * 4, world.rank() * 4 + 4)));
        CHECK(same(results[4], base + 100.0 * (size - 1)));
      }
  }
}

TEST_CASE("Large sums in place are exact, however many elements a rank's share has") {
  const World world;
  const int size = world.size();
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t elements : {16'384, 50'001, 200'003}) {
      INFO(name(dtype) << ", " << elements);
      const Tensor base = arange(static_cast<double>(elements), {.dtype = dtype});
      const Tensor begun =
          ebb::detail::begin_total(base + static_cast<double>(world.rank()), world, "numbers");
      const Tensor sum = ebb::detail::end_total(begun, world);
      const Tensor want = base * size + 0.5 * size * (size - 1);
      CHECK(max(abs(cast(sum - want, DType::f64))).item<double>() == 0);
    }
}

TEST_CASE("Gradients of collectives are those of the sum of all ranks' losses") {
  const World world;
  const int size = world.size();
  for (const InMode::Kind mode : kModes) {
    InMode in(mode, DType::f64);
    // Each rank's loss weighs the result by its own numbers.
    const auto gradient_of = [&](const std::function<Tensor(const Tensor&)>& f) {
      const Tensor x = ranks_own(world, DType::f64, 4 * size).with_grad();
      const auto step = in.function({x.impl()->spec}, [&](const Tensors& t) -> Tensors {
        const Tensor y = f(t[0]);
        return {gradient(sum(y * y), t[0])};
      });
      return step({x})[0];
    };
    if (mode == InMode::graph) continue;  // a placeholder has no gradient
    const Tensor x = ranks_own(world, DType::f64, 4 * size);
    const auto near = [](const Tensor& a, const Tensor& b) {
      return max(abs(a - b)).item<double>() < 1e-9 * (1 + max(abs(b)).item<double>());
    };
    const Tensor sum_of_all = distributed::all_reduce(x, world);
    CHECK(near(gradient_of([&](const Tensor& t) { return distributed::all_reduce(t, world); }),
               sum_of_all * (2.0 * size)));
    CHECK(near(gradient_of([&](const Tensor& t) {
                 return distributed::all_reduce(t, world, ReduceOp::mean);
               }),
               sum_of_all * (2.0 / size)));
    CHECK(near(gradient_of([&](const Tensor& t) { return distributed::all_gather(t, world); }),
               x * (2.0 * size)));
    CHECK(near(gradient_of([&](const Tensor& t) { return distributed::reduce_scatter(t, world); }),
               sum_of_all * 2));
    const Tensor from_last = distributed::broadcast(x, world, size - 1);
    CHECK(near(
        gradient_of([&](const Tensor& t) { return distributed::broadcast(t, world, size - 1); }),
        from_last * (world.rank() == size - 1 ? 2.0 * size : 0.0)));
    const Tensor greatest = distributed::all_reduce(x, world, ReduceOp::max);
    CHECK(near(gradient_of([&](const Tensor& t) {
                 return distributed::all_reduce(t, world, ReduceOp::max);
               }),
               cast(equal(x, greatest), DType::f64) * greatest * (2.0 * size)));
  }
}

// Losses, then parameters and slots by name.
struct Trained {
  std::vector<double> losses;
  std::map<std::string, Tensor> values;
};

optim::Adam adam_over(const std::optional<World>& world, optim::Clip clip = {}) {
  return optim::Adam({.learning_rate = 0.05, .weight_decay = 0.01, .clip = clip, .world = world});
}

// Two epochs over the ranks of a world; with `samples` accumulated over several batches.
Trained train_over(const World& world, InMode::Kind mode, std::int64_t samples, optim::Clip clip,
                   DType sums = DType::f32) {
  InMode in(mode);
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

TEST_CASE("An ordered world trains bit for bit as one process that accumulates the ranks' parts") {
  const World world({.ordered = true});
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
          CHECK(bytes_of(value) == bytes_of(alone.values.at(name)));
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

TEST_CASE("The greatest of numbers with a NaN among them is NaN") {
  const World world;
  for (const DType dtype : {DType::f32, DType::f64, DType::f16})
    for (int of = 0; of < world.size(); ++of) {
      const Tensor x = Tensor::full({2}, world.rank() == of ? NAN : 1.0, dtype);
      const Tensor greatest = distributed::all_reduce(x, world, ReduceOp::max);
      CHECK(std::isnan(cast(greatest, DType::f32).item<float>({1})));
    }
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
  {
    const World world;  // another model
    const bool differs = world.rank() == 1;
    const Parameters parameters(Device::cpu());
    const models::Mlp model(parameters, {5, differs ? 7 : 6, 1});
    const optim::Sgd sgd({.world = world});
    const auto before = bytes_of(parameters.entries()[0].tensor);
    const std::string error = error_of([&] {
      sgd.minimize(mse(model(ones({2, 5})), zeros({2, 1})), parameters);
    });
    INFO(error);
    CHECK(error.find("the gradients of '0.weight' to '1.bias'") != std::string::npos);
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

// Three steps of which the second fails, on the last rank alone.
void fail_in_second_step(const World& world, InMode::Kind mode, const char* how) {
  InMode in(mode);
  const models::Mlp model(in.parameters, {5, 2000, 1});
  const optim::Sgd sgd({.world = world});
  const auto step = in.function({{DType::f32, {-1, 5}}}, [&](const Tensors& t) -> Tensors {
    return {sgd.minimize(mean(model(t[0])), in.parameters)};
  });
  const bool fails = world.rank() == world.size() - 1;
  for (int i = 0; i < 3; ++i) {
    std::int64_t rows = 2;
    if (fails && i == 1) {
      if (how == std::string("memory")) {
        memory::release_cached(Device::cpu());
        memory::set_limit(Device::cpu(), memory::stats(Device::cpu()).reserved.current + (4 << 20));
        rows = 5000;
      } else if (how == std::string("throw")) {
        throw Error("out of something");
      } else {
        raise(SIGKILL);
      }
    }
    step({ones({rows, 5})});
  }
}

TEST_CASE("A rank that fails alone is an error on all") {
  if (World().size() == 1) return;
  for (const InMode::Kind mode : kModes)
    for (const char* const how : {"memory", "throw"}) {
      const std::string error = error_of([&] {
        const World world;
        fail_in_second_step(world, mode, how);
      });
      memory::set_limit(Device::cpu(), {});
      INFO("mode " << mode << ", " << how << ": " << error);
      CHECK(error != "");
    }
}

TEST_CASE("A rank that fails does not wait for ranks that wait in another of its worlds") {
  if (World().size() == 1) return;
  const std::string error = error_of([] {
    const World first, second;
    if (first.rank() == 0) throw Error("out of something");
    distributed::all_reduce(zeros({4}), first);
  });
  CHECK(error != "");
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

TEST_CASE("A run that fails on one rank after the sum is an error on all in the next") {
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

// Run by itself: the launcher then ends the other ranks.
TEST_CASE("A rank that is killed ends the job", "[.killed]") {
  const World world;
  fail_in_second_step(world, InMode::eager, "kill");
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

TEST_CASE("A rank that is late changes nothing") {
  const World world;
  Tensor sum = zeros({});
  for (int i = 0; i < 20; ++i) {
    if ((i * 7 + world.rank() * 3) % 5 == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    sum = sum + distributed::all_reduce(Tensor::from(static_cast<float>(world.rank() + i)), world);
  }
  const int size = world.size();
  CHECK(sum.item<float>() == static_cast<float>(20 * size * (size - 1) / 2 + 190 * size));
}

TEST_CASE("A rank's prediction is what it measures, in bytes held and sent") {
  for (const bool ordered : {false, true}) {
    const World world({.ordered = ordered});
    const Device cpu = Device::cpu();
    const DataSet data = some_data();
    const auto program = [&](const World& over, const Device& device) {
      const Parameters parameters(device);
      const models::Mlp model(parameters, {5, 300, 1});
      const optim::Adam adam = adam_over(over);
      DataLoader loader(data, {.batch = kBatch, .device = device, .shard = over});
      for (auto [x, y] : loader) adam.minimize(mse(model(x), y), parameters);
    };
    const memory::Prediction predicted = memory::predict(
        cpu, [&](Device twin) { program(World(), twin); },
        {.world = World::simulated(world.rank(), world.size(), {.ordered = ordered})});
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
  const World world;
  Graph graph;
  const Parameters parameters(graph, Seed{1});
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
  if (world.rank() == 0) session.save("world.safetensors");
  CHECK(distributed::mean(world.rank(), world.rank() + 1, world) ==
        2.0 / 3 * (world.size() - 1));  // every rank gets on once the file is there
  session.restore("world.safetensors");
  const std::vector<float> all =
      distributed::all_gather(session.run(drawn, {{x, ones({1, 4})}}), world).to_vector<float>();
  for (std::size_t k = 4; k < all.size(); k += 4) CHECK(all[k] != all[0]);
  if (world.rank() == 0) std::filesystem::remove("world.safetensors");
}

TEST_CASE("A world that has been moved from is a handle of it still") {
  World world;
  const World other = std::move(world);
  CHECK(world == other);  // NOLINT
}

TEST_CASE("A simulated world is not split: nobody knows its colors") {
  CHECK(error_of([] { World::simulated(0, 2).split(0); }) != "");
  CHECK(World::simulated(0, 1).split(0).size() == 1);
}

TEST_CASE("A world is split by color into worlds of their own") {
  const World world;
  const World half = world.split(world.rank() % 2);
  CHECK(half.size() == (world.size() + 1 - world.rank() % 2) / 2);
  CHECK(half.rank() == world.rank() / 2);
  const Tensor sum = distributed::all_reduce(Tensor::from(static_cast<float>(world.rank())), half);
  float expected = 0;
  for (int k = world.rank() % 2; k < world.size(); k += 2) expected += static_cast<float>(k);
  CHECK(sum.item<float>() == expected);
}

}  // namespace
}  // namespace ebb::tests
