// Predictions of loops that read values and save: MEMORY.md, rows 14 and 26.
#include <cmath>
#include <filesystem>
#include <functional>
#include <sstream>

#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/second_device.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/graph/models.h"

using namespace ebb;
using namespace ebb::literals;
using ebb::tests::ClassifierData;
using ebb::tests::ClassifierGraph;

namespace {

struct Loop {
  const char* name;
  std::function<void(const Device&, const tests::TemporaryFolder&)> program;
  std::size_t reads;  // in all, on the twin
};

struct Net {
  explicit Net(const Device& device, Seed seed = {1})
      : params(device, seed), model(params.scope("model"), 16, 4), data(50, device) {}
  Tensor train() const {
    return optim::Adam().minimize(softmax_cross_entropy(model(data.x), data.y), params);
  }
  Parameters params;
  models::Dense model;
  ClassifierData data;
};

const Loop kLoops[] = {
    {"item after every step",
     [](const Device& device, const tests::TemporaryFolder&) {
       const Net net(device);
       double sum = 0;
       for (int i = 0; i < 3; ++i) sum += net.train().item<double>();
       CHECK(sum != 0);
     },
     3},
    {"a metric, early stopping and the best weights again",
     [](const Device& device, const tests::TemporaryFolder&) {
       const Net net(device);
       EarlyStopping stopping({.patience = 10});
       for (int i = 0; i < 3; ++i) {
         net.train();
         stopping.update(metrics::accuracy(net.model(net.data.x), net.data.y), net.params);
       }
       stopping.restore(net.params);
     },
     6},
    {"a checkpoint that another model loads",
     [](const Device& device, const tests::TemporaryFolder& folder) {
       const Net net(device), other(device, Seed{2});
       net.train();
       net.params.save(folder.path("a.safetensors"));
       other.params.load(folder.path("./a.safetensors"));
       CHECK(other.params.slots().size() == net.params.slots().size());
       other.train();
     },
     0},
    {"a session that closes, opens again and goes on",
     [](const Device& device, const tests::TemporaryFolder& folder) {
       const ClassifierGraph model;
       const ClassifierData data(50, device);
       {
         Session session = model.open({.device = device});
         session.run(model.train, feeds(model, data));
         session.save(folder.path("b"));
       }
       Session session(model.graph, {.device = device});
       session.restore(folder.path("b"));
       CHECK(session.run(model.train, feeds(model, data)).item<double>() != 0);
     },
     1},
    {"values that are printed and searched for NaN",
     [](const Device& device, const tests::TemporaryFolder&) {
       const Tensor x = Tensor::full({3}, 0.5, DType::f32, device);
       std::ostringstream out;
       out << x;
       const DetectNan detect;
       const Tensor y = x * 2;
       CHECK(y.to_vector<float>().size() == 3);
     },
     3},
};

}  // namespace

TEST_CASE("a loop that reads and saves takes what its prediction says", "[row14][host]") {
  for (const Device& device : {Device::cpu(), tests::make_second_device({})})
    for (const Loop& loop : kLoops) {
      CAPTURE(loop.name, device.name());
      const tests::TemporaryFolder folder;
      const memory::Prediction predicted = memory::predict(
          device, [&](const Device& twin) { loop.program(twin, folder); }, {.values = 1});
      CHECK(folder.count() == 0);
      CHECK(predicted.reads_values == (loop.reads > 0));
      std::size_t reads = 0;
      for (const memory::ReadLine& line : predicted.reads) {
        const bool has_line = std::string(line.tag.file).ends_with("prediction.cpp");
        CHECK((has_line || std::string(line.tag.operator_name) == "print"));  // << has no line
        reads += line.count;
      }
      CHECK(reads == loop.reads);
      std::ostringstream text;
      text << predicted;
      CHECK(text.str().find(":0") == std::string::npos);
      const std::size_t held = memory::stats(device).allocated.current;
      const memory::PeakScope peak(device);
      loop.program(device, folder);
      CHECK(predicted.peak_bytes == peak.bytes() - held);
    }
}

