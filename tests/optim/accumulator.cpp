// Gradient accumulation: MEMORY.md, row 15.

#include <random>

#include "ebb/ebb.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/eager/bytes.h"
#include "ebb/tests/optim/rules.h"
#include "ebb/tests/optim/train.h"

namespace ebb::tests {
namespace {

constexpr std::int64_t kSamples = 24;
constexpr std::int64_t kIn = 6;

struct Data {
  Tensor x = Golden("mlp_f64")["x"];  // [24, 12]
  Tensor y = Golden("mlp_f64")["y"];
};

// One optimizer for all parameters, or one for each of the two layers.
using Optimizers = std::vector<optim::Optimizer>;

std::vector<Optimizers> all_optimizers() {
  const optim::Sgd momentum({.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.1});
  const optim::Optimizer own(std::make_shared<Momentum>(), 0.1);
  return {{optim::Sgd({.learning_rate = 0.1})},
          {momentum},
          {optim::Adam({.learning_rate = optim::cosine(0.01, {.warm_up = 2, .steps = 6})})},
          {optim::AdamW({.learning_rate = 0.01})},
          {own},
          {optim::Sgd({.learning_rate = 0.1, .momentum = 0.9, .clip = {.value = 0.01}})},
          {optim::Adam({.learning_rate = 0.01, .epsilon = 0.1, .clip = {.norm = 0.01}})},
          {optim::Optimizer(std::make_shared<Momentum>(), 0.1, {}, optim::Clip{.norm = 0.01})},
          {optim::Optimizer(std::make_shared<OwnAdam>(), 0.01)},
          {momentum, optim::AdamW({.learning_rate = 0.01, .clip = {.global_norm = 0.01}})},
          {momentum, optim::Sgd({.learning_rate = 0.3})},
          {momentum, own}};
}

// Cuts `total` into random sizes.
std::vector<std::int64_t> cut(std::int64_t total, std::mt19937& random) {
  std::vector<std::int64_t> sizes;
  while (total > 0) {
    sizes.push_back(std::uniform_int_distribution<std::int64_t>(1, total)(random));
    total -= sizes.back();
  }
  return sizes;
}

// A training program in one of the two modes.
struct Program {
  Program(bool as_graph, const Optimizers& optimizers)
      : mode(as_graph, DType::f64, Seed{3}, {.passes = optimizers.size() == 1}) {
    const Parameters& p = mode.parameters;
    const optim::Optimizer& first = optimizers.front();
    const optim::Accumulator accumulator(first, {.samples = kSamples});
    if (optimizers.size() == 2) groups = {{p.scope("0"), first}, {p.scope("1"), optimizers.back()}};
    const auto step = [&](const std::function<Tensor(const Tensor& loss, const Tensor& y)>& make) {
      return mode.function(
          {{DType::f64, {-1, 12}}, {DType::i32, {-1}}},
          [this, make](const Tensors& in) -> Tensors { return {make(loss(in[0], in[1]), in[1])}; });
    };
    whole = step([this, first, p](const Tensor& loss, const Tensor&) {
      return groups.empty() ? first.minimize(loss, p) : optim::minimize(loss, groups);
    });
    micro = step([this, accumulator, p](const Tensor& loss, const Tensor& y) {
      return groups.empty() ? accumulator.minimize(loss, p, rows(y))
                            : of_groups().minimize(loss, rows(y));
    });
    flush_step = mode.function([this, accumulator, p] {
      return groups.empty() ? accumulator.flush(p) : of_groups().flush();
    });
  }
  Tensor loss(const Tensor& x, const Tensor& y) const { return softmax_cross_entropy(model(x), y); }
  optim::GroupAccumulator of_groups() const {
    return optim::GroupAccumulator(groups, {.samples = kSamples});
  }
  void run_micro(const Data& data, const std::vector<std::int64_t>& sizes) const {
    std::int64_t at = 0;
    for (const std::int64_t size : sizes) {
      micro({slice(data.x, at, at + size), slice(data.y, at, at + size)});
      at += size;
    }
  }
  std::int64_t flush() const { return flush_step({})[0].item<std::int64_t>(); }
  // Checks the count of samples, or of steps, of each optimizer.
  void check_count(const std::string& what, std::int64_t count) {
    for (const auto& [name, tensor] : mode.parameters.slots())
      if (name.ends_with("/" + what)) CHECK(mode[name].item<std::int64_t>() == count);
  }

