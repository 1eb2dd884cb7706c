// Slots with a dtype of their own: moments and sums wider or narrower than the parameters.
#include <cmath>

#include "ebb/core/kernels/convert.h"
#include "ebb/ebb.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/optim/rules.h"
#include "ebb/tests/optim/train.h"

namespace ebb::tests {
namespace {

constexpr int kSteps = 12;
constexpr double kRate = 0.01;
constexpr std::int64_t kElements = 4;

std::vector<double> doubles_of(const Tensor& tensor) {
  return cast(tensor, DType::f64).to_vector<double>();
}

// The gradient of element i in a step, a number that f32 cannot hold.
double gradient_of(int step, std::int64_t i) {
  return std::sin(1.0 + 7 * step + static_cast<double>(i)) / 3;
}
Tensor gradient_in(int step, DType dtype) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < kElements; ++i) values.push_back(gradient_of(step, i));
  return cast(Tensor::from(values, {kElements}), dtype);
}

Parameters eager_parameters(DType dtype) {
  const Parameters p(Device::cpu(), Seed{1}, dtype);
  p.declare("x", {kElements}, initializers::constant(1));
  return p;
}

double rounded(double x, DType dtype) {
  if (dtype == DType::f16) return convert<double>(convert<Float16>(x));
  if (dtype == DType::bf16) return convert<double>(convert<BFloat16>(x));
  return dtype == DType::f32 ? static_cast<double>(static_cast<float>(x)) : x;
}

// Rules computed in double. In each step parameter and state alone are rounded to their dtypes.
struct Reference {
  DType dtype, state;
  double x = 1, m = 0, v = 0;

  void adam(double g, double step) {
    m = rounded(0.9 * m + (1 - 0.9) * g, state);
    v = rounded(0.999 * v + (1 - 0.999) * g * g, state);
    const double root = std::sqrt(v) / std::sqrt(1 - std::pow(0.999, step)) + 1e-8;
    x = rounded(x - kRate / (1 - std::pow(0.9, step)) * m / root, dtype);
  }
  void momentum(double g) {
    v = rounded(0.9 * v + g, state);
    x = rounded(x - kRate * v, dtype);
  }
};

// Returns x and its slots after kSteps steps with gradients of dtype `dtype`.
Values stepped(const optim::Optimizer& optimizer, DType dtype, bool as_graph = false) {
  InMode mode(as_graph, dtype);
  mode.parameters.declare("x", {kElements}, initializers::constant(1));
  const auto apply = mode.function({{dtype, {kElements}}}, [&](const Tensors& in) -> Tensors {
    return {optimizer.apply(in, mode.parameters)};
  });
  for (int step = 1; step <= kSteps; ++step) apply({gradient_in(step, dtype)});
  return mode.values();
}

// A user's rule that keeps its state in double.
struct Mean final : optim::Rule {
  const char* name() const noexcept override { return "mean"; }
  std::span<const char* const> slots() const noexcept override { return kSlots; }
  DType slot_dtype(std::size_t slot, DType parameter) const noexcept override {
    return slot == 0 ? DType::f64 : parameter;
  }
  optim::RuleResult update(const optim::RuleInput& in) const override {
    CHECK(in.slots[0].dtype() == DType::f64);
    CHECK(in.slots[1].dtype() == in.parameter.dtype());
    CHECK(in.gradient.dtype() == in.parameter.dtype());
    const Tensor total = in.slots[0] + cast(in.gradient, DType::f64);
    return {in.parameter - in.rate * cast(total, in.parameter.dtype()), {total, in.gradient}};
  }
  static constexpr const char* kSlots[] = {"total", "last"};
};

const DType kBoth[] = {DType::f32, DType::f64};

}  // namespace