TEST_CASE("a function gives each element read, in the tensor's own dtype") {
  std::vector<memory::ReadLine> reads;
  const auto program = [](const Device& twin) {
    CHECK(Tensor::zeros({2, 2}, DType::i32, twin).to_vector<std::int64_t>() ==
          std::vector<std::int64_t>{0, 2, 4, 4});
    CHECK(Tensor::zeros({2, 2}, DType::f64, twin).item<double>({1, 1}) == 3.5 + 1);
    CHECK(Tensor::zeros({1}, DType::u8, twin).item<int>() == 1);
    CHECK(Tensor::zeros({1}, DType::boolean, twin).item<bool>());
    CHECK(Tensor::zeros({4}, DType::bf16, twin).to_vector<float>()[3] == 4.5f);
  };
  const memory::Prediction predicted = memory::predict(
      Device::cpu(), program, {.values = [](const memory::ValueRead& read) {
        CHECK(read.line > 0);
        return 1.5 + static_cast<double>(read.index) - (read.spec.dtype == DType::u8 ? 0.75 : 0) -
               (read.spec.dtype == DType::i32 && read.index == 0 ? 1.75 : 0);
      }});
  CHECK(predicted.reads.size() == 5);
  for (const double bad : {1e300, -1e300, std::nan("")})
    memory::predict(
        Device::cpu(),
        [&](const Device& twin) { Tensor::zeros({1}, DType::i32, twin).item<std::int32_t>(); },
        {.values = bad});
}

TEST_CASE("what a prediction gives stays in the prediction") {
  const tests::TemporaryFolder folder;
  std::vector<Tensor> kept;
  EarlyStopping stopping;
  const auto program = [&](const Device& twin) {
    const Parameters params(twin, Seed{1});
    params.declare("w", {4}, initializers::zeros());
    kept.push_back(params["w"]);
    params.save(folder.path("gone"));
    stopping.update(params["w"].to_vector<double>()[0], params);
    CHECK_ERROR(params.save(folder.path("no/such/folder/a")), FileError, "cannot be written");
    CHECK_ERROR(params.save(folder.path(".")), FileError, "not a regular file");
    CHECK(params["w"].to(Device::cpu()).to_vector<float>() == std::vector<float>(4, 0.5f));
    params.save("a file here");
    params.load("./a file here");
    save_npy(folder.path("w.npy"), params["w"]);
    save_safetensors(folder.path("w"), {{"a", params["w"]}});
    CHECK(load_npy(folder.path("w.npy"), twin).shape() == Shape{4});
    CHECK(load_safetensors(folder.path("w"), twin).at("a").shape() == Shape{4});
    CHECK_ERROR(load_npy(folder.path("w.npy")), FileError, "w.npy");
    const Tensor half = Tensor::zeros({1}, DType::bf16, twin);
    CHECK_ERROR(save_npy(folder.path("half.npy"), half), Error, "bf16");
    const Parameters other(twin, Seed{1});
    other.declare("w", {5}, initializers::zeros());
    CHECK_ERROR(other.load(folder.path("gone")), FileError, "is f32[4] in");
    CHECK_ERROR(other.load(folder.path("never")), FileError, "never");
    // A prediction inside sees the files of the one around it.
    memory::predict(twin, [&](const Device& inner) {
      const Parameters same(inner, Seed{1});
      same.declare("w", {4}, initializers::zeros());
      same.load(folder.path("gone"));
      CHECK_ERROR(same["w"].item<float>({0}), SimulatedRead, "PredictOptions::values");
    });
  };
  memory::predict(Device::cpu(), program, {.values = 0.5});
  CHECK(folder.count() == 0);
  CHECK_ERROR(kept[0].item<float>({0}), SimulatedRead, "PredictOptions::values");
  const Parameters real(Device::cpu(), Seed{1});
  real.declare("w", {4}, initializers::zeros());
  CHECK_ERROR(real.load(folder.path("gone")), FileError, "gone");
  CHECK_ERROR(stopping.restore(real), SimulatedRead, "no values to restore");
  CHECK_ERROR(memory::predict(Device::cpu(), program), SimulatedRead, "prediction.cpp");
}

