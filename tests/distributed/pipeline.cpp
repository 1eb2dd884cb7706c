#include "ebb/tests/bytes.h"
#include "ebb/tests/distributed/ranks.h"

namespace ebb::tests {
namespace {

using distributed::Pipeline;

// Five stages of 5 features, which 1 to 5 ranks share. The first declares its parameters late, the
// last makes one number of each row.
std::vector<Pipeline::Stage> stages() {
  std::vector<Pipeline::Stage> all(
      4, [](const Parameters& p) { return models::Dense(p, 5, 5, Activation::tanh); });
  all[0] = [](const Parameters& p) {
    const auto late = std::make_shared<std::optional<models::Dense>>();
    return [=](const Tensor& x) {
      if (!*late) late->emplace(p, 5, 5, Activation::tanh);
      return (**late)(x);
    };
  };
  all.push_back([](const Parameters& p) { return models::Dense(p, 5, 1); });
  return all;
}

Tensor loss_of(const Tensor& y, const Tensor& target) { return mse(y, target); }

TEST_CASE("A pipeline trains as one process that accumulates the micro-batches, bit for bit") {
  const World world;
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const int micro_batches : {1, 3, 6}) {
      const bool is_f32 = dtype == DType::f32;  // means of 16 bits are rounded once more
      INFO(name(dtype) << ", " << micro_batches << " micro-batches");
      const Parameters own(Device::cpu(), Seed{1}, dtype), whole(Device::cpu(), Seed{1}, dtype);
      Pipeline pipeline(stages(), loss_of, own, world, {.micro_batches = micro_batches});
      std::vector<Pipeline::Function> layers;
      for (const Pipeline::Stage& stage : stages())
        layers.push_back(stage(whole.scope(std::to_string(layers.size()))));
      const optim::Adam adam = adam_over({}, {.value = 0.5});
      const optim::Accumulator accumulate(adam, {.samples = 1000});
      DataLoader loader(some_data(), {.batch = kBatch, .shuffle = Seed{3}});
      for (int epoch = 0; epoch < 2; ++epoch)
        for (auto [x32, y32] : loader) {
          const Tensor x = cast(x32, dtype), y = cast(y32, dtype);
          const std::int64_t rows = x.size(0), parts = std::min<std::int64_t>(rows, micro_batches);
          double sum = 0;
          for (std::int64_t i = 0; i < parts; ++i) {
            const std::int64_t begin = rows * i / parts, end = rows * (i + 1) / parts;
            Tensor part = slice(x, begin, end);
            for (const Pipeline::Function& layer : layers) part = layer(part);
            const Tensor loss = accumulate.minimize(mse(part, slice(y, begin, end)), whole,
                                                    Tensor::from(end - begin));
            sum += loss.item<double>() * static_cast<double>(end - begin);
          }
          accumulate.flush(whole);
          const double loss = pipeline.minimize(adam, x, y).item<double>();
          CHECK(std::abs(loss - sum / static_cast<double>(rows)) <= (is_f32 ? 0 : 0.01));
        }
      const Tensor no_x = zeros({0, 5}, dtype), no_y = zeros({0, 1}, dtype);
      CHECK(std::isnan(pipeline.minimize(adam, no_x, no_y).item<double>()));
      CHECK(own.entries().size() >= 2);
      for (const auto& [name, tensor] : own.entries()) {
        INFO(name);
        CHECK(max(abs(tensor - whole[name])).item<float>() <= (is_f32 ? 0 : 0.02f));
      }
    }
}

TEST_CASE("Copies of a pipeline that share the rows train as one process") {
  const World all;
  const int ranks = all.size() % 2 == 0 ? all.size() / 2 : 1;  // of a pipeline
  const World own = all.split(all.rank() / ranks), copies = all.split(all.rank() % ranks);
  const Parameters stage(Device::cpu(), Seed{1}), whole(Device::cpu(), Seed{1});
  Pipeline pipeline(stages(), loss_of, stage, own, {.micro_batches = 2});
  std::vector<Pipeline::Function> layers;
  for (const Pipeline::Stage& each : stages())
    layers.push_back(each(whole.scope(std::to_string(layers.size()))));
  const optim::Adam adam = adam_over(copies), alone = adam_over({});
  DataLoader loader(some_data(), {.batch = kBatch, .shard = copies}),
      unsharded(some_data(), {.batch = kBatch});
  for (auto [x, y] : loader) pipeline.minimize(adam, x, y);  // at the end a copy has no rows
  for (auto [x, y] : unsharded) {
    Tensor z = x;
    for (const Pipeline::Function& layer : layers) z = layer(z);
    alone.minimize(mse(z, y), whole);
  }
  for (const auto& [name, tensor] : stage.entries()) {
    INFO(name);
    CHECK(max(abs(tensor - whole[name])).item<float>() < 1e-4f);
  }
}

TEST_CASE("A copy of a pipeline that fails tells the ranks of all copies why") {
  const World all;
  if (all.size() == 1) return;
  const int ranks = all.size() / 2;
  const World own = all.split(all.rank() / ranks), copies = all.split(all.rank() % ranks);
  const auto loss = [&](const Tensor& y, const Tensor& target) {
    if (all.rank() == all.size() - 1) throw Error("out of something");
    return mse(y, target);
  };
  Pipeline pipeline(stages(), loss, Parameters(Device::cpu(), Seed{1}), own);
  const std::string error = error_of([&] {
    pipeline.minimize(adam_over(copies), ones({4, 5}), zeros({4, 1}));
  });
  CHECK(error.find("out of something") != std::string::npos);
  if (all.rank() == 2) CHECK(error.find("(rank 3 of all)") != std::string::npos);
}

TEST_CASE("A prediction of a pipeline that throws leaves the job's world open") {
  const World copies;
  const auto loss = [](const Tensor& y, const Tensor&) -> Tensor {
    throw Error("out of something like " + y.to_string());
  };
  const auto program = [&](const Device& twin) {
    Pipeline pipeline(stages(), loss, Parameters(twin, Seed{1}), World());
    const Tensor x = ones({4, 5}, {.device = twin});
    pipeline.minimize(adam_over(copies), x, x);
  };
  const std::string error =
      error_of([&] { memory::predict(Device::cpu(), program, {.world = World::simulated(0, 1)}); });
  CHECK(error.find("out of something") != std::string::npos);
  CHECK(error_of([&] { distributed::all_reduce(ones({4}), copies); }) == "");
}

TEST_CASE("Each rank of a pipeline measures the bytes that are predicted for it, and sends them") {
  const World world;
  const Device cpu = Device::cpu();
  const DataSet data = some_data();
  const auto program = [&](const World& over, const Device& device) {
    const Parameters parameters(device, Seed{1});
    Pipeline pipeline(stages(), loss_of, parameters, over, {.micro_batches = 4});
    const optim::Adam adam = adam_over({});
    DataLoader loader(data, {.batch = kBatch, .device = device});
    for (auto [x, y] : loader) pipeline.minimize(adam, x, y);
  };
  const memory::Prediction predicted =
      memory::predict(cpu, [&](Device twin) { program(World(), twin); },
                      {.world = World::simulated(world.rank(), world.size())});
  const std::size_t before = memory::stats(cpu).allocated.current;
  memory::reset_peaks(cpu);
  program(world, cpu);
  CHECK(predicted.peak_bytes == memory::stats(cpu).allocated.peak - before);
  // Of 21 rows 5 numbers to each neighbour; of three steps the loss to all from the last.
  const bool is_first = world.rank() == 0, is_last = world.rank() == world.size() - 1;
  const auto others = static_cast<std::uint64_t>(world.size() - 1);
  CHECK(predicted.sent_bytes ==
        ((is_first ? 0 : 1u) + (is_last ? 0 : 1u)) * 21 * 5 * sizeof(float) +
            (is_last ? 3 * sizeof(double) * others : 0));
}

TEST_CASE("Rank k of n keeps the activations of n - k micro-batches, however many there are") {
  constexpr int kRanks = 4;
  constexpr std::int64_t kRows = 64;  // of a micro-batch
  const auto peak = [](int rank, int micro_batches) {
    return memory::predict(Device::cpu(),
                           [&](const Device& twin) {
                             const World over;
                             const Parameters parameters(twin);
                             Pipeline pipeline({kRanks,
                                                [](const Parameters& p) {
                                                  return models::Dense(p, 64, 64, Activation::tanh);
                                                }},
                                               loss_of, parameters, over,
                                               {.micro_batches = micro_batches});
                             const Tensor x = zeros({kRows * micro_batches, 64}, {.device = twin});
                             pipeline.minimize(optim::Sgd(), x, x);
                           },
                           {.world = World::simulated(rank, kRanks)})
               .peak_bytes -
           static_cast<std::size_t>(micro_batches * kRows * 64) * sizeof(float);
  };
  constexpr std::size_t kActivation = static_cast<std::size_t>(kRows) * 64 * sizeof(float);
  for (int rank = 0; rank < kRanks; ++rank) CHECK(peak(rank, 8) == peak(rank, 32));
  // What arrives, and what is sent on.
  CHECK(peak(1, 8) - peak(2, 8) == 2 * kActivation);
  CHECK(Pipeline(stages(), loss_of, Parameters(Device::cpu()), World::simulated(1, kRanks),
                 {.micro_batches = 4})
            .bubble() == 3.0 / 7);
}

TEST_CASE("Ranks whose pipelines differ, or of which one fails, have an error on all") {
  const World jobs;
  const int last = jobs.size() - 1;
  const Tensor x = ones({6, 5}), y = ones({6, 1});
  const optim::Sgd sgd;
  const auto error_with = [&](const std::function<void(const World&, const Parameters&)>& work) {
    return error_of([&] {
      const World world;
      work(world, Parameters(Device::cpu()));
    });
  };
  if (last > 0) {
    const std::string error = error_with([&](const World& world, const Parameters& own) {
      Pipeline(stages(), loss_of, own, world, {.micro_batches = world.rank() == last ? 3 : 2});
    });
    INFO(error);
    CHECK(error.find("calls a pipeline of 5 stages and 3 micro-batches (") != std::string::npos);
    CHECK(error_with([&](const World& world, const Parameters& own) {
            Pipeline pipeline(stages(), loss_of, own, world, {.micro_batches = 2});
            const std::int64_t rows = world.rank() == last ? 4 : 6;
            pipeline.minimize(sgd, slice(x, 0, rows), slice(y, 0, rows));
          }) != "");
    for (int failing = 0; failing <= last; ++failing) {
      const std::string cause = error_with([&](const World& world, const Parameters& own) {
        int calls = 0;
        const Pipeline::Stage fails = [&](const Parameters& p) -> Pipeline::Function {
          return [&, dense = models::Dense(p, 5, 5)](const Tensor& z) {
            if (world.rank() == failing && z.device() == Device::cpu() && ++calls == 5)
              throw Error("out of something");
            return dense(z);
          };
        };
        Pipeline pipeline(std::vector(static_cast<std::size_t>(last + 1), fails), loss_of, own,
                          world, {.micro_batches = 3});
        for (int i = 0; i < 2; ++i) pipeline.minimize(sgd, x, x);
      });
      INFO(cause);
      CHECK(cause.find("out of something") != std::string::npos);
    }
    CHECK(error_with([&](const World& world, const Parameters& own) {
            Pipeline(stages(), loss_of, own, world)
                .minimize(optim::Sgd({.clip = {.global_norm = 1}}), x, y);
          }).find("global norm") != std::string::npos);
  }
  CHECK(error_with([&](const World& world, const Parameters&) {
          Pipeline(stages(), loss_of, Parameters(Device::cpu(), {}, {.world = world}), world);
        }).find("without a world") != std::string::npos);
  CHECK(error_with([&](const World& world, const Parameters& own) {
          Pipeline pipeline(stages(), loss_of, own, world);
          DataLoader loader(some_data(), {.batch = kBatch, .shard = world});
          for (auto [part, target] : loader) pipeline.minimize(sgd, part, target);
        }).find("no .shard") != std::string::npos);
  CHECK(error_with([&](const World& world, const Parameters& own) {
          const NoGrad none;
          Pipeline(stages(), loss_of, own, world).minimize(sgd, x, y);
        }).find("NoGrad") != std::string::npos);
  CHECK(error_with([&](const World& world, const Parameters& own) {
          Pipeline({}, loss_of, own, world);
        }).find("0 stages and 1 micro-batches is too few") != std::string::npos);
  CHECK(error_with([&](const World& world, const Parameters& own) {
          Pipeline(stages(), loss_of, own, world).minimize(sgd, x, ones({5, 1}));
        }).find("a target for each") != std::string::npos);
  CHECK(error_with([&](const World& world, const Parameters& own) {
          Pipeline pipeline(stages(), loss_of, own, world);
          compile([&](const Tensor& z) { return pipeline.minimize(sgd, z, y); })(x);
        }).find("eagerly") != std::string::npos);
}

}  // namespace
}  // namespace ebb::tests
