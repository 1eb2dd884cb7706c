// Moving averages of parameters: names, swaps, files and memory.

#include <limits>

#include "ebb/ebb.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/eager/bytes.h"
#include "ebb/tests/optim/train.h"
#include "ebb/tests/uniform.h"

namespace ebb::tests {
namespace {

using optim::MovingAverage;

void declare_averaged(const Parameters& p) {
  p.declare("x", {4}, kUniform);
  p.scope("head").declare("w", {2, 3}, kUniform);
}
Parameters eager_parameters(DType dtype = DType::f32) {
  const Parameters p(Device::cpu(), Seed{1}, dtype);
  declare_averaged(p);
  return p;
}

Tensor averaged_loss(const Parameters& p) {
  return sum(square(p["x"])) + sum(square(p["head.w"] - 1));
}

void train(const Parameters& p, const MovingAverage& average, int steps) {
  const optim::Adam adam({.learning_rate = 0.1});
  for (int i = 0; i < steps; ++i) {
    adam.minimize(averaged_loss(p), p);
    average.update();
  }
}

}  // namespace

TEST_CASE("averages are state beside the parameters, of the handle they were made with",
          "[optim][average]") {
  const Parameters p = eager_parameters();
  const MovingAverage all(p), head(p.scope("head"), {.decay = 0.5, .name = "slow"});
  std::vector<std::string> names;
  for (const auto& [name, tensor] : p.states()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"average.updates", "average.x", "average.head.w",
                                          "head.slow.updates", "head.slow.w"});
  CHECK(p.entries().size() == 2);
  CHECK_ERROR(MovingAverage(p), Error, "average.updates");
  CHECK_ERROR(MovingAverage(p.scope("none")), Error, "there are no parameters");

  CHECK(head.update().item<std::int64_t>() == 1);
  CHECK(bit_equal(p["head.slow.w"], p["head.w"]));
  CHECK(values_of(p["average.x"]) == std::vector<double>(4, 0));
}

TEST_CASE("a swap exchanges parameters and averages, and a second one gives all back",
          "[optim][average]") {
  const Parameters p = eager_parameters();
  const MovingAverage average(p, {.decay = 0.9});
  const Values start = values_of(p);
  average.swap();
  check_bits(values_of(p), start);  // nothing has been averaged yet

  train(p, average, 4);
  const Values before = values_of(p);
  CHECK(average.swap().item<std::int64_t>() == 4);
  for (const char* name : {"x", "head.w"}) {
    CHECK(bit_equal(p[name], before.at(std::string("average.") + name)));
    CHECK(bit_equal(p[std::string("average.") + name], before.at(name)));
    CHECK_FALSE(bit_equal(p[name], before.at(name)));
  }
  average.swap();
  check_bits(values_of(p), before);
}

TEST_CASE("a graph's averages are eager's, bit for bit, and come after the step",
          "[optim][average]") {
  const auto run = [](bool as_graph) {
    InMode mode(as_graph);
    const Parameters& p = mode.parameters;
    declare_averaged(p);
    const MovingAverage average(p, {.decay = 0.9});
    const auto step = mode.function({}, [&](const Tensors&) -> Tensors {
      const Tensor loss = optim::Adam({.learning_rate = 0.1}).minimize(averaged_loss(p), p);
      return {loss, average.update()};
    });
    const auto loss = mode.function([&] { return averaged_loss(p); });
    const auto swap = mode.function([&] { return average.swap(); });
    for (int i = 1; i <= 5; ++i) CHECK(step({})[1].item<std::int64_t>() == i);
    Values values = mode.values();
    loss({});  // neither updates the average nor swaps
    check_bits(mode.values(), values);
    swap({});
    CHECK(bit_equal(mode["x"], values.at("average.x")));
    CHECK(bit_equal(mode["average.x"], values.at("x")));
    return values;
  };
  check_bits(run(true), run(false));
}

TEST_CASE("averages go on from a checkpoint", "[optim][average]") {
  const TemporaryFolder folder;
  const Parameters saved = eager_parameters(), loaded = eager_parameters();
  const MovingAverage first(saved, {.decay = 0.9}), second(loaded, {.decay = 0.9});
  train(saved, first, 3);
  saved.save(folder.path("file"));
  loaded.load(folder.path("file"));
  check_bits(values_of(loaded), values_of(saved));
  train(saved, first, 3);
  train(loaded, second, 3);
  check_bits(values_of(loaded), values_of(saved));
}

TEST_CASE("averages of parameters of 16 bits are f32, and a second model is given them rounded",
          "[optim][average]") {
  for (const DType half : {DType::f16, DType::bf16}) {
    const Parameters p = eager_parameters(half), other = eager_parameters(half);
    const MovingAverage average(p, {.decay = 0.75, .bias_corrected = false});
    average.update();
    const Tensor x = p["x"].clone();
    assign(p["x"], p["x"] + 1);
    average.update();
    const Tensor expected =
        cast(x, DType::f32) + 0.25 * (cast(p["x"], DType::f32) - cast(x, DType::f32));
    CHECK(p["average.x"].dtype() == DType::f32);
    CHECK(distance(p["average.x"], expected) < 1e-6);
    CHECK_ERROR(average.swap(), Error, "would round the averages");
    average.copy_to(other);
    CHECK(bit_equal(other["x"], cast(p["average.x"], half)));
    CHECK_FALSE(bit_equal(other["x"], p["x"]));
  }
  const Parameters p = eager_parameters(), less(Device::cpu());
  less.declare("x", {5}, initializers::zeros());
  const MovingAverage average(p);
  average.update();
  CHECK_ERROR(average.copy_to(less), Error, "'x' is f32[5]");
}

TEST_CASE("averages are one copy, counted as parameters, and an update in place takes a scalar",
          "[optim][average][memory]") {
  constexpr std::size_t kBytes = 4 * 4096;
  const Bytes bytes;
  const std::size_t before = bytes.of(memory::Category::parameter);
  const Parameters p(Device::cpu(), Seed{1});
  p.declare("x", {4096}, initializers::zeros());
  CHECK(bytes.now() == kBytes);
  const MovingAverage average(p);
  CHECK(bytes.now() == 2 * kBytes + 512);  // the averages and the count
  CHECK(bytes.of(memory::Category::parameter) - before == 2 * kBytes + 512);
  const Bytes update;
  average.update();
  CHECK(update.peak() == 512);  // the scalar of the decay
  CHECK(update.now() == 0);
}

TEST_CASE("a NaN that enters an average is found", "[optim][average]") {
  const Parameters p = eager_parameters();
  const MovingAverage average(p);
  assign(p["x"], std::numeric_limits<double>::quiet_NaN());
  const DetectNan detect;
  CHECK_ERROR(average.update(), NotANumber, "[average_update] element [0]");
}

}  // namespace ebb::tests