TEST_CASE("a prediction names the line and the holders of its peak") {
  const memory::Prediction predicted =
      memory::predict(Device::simulated("cpu", 1_MiB), [](const Device& twin) {
        const Tensor large = Tensor::zeros({1 << 18}, DType::f32, twin);
        const Tensor small = Tensor::zeros({1 << 10}, DType::f32, twin);
        const Tensor most = square(large);
      });
  CHECK(predicted.peak_node.starts_with("square ("));
  REQUIRE(predicted.holders.size() == 3);
  std::size_t sum = 0;
  for (const memory::Holder& holder : predicted.holders) sum += holder.bytes;
  CHECK(sum == predicted.peak_bytes);
  CHECK(predicted.holders[0].bytes == 1_MiB);
  CHECK(predicted.holders[2].bytes == 4_KiB);
  CHECK_FALSE(predicted.fits);
  CHECK(predicted.least_limit_bytes > 2_MiB);
}

TEST_CASE("a micro-batch and all smaller ones run under the limit, and one more row does not",
          "[row16][host]") {
  const auto step = [](const Device& device, std::int64_t rows) {
    const Parameters params(device, Seed{1});
    const models::Mlp model(params, {16, 64, 64, 4});
    const ClassifierData data(rows, device);
    optim::Accumulator accumulate(optim::Adam(), {.samples = 300});
    for (int i = 0; i < 2; ++i)
      accumulate.minimize(softmax_cross_entropy(model(data.x), data.y), params, ebb::rows(data.y));
  };
  const Device device = tests::make_second_device({.capacity_bytes = 1_GiB});
  const auto runs = [&](std::int64_t rows) {
    try {
      step(device, rows);
    } catch (const OutOfMemory&) {
      return false;
    }
    return true;
  };
  for (const std::size_t limit : {160_KiB, 256_KiB, 300_KiB}) {
    const memory::MicroBatch fit = memory::fit_micro_batch(device, 300, limit, step);
    CAPTURE(limit, fit.size, fit.reserved_bytes, fit.next_reserved_bytes);
    CHECK(fit.steps == (300 + fit.size - 1) / fit.size);
    CHECK(fit.reserved_bytes <= limit);
    memory::set_limit(device, limit);
    for (std::int64_t rows = 1; rows <= fit.size; rows += 7) CHECK(runs(rows));
    CHECK(runs(fit.size));
    if (fit.size < 300) {
      CHECK_FALSE(runs(fit.size + 1));
      CHECK(fit.next_reserved_bytes > limit);
    }
    memory::set_limit(device, std::nullopt);
  }
  CHECK(memory::fit_micro_batch(device, 300, 1_GiB, step).size == 300);
  CHECK_ERROR(memory::fit_micro_batch(device, 300, 4_KiB, step), Error, "not even 1 row fits");
  CHECK_ERROR(memory::fit_micro_batch(device, 0, 1_MiB, step), Error, "prediction.cpp");
}