  InMode mode;
  const models::Mlp model{mode.parameters, {12, kIn, 5}, {.activation = Activation::tanh}};
  std::vector<optim::ParameterGroup> groups;
  InMode::Function whole, micro, flush_step;
};

void check_equal(Program& a, Program& b) {
  for (const auto& [name, tensor] : a.mode.parameters.entries()) {
    CAPTURE(name);
    CHECK(distance(a.mode[name], b.mode[name]) < 1e-12);
  }
}

std::size_t gradient_bytes() { return Bytes().of(memory::Category::gradient); }

}  // namespace

TEST_CASE("micro-batches of any sizes give the whole batch's update, and a partial group waits",
          "[optim][row15]") {
  const bool as_graph = GENERATE(false, true);
  const Data data;
  std::mt19937 random(5);
  for (const Optimizers& optimizers : all_optimizers()) {
    CAPTURE(as_graph, optimizers[0].rule().name(), optimizers.size());
    Program whole(as_graph, optimizers), micro(as_graph, optimizers);
    for (int update = 0; update < 4; ++update) {
      whole.whole({data.x, data.y});
      micro.run_micro(data, cut(kSamples, random));
      check_equal(micro, whole);
    }
    micro.check_count("samples", 0);
    micro.check_count("step", 4);
    // A partial group is flushed as the batch it is.
    micro.run_micro(data, {7, 3});
    check_equal(micro, whole);
    micro.check_count("samples", 10);
    CHECK(micro.flush() == 10);
    whole.whole({slice(data.x, 0, 10), slice(data.y, 0, 10)});
    check_equal(micro, whole);
    CHECK(micro.flush() == 0);
    check_equal(micro, whole);
    whole.whole({data.x, data.y});
    micro.run_micro(data, {1, 23});
    check_equal(micro, whole);
  }
}

TEST_CASE("accumulated gradients are counted as gradients, also those that were loaded",
          "[optim][row15]") {
  // Bytes of two weights, two biases and the count, each rounded up to 512.
  constexpr std::size_t kBytes = 1024 + 512 + 512 + 512 + 512;
  const TemporaryFolder folder;
  const std::size_t before = gradient_bytes();
  const Data data;
  {
    Program saved(false, {optim::Adam()});
    saved.micro({data.x, data.y});
    CHECK(gradient_bytes() - before == kBytes);
    saved.mode.save(folder.path("f"));
  }
  CHECK(gradient_bytes() == before);
  Program loaded(false, {optim::Adam()});
  loaded.mode.load(folder.path("f"));
  // A file does not record a slot's category; the next micro-step sets it.
  loaded.micro({data.x, data.y});
  CHECK(gradient_bytes() - before == kBytes);
}

TEST_CASE("groups accumulate in one set of gradients and two numbers each", "[optim][row15]") {
  const Data data;
  const auto peak_of = [&](std::size_t count) {
    const Program program(false,
                          Optimizers(count, optim::Sgd({.learning_rate = 0.1, .momentum = 0.9})));
    const std::size_t before = gradient_bytes();
    program.micro({data.x, data.y});
    // Bytes of two weights and two biases, and a count for each group.
    CHECK(gradient_bytes() - before == 1024 + 512 + 512 + 512 + count * 512);
    const Bytes step;
    program.micro({data.x, data.y});
    CHECK(step.now() == 0);
    return step.peak();
  };
  // A second group takes at most three scalars beyond one accumulator's peak: rate, count and gate.
  CHECK(peak_of(2) <= peak_of(1) + 3 * 512);
}

TEST_CASE("an accumulator says what it cannot do", "[optim][row15]") {
  const optim::Accumulator accumulator(optim::Adam(), {.samples = kSamples});
  const Parameters p(Device::cpu(), Seed{3}, DType::f64);
  const models::Mlp model(p, {12, kIn, 5});
  CHECK_ERROR(accumulator.flush(p), Error, "nothing has been accumulated");
  const Data data;
  const auto loss = [&] { return softmax_cross_entropy(model(data.x), data.y); };
  CHECK_ERROR(accumulator.minimize(loss(), p, Tensor::full({}, 3)), ShapeError, "i64 scalar");
  for (const Tensor& samples : {Tensor(), Graph().placeholder("n", DType::i64, {})})
    CHECK_ERROR(accumulator.minimize(loss(), p, samples), Error, "the number of samples");
  const Tensor losses = loss() + Tensor::zeros({2}, DType::f64);
  CHECK_ERROR(accumulator.minimize(losses, p, Tensor::full({}, 3, DType::i64)), Error,
              "[minimize] takes a one-element tensor, a loss, not f64[2] on cpu");
  CHECK(p.slots().empty());
}

namespace {

// Parameters a and b, of one accumulator or each of its own group's. Each has as its gradient the
// number given to a micro-step.
struct Pair {
  Pair(const Parameters& parameters, bool grouped) : parameters(parameters), grouped(grouped) {
    for (const char* name : {"a", "b"})
      parameters.scope(name).declare("w", {}, initializers::zeros());
  }
  double rate(std::string_view name) const { return grouped && name == "b" ? 10 : 1; }
  optim::GroupAccumulator of_groups() const { return optim::GroupAccumulator(groups, two); }
  Tensor micro(const Tensor& c) const {
    const Tensor loss = parameters["a.w"] * c + parameters["b.w"] * c;
    return grouped ? of_groups().minimize(loss, one) : of_both.minimize(loss, parameters, one);
  }
  Tensor flush() const { return grouped ? of_groups().flush() : of_both.flush(parameters); }
  void freeze(std::string_view name, bool frozen) const {
    parameters.scope(name).set_trainable(!frozen);
  }