TEST_CASE("a step is that of double, with parameter and state alone rounded to their dtypes",
          "[optim][dtype][half]") {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    const bool is_half = dtype == DType::f16 || dtype == DType::bf16;
    const DType state = is_half ? DType::f32 : DType::f64;
    CAPTURE(name(dtype));
    const optim::Adam adam({.learning_rate = kRate, .state_dtype = state});
    const optim::Sgd sgd({.learning_rate = kRate, .momentum = 0.9, .state_dtype = state});
    const Values of_adam = stepped(adam, dtype), of_sgd = stepped(sgd, dtype);
    // Exact, but for rounding that a fused multiply-add changes: one ulp in f32, and in 16 bits
    // where it falls on the other side of a halfway point.
    const double near = dtype == DType::f64 ? 1e-14 : 1.3e-7, near_state = is_half ? 1e-6 : 1e-15;
    int others = 0;
    const auto check = [&](double got, double expected) {
      others += std::abs(got - expected) >= near;
    };
    for (std::size_t i = 0; i < kElements; ++i) {
      Reference a{dtype, state}, b{dtype, state};
      for (int step = 1; step <= kSteps; ++step) {
        const double gradient = doubles_of(gradient_in(step, dtype))[i];
        a.adam(gradient, step);
        b.momentum(gradient);
      }
      CHECK(std::abs(doubles_of(of_adam.at("x/adam.first_moment"))[i] - a.m) < near_state);
      CHECK(std::abs(doubles_of(of_adam.at("x/adam.second_moment"))[i] - a.v) < near_state);
      CHECK(std::abs(doubles_of(of_sgd.at("x/sgd.velocity"))[i] - b.v) < near_state);
      check(doubles_of(of_adam.at("x"))[i], a.x);
      check(doubles_of(of_sgd.at("x"))[i], b.x);
    }
    CHECK(others <= (is_half ? 1 : 0));
    CHECK(of_adam.at("x/adam.first_moment").dtype() == state);
    CHECK(of_adam.at("x").dtype() == dtype);
    check_bits(stepped(adam, dtype, true), of_adam);
    check_bits(stepped(sgd, dtype, true), of_sgd);
  }
}

TEST_CASE("moments of f64 parameters kept in f32 are those kept in f64, rounded",
          "[optim][dtype]") {
  const auto with = [](DType state) {
    return stepped(optim::AdamW({.learning_rate = 0.01, .state_dtype = state}), DType::f64);
  };
  const Values narrow = with(DType::f32), wide = with(DType::f64);
  CHECK(narrow.at("x/adamw.second_moment").dtype() == DType::f32);
  CHECK(narrow.at("x").dtype() == DType::f64);
  CHECK(distance(narrow.at("x"), wide.at("x")) < 1e-6);
  CHECK_FALSE(bit_equal(narrow.at("x"), wide.at("x")));
}

TEST_CASE("state has the parameters' dtype unless another is chosen, and f32 beside halves",
          "[optim][dtype]") {
  for (const DType dtype : kBoth) {
    CAPTURE(name(dtype));
    const Values by_default = stepped(optim::Adam(), dtype);
    check_bits(stepped(optim::Adam({.state_dtype = dtype}), dtype), by_default);
    CHECK(by_default.at("x/adam.first_moment").dtype() == dtype);
  }
  const optim::Adam adam;
  for (const DType half : {DType::f16, DType::bf16})
    CHECK(adam.rule().slot_dtype(0, half) == DType::f32);
  CHECK(optim::Sgd({.momentum = 0.5, .state_dtype = DType::f64}).rule().slot_dtype(0, DType::f16) ==
        DType::f64);
}

TEST_CASE("a rule of one's own says the dtype of each of its slots", "[optim][dtype]") {
  const optim::Optimizer optimizer(std::make_shared<Mean>(), 0.1);
  for (const DType dtype : kBoth) {
    const Values values = stepped(optimizer, dtype);
    double total = 0;
    for (int step = 1; step <= kSteps; ++step) total += doubles_of(gradient_in(step, dtype))[1];
    CHECK(std::abs(doubles_of(values.at("x/mean.total"))[1] - total) < 1e-15);
    CHECK(values.at("x/mean.last").dtype() == dtype);
    check_bits(stepped(optimizer, dtype, true), values);
  }
  // A slot's new value must be of the slot's dtype; the parameter's is refused.
  struct Wrong final : optim::Rule {
    const char* name() const noexcept override { return "wrong"; }
    std::span<const char* const> slots() const noexcept override { return Mean::kSlots; }
    DType slot_dtype(std::size_t, DType) const noexcept override { return DType::f64; }
    optim::RuleResult update(const optim::RuleInput& in) const override {
      return {in.parameter, {in.gradient, in.slots[1]}};
    }
  };
  const Parameters p = eager_parameters(DType::f32);
  CHECK_ERROR(optim::Optimizer(std::make_shared<Wrong>(), 0.1).apply({p["x"]}, p), Error,
              "[wrong] update() gives f32[4] on cpu for the slot total of 'x', which is f64[4]");
  CHECK(p.slots().empty());
}

TEST_CASE("a rule of one's own sees means of its state's dtype, whatever their sums have",
          "[optim][dtype]") {
  struct Seeing final : optim::Rule {
    const char* name() const noexcept override { return "seeing"; }
    std::span<const char* const> slots() const noexcept override { return {}; }
    optim::RuleResult update(const optim::RuleInput& in) const override {
      CHECK(in.gradient.dtype() == DType::f32);
      return {in.parameter - in.rate * in.gradient, {}};
    }
  };
  const Parameters p(Device::cpu());
  const Tensor x = p.declare("x", {1}, initializers::constant(1));
  const optim::Optimizer seeing(std::make_shared<Seeing>(), 1);
  optim::Accumulator(seeing, {.sum_dtype = DType::f64}).minimize(sum(x), p, rows(x));
  CHECK(x.item<float>() == 0);
}