TEST_CASE("a micro-batch is smaller than any number of rows that does not fit", "[row16][host]") {
  struct Case {
    std::int64_t rows, large;  // a batch, and a number of rows that takes more than its neighbours
    std::int64_t size, steps;
    std::size_t limit = 150;
  };
  for (const Case& one : {Case{1000, 2000, 150, 7}, Case{1000, 100, 99, 11}, Case{140, 140, 139, 2},
                          Case{100, 1000, 100, 1}, Case{290, 140, 139, 3}, Case{4000, 2, 1, 4000},
                          Case{2277, 777, 776, 3, 1500}}) {
    CAPTURE(one.rows, one.large);
    const auto need = [&](std::int64_t rows) -> memory::detail::Need {
      const auto bytes = static_cast<std::size_t>(rows == one.large ? 10'000 : rows);
      return {bytes, bytes};
    };
    const memory::MicroBatch fit = memory::detail::fit_rows("fit", one.rows, one.limit, need);
    CHECK(fit.size == one.size);
    CHECK(fit.steps == one.steps);
    CHECK((fit.next_reserved_bytes > one.limit) == (one.size < one.rows));
  }
}

TEST_CASE("a comparison predicts a program that branches on what it reads", "[row26][host]") {
  memory::Comparison comparison(Device::cpu());
  comparison.measure("loop",
                     [](const Device& here, memory::Marks& mark) {
                       const Net net(here);
                       do mark.step(net.train());
                       while (mark.losses().back() > 1000);
                     },
                     {.values = 0.25});
  const memory::Measurement& loop = comparison.results()[0];
  CHECK(loop.predicted.peak_bytes == loop.measured.peak_bytes);
  REQUIRE(loop.reads.size() == 1);
  CHECK(loop.reads[0].count == 1);
  CHECK(loop.losses[0] != 0.25);
}

TEST_CASE("a graph's micro-batch is the largest whose session keeps to the limit", "[row16]") {
  EBB_SKIP_WITH_LARGE_PAGES();
  const ClassifierGraph model;
  const FedShapes shapes = {{model.x, {512, 16}}, {model.y, {512}}};
  const auto reserved = [&](std::int64_t rows) { return model.plan(rows).reserved_bytes; };
  const std::size_t limit = (reserved(1) + reserved(512)) / 2;
  const memory::MicroBatch fit =
      model.graph.fit_micro_batch({model.train}, shapes, Device::cpu(), limit);
  CHECK((fit.size > 1 && fit.size < 512));
  CHECK(fit.reserved_bytes == reserved(fit.size));
  CHECK(fit.next_reserved_bytes == reserved(fit.size + 1));
  for (std::int64_t rows = 1; rows <= fit.size; ++rows) CHECK(reserved(rows) <= limit);
  CHECK(reserved(fit.size + 1) > limit);
  Session session = model.open({.memory_limit = limit});
  session.run(model.train, feeds(model, ClassifierData(fit.size)));
  CHECK_ERROR(session.run(model.train, feeds(model, ClassifierData(fit.size + 1))), OutOfMemory,
              "out of memory");
}

TEST_CASE("a batch that micro-batches would change is refused") {
  ClassifierGraph model;
  const auto fit = [&](const Tensor& fetch, const FedShapes& shapes, std::size_t limit = 1_GiB) {
    return model.graph.fit_micro_batch({fetch}, shapes, Device::cpu(), limit);
  };
  const FedShapes shapes = {{model.x, {512, 16}}, {model.y, {512}}};
  const Tensor total = optim::Sgd().minimize(1 + sum(square(model.scores)) * 0.5, model.parameters);
  CHECK_ERROR(fit(total, shapes), Error, "the loss is a sum over rows");
  CHECK(fit(model.train, {{model.x, {1, 16}}, {model.y, {1}}}).size == 1);
  CHECK_ERROR(fit(model.train, {{model.x, {512, 16}}, {model.y, {256}}}), Error, "share");
  CHECK_ERROR(fit(model.train, shapes, 1_KiB), Error, "not even 1 row fits");
  const Tensor fixed = model.graph.placeholder("fixed", DType::f32, {8, 4});
  CHECK_ERROR(fit(sum(fixed), {{fixed, {8, 4}}}), Error, "none is open");
  const models::BatchNorm norm(model.parameters.scope("norm"), 4);
  const Tensor normed = mean(square(norm(model.scores, Phase::training)));
  CHECK_ERROR(fit(normed, {{model.x, {512, 16}}}), Error, "batch_norm (");
}