  const Parameters parameters;
  const bool grouped;
  const Tensor one = Tensor::full({}, 1, DType::i64);
  const optim::AccumulatorOptions two{.samples = 2};
  const optim::Accumulator of_both{optim::Sgd({.learning_rate = 1}), two};
  std::vector<optim::ParameterGroup> groups = {
      {parameters.scope("a"), optim::Sgd({.learning_rate = 1})},
      {parameters.scope("b"), optim::Sgd({.learning_rate = 10})}};
};

}  // namespace

TEST_CASE("what is frozen counts with the others, and drops what it has accumulated",
          "[optim][row15][groups]") {
  const bool as_graph = GENERATE(false, true), flushed = GENERATE(false, true);
  const bool grouped = GENERATE(false, true);
  const std::string frozen = GENERATE("a", "b"), trained = frozen == "a" ? "b" : "a";
  CAPTURE(as_graph, flushed, grouped, frozen);
  InMode mode(as_graph, DType::f64);
  const Pair pair(mode.parameters, grouped);
  const double rate = pair.rate(trained);
  const auto step = [&](bool freezes, bool flushes) {
    return mode.function({{DType::f64, {}}}, [&, freezes, flushes](const Tensors& in) -> Tensors {
      pair.freeze(frozen, freezes);
      return {flushes ? pair.flush() : pair.micro(in[0])};
    });
  };
  const auto both = step(false, false), one = step(true, false), end = step(true, true);
  both({number(100)});
  flushed ? end({number(0)}) : one({number(300)});
  const double after = -rate * (flushed ? 100 : 200);
  CHECK(mode[trained + ".w"].item<double>() == after);
  CHECK(mode[frozen + ".w"].item<double>() == 0);
  // What is thawed in the middle of a batch ends its batch together with the others.
  one({number(2)});
  both({number(2)});
  CHECK(mode[trained + ".w"].item<double>() == after - rate * 2);
  CHECK(mode[frozen + ".w"].item<double>() == -pair.rate(frozen) * 1);
  for (const auto& [name, value] : mode.values())
    if (name.ends_with("/samples")) CHECK(value.item<std::int64_t>() == 0);
}

TEST_CASE("what is thawed within a batch has what it accumulated of it", "[optim][row15][groups]") {
  for (const bool grouped : {false, true}) {
    const Parameters p(Device::cpu(), Seed{1}, DType::f64);
    const Pair pair(p, grouped);
    pair.micro(number(1));
    p.set_trainable(false);
    CHECK_ERROR(pair.micro(number(1)), Error, "every given parameter that the loss");
    CHECK_ERROR(pair.flush(), Error,
                "every given parameter with an accumulated gradient is frozen");
    p.set_trainable(true);
    CHECK(pair.flush().item<std::int64_t>() == 1);
    for (const char* name : {"a", "b"})
      CHECK(p.scope(name)["w"].item<double>() == -pair.rate(name));
  }
}

TEST_CASE("an accumulation that fails tears all sums and the count: together they are of no batch",
          "[optim][row15]") {
  const Parameters p(Device::cpu());
  for (const char* name : {"a", "b", "frozen.c"}) p.declare(name, {1}, initializers::zeros());
  const optim::Accumulator accumulator(optim::Sgd(), {.samples = 8});
  const auto micro = [&](double of_a) {
    accumulator.minimize(sum(p["a"] * of_a + p["b"] + p["frozen.c"]), p,
                         Tensor::full({}, 2, DType::i64));
  };
  micro(1);
  p.scope("frozen").set_trainable(false);
  {
    const DetectNan detect({.infinity = true});
    CHECK_ERROR(micro(3e38), NotANumber, "[accumulate] element [0]");  // twice that is infinite
  }
  for (const char* name :
       {"a/sgd.accumulated", "b/sgd.accumulated", "frozen.c/sgd.accumulated", "sgd/samples"})
    CHECK_ERROR(p[name].clone(), Error, "accumulator");
  CHECK(values_of(p["a"]) == std::vector<double>{0});
}

TEST_CASE("whichever micro-step completes a group updates all that the group has accumulated") {
  const Tensor one = Tensor::full({}, 1, DType::i64);
  const Parameters p(Device::cpu(), Seed{}, DType::f64);
  const Tensor a = p.declare("a", {1}, initializers::constant(1));
  const Tensor b = p.declare("b", {1}, initializers::constant(1));
  const optim::Accumulator accumulate(optim::Sgd({.learning_rate = 0.1}), {.samples = 2});
  accumulate.minimize(sum(b), p, one);
  accumulate.minimize(sum(a), p, one);
  CHECK(a.item<double>() == Approx(0.95));
  CHECK(b.item<double>() == Approx(0.95));
  accumulate.minimize(sum(a + b), p, one);
  accumulate.minimize(sum(a + b), p, one);
  CHECK(a.item<double>() == Approx(0.85));
  CHECK(b.item<double>() == Approx(0.85));
  accumulate.minimize(sum(b), p, one);
  accumulate.minimize(sum(a), p, one);
  CHECK(b.item<double>() == Approx(0.8));
}

TEST_CASE("micro-steps of one accumulator that depend on other parameters are refused in a graph") {
  Graph graph;
  const Parameters p(graph);
  const Tensor a = p.declare("a", {1}, initializers::constant(1));
  const Tensor b = p.declare("b", {1}, initializers::constant(1));
  const Tensor one = Tensor::full({}, 1, DType::i64);
  const optim::Accumulator accumulate(optim::Sgd({.learning_rate = 0.1}), {.samples = 2});
  accumulate.minimize(sum(b), p, one);
  CHECK_ERROR(accumulate.minimize(sum(a), p, one), Error, "other parameters than an earlier");
  CHECK_NOTHROW(accumulate.minimize(sum(b * 2), p, one));
}

TEST_CASE("a flush counts what has been accumulated, for whichever of the groups",
          "[optim][row15][groups]") {
  const Parameters p(Device::cpu(), Seed{1}, DType::f64);
  const Pair pair(p, true);
  const Tensor loss = optim::GroupAccumulator({pair.groups[1]}, {.samples = 2})
                          .minimize(p["b.w"] * 3 + 1, pair.one);
  CHECK(loss.item<double>() == 1);
  CHECK_FALSE(loss.requires_grad());
  CHECK(pair.flush().item<std::int64_t>() == 1);
  CHECK(p["a.w"].item<double>() == 0);
  CHECK(p["b.w"].item<double>() == -30);
  CHECK(p.contains("a.sgd/samples"));  // as in a graph
}

TEST_CASE("a frozen group makes no step, and has nothing to clip", "[optim][row15][groups]") {
  const Parameters p(Device::cpu(), Seed{1}, DType::f64);
  Pair pair(p, true);
  pair.groups[1].optimizer = {std::make_shared<Momentum>(), 0.1, {}, {.global_norm = 1}};
  pair.freeze("b", true);
  for (int i = 0; i < 2; ++i) pair.micro(number(3));
  CHECK(p["a.w"].item<double>() == -3);
  CHECK(p["b.w"].item<double>() == 0);
  CHECK(p["a.sgd/step"].item<std::int64_t>() == 1);
  CHECK(p["b.momentum/step"].item<std::int64_t>() == 0);
}

}  // namespace ebb::tests