TEST_CASE("sums of accumulated gradients have a dtype of their own", "[optim][dtype]") {
  const bool as_graph = GENERATE(false, true);
  const std::vector<optim::Optimizer> optimizers = {
      optim::Sgd({.learning_rate = 0.1}), optim::Adam({.learning_rate = 0.01}),
      optim::Optimizer(std::make_shared<Momentum>(), 0.1)};
  for (const optim::Optimizer& optimizer : optimizers) {
    const std::string sums_name = std::string("x/") + optimizer.rule().name() + ".accumulated";
    CAPTURE(optimizer.rule().name(), as_graph);
    // One large gradient and many small ones, which a sum in f32 loses.
    const auto run = [&](std::optional<DType> sums, std::int64_t group) {
      const optim::Accumulator accumulator(optimizer, {.samples = group, .sum_dtype = sums});
      Training training{
          [](const Parameters& p) { p.declare("x", {1}, initializers::constant(1)); }};
      for (int i = 0; i < 9; ++i)
        training.steps.push_back([=](const Parameters& p) {
          return accumulator.minimize(sum(p["x"]) * (i == 0 ? 1 : 0x1p-26), p, rows(p["x"]));
        });
      return train(as_graph, training, 1);
    };
    const Values waiting = run(DType::f64, 10);
    CHECK(waiting.at(sums_name).dtype() == DType::f64);
    CHECK(waiting.at(sums_name).item<double>() == 1 + 8 * 0x1p-26);
    CHECK(run({}, 10).at(sums_name).item<float>() == 1);
    // The update uses the mean in double.
    const Values due = run(DType::f64, 9);
    CHECK(due.at(sums_name).item<double>() == 0);
    CHECK(due.at("x").dtype() == DType::f32);
    if (std::string(optimizer.rule().name()) == "sgd")
      CHECK(due.at("x").item<float>() == static_cast<float>(1 - 0.1 * ((1 + 8 * 0x1p-26) / 9)));
  }
}

TEST_CASE("state in another dtype than is wanted is refused by name, and nothing has changed",
          "[optim][dtype]") {
  const TemporaryFolder folder;
  const std::string file = folder.path("file");
  const optim::Adam narrow, wide({.state_dtype = DType::f64});
  const auto step = [](const optim::Adam& adam, const Parameters& p) {
    adam.minimize(sum(square(p["x"])), p);
  };
  const Parameters saved = eager_parameters(DType::f32);
  step(wide, saved);
  saved.save(file);

  // Parameters with state in another dtype refuse the file.
  const Parameters other = eager_parameters(DType::f32);
  step(narrow, other);
  Values before = values_of(other);
  CHECK_ERROR(other.load(file), FileError, "\"x/adam.first_moment\" is f64[4] in ");
  CHECK_ERROR(other.load(file), FileError, ", but f32[4] here");
  check_bits(values_of(other), before);
  CHECK_ERROR(step(wide, other), Error,
              "the slot \"x/adam.first_moment\" is f32[4], but f64[4] is wanted; state is not "
              "converted: ask for the dtype that it has");
  check_bits(values_of(other), before);

  // Parameters without state take the file's dtype.
  const Parameters loaded = eager_parameters(DType::f32);
  loaded.load(file);
  before = values_of(loaded);
  CHECK_ERROR(step(narrow, loaded), Error,
              "the slot \"x/adam.first_moment\" is f64[4], but f32[4] is wanted");
  check_bits(values_of(loaded), before);
  step(wide, loaded);
  step(optim::Adam({.name = "another"}), loaded);
  CHECK(loaded["x/adam:another.first_moment"].dtype() == DType::f32);

  // In a graph, its optimizers declare the slots and their dtypes.
  Graph graph;
  const Parameters p(graph, Seed{1});
  p.declare("x", {kElements}, initializers::constant(1));
  step(narrow, p);
  Session session(graph);
  session.initialize();
  CHECK_ERROR(session.restore(file), FileError, "'x/adam.first_moment' is f32[4] in the graph");
  CHECK_ERROR(step(wide, p), Error, "is f32[4], but f64[4] is wanted");

  const auto accumulate = [&](std::optional<DType> sums, const Parameters& q) {
    const optim::Accumulator accumulator(wide, {.samples = 2, .sum_dtype = sums});
    accumulator.minimize(sum(square(q["x"])), q, Tensor::full({}, 1, DType::i64));
  };
  accumulate({}, saved);
  CHECK_ERROR(accumulate(DType::f64, saved), Error,
              "the slot \"x/adam.accumulated\" is f32[4], but f64[4] is wanted");
}

}  // namespace ebb::tests
