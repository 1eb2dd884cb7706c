// Clipped gradients: an optimizer's own clipping equals clipping by the public functions.

#include "ebb/ebb.h"
#include "ebb/tests/optim/rules.h"
#include "ebb/tests/optim/train.h"

namespace ebb::tests {
namespace {

using optim::Clip;

void declare(const Parameters& p) {
  p.declare("x", {5}, initializers::uniform(-1, 1));
  p.declare("y", {3, 7}, initializers::uniform(-1, 1));
}
Tensor clipped_loss(const Parameters& p) { return sum(square(p["x"])) * 3 + sum(exp(p["y"])); }

Tensors clipped(const Tensors& gradients, const Clip& clip) {
  if (clip.value > 0) return optim::clip_by_value(gradients, clip.value);
  return clip.norm > 0 ? optim::clip_by_norm(gradients, clip.norm)
                       : optim::clip_by_global_norm(gradients, clip.global_norm).gradients;
}

std::vector<optim::Optimizer> optimizers(const Clip& clip) {
  return {optim::Sgd({.learning_rate = 0.1, .clip = clip}),
          optim::Sgd({.learning_rate = 0.1, .momentum = 0.9, .clip = clip}),
          optim::Adam({.learning_rate = 0.01, .epsilon = 0.1, .clip = clip}),
          optim::Optimizer(std::make_shared<Momentum>(), 0.1, {}, clip)};
}

// Clips of each kind: one whose limit is exceeded, one whose limit is not.
const Clip kClips[] = {{.value = 1},  {.value = 1e3},     {.norm = 1},
                       {.norm = 1e3}, {.global_norm = 1}, {.global_norm = 1e3}};

// Tolerance between two programs of three steps, by the parameters' dtype: 16 bits round gradients.
double near(DType dtype) { return dtype == DType::f64 ? 1e-14 : dtype == DType::f32 ? 1e-6 : 2e-2; }

Values in_doubles(const Values& values) {
  Values doubles;
  for (const auto& [name, value] : values)
    if (is_floating(value.dtype())) doubles[name] = cast(value, DType::f64);
  return doubles;
}

}  // namespace

template <class Options>
constexpr bool kTakesNumber = requires {
  Options{.clip = 1.0};
};
template <class Options>
constexpr bool kTakesName = requires {
  Options{.clip = {.value = 1.0}};
};

TEST_CASE("a limit to clip to is named, since a number does not say which it is", "[optim][clip]") {
  CHECK_FALSE(kTakesNumber<optim::AdamOptions>);
  CHECK(kTakesName<optim::AdamOptions>);
}

TEST_CASE("an optimizer clips gradients as the functions do", "[optim][clip]") {
  const bool as_graph = GENERATE(false, true);
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
    for (const Clip& clip : kClips)
      for (std::size_t k = 0; k < optimizers({}).size(); ++k) {
        CAPTURE(as_graph, name(dtype), clip.value, clip.norm, clip.global_norm, k);
        const optim::Optimizer with = optimizers(clip)[k], without = optimizers({})[k];
        const auto by_option = [&](const Parameters& p) {
          return with.minimize(clipped_loss(p), p);
        };
        const auto by_function = [&](const Parameters& p) {
          const Tensors gradients = ebb::gradients(clipped_loss(p), {p["x"], p["y"]});
          return without.apply(clipped(gradients, clip), p);
        };
        const auto plain = [&](const Parameters& p) {
          return without.minimize(clipped_loss(p), p);
        };
        const auto run = [&](const Step& step) {
          return in_doubles(train(as_graph, {declare, {step}, dtype}, 3));
        };
        const Values got = run(by_option), expected = run(by_function), unclipped = run(plain);
        for (const auto& [name, value] : expected) {
          CAPTURE(name);
          CHECK(distance(got.at(name), value) < near(dtype));
        }
        const bool is_far = clip.value + clip.norm + clip.global_norm > 100;
        if (dtype != DType::bf16)
          CHECK((distance(got.at("y"), unclipped.at("y")) < 1e-12) == is_far);
      }
}

TEST_CASE("the norm that clipping finds is a slot, in all modes", "[optim][clip]") {
  const auto kind = GENERATE(InMode::eager, InMode::graph, InMode::compiled);
  const std::size_t rule = GENERATE(0U, 3U);  // in a kernel, and of one's own
  const bool accumulates = GENERATE(false, true);
  CAPTURE(kind, rule, accumulates);
  const optim::Optimizer optimizer = optimizers({.global_norm = 1})[rule];
  const optim::Accumulator accumulator(optimizer, {.samples = 2});
  InMode mode(kind, DType::f64);
  const Parameters& p = mode.parameters;
  p.declare("x", {2}, initializers::zeros());
  const auto step = mode.function({{DType::f64, {1, 2}}}, [&](const Tensors& in) {
    const Tensor loss = sum(p["x"] * in[0]);
    const Tensor made =
        accumulates ? accumulator.minimize(loss, p, rows(in[0])) : optimizer.minimize(loss, p);
    return Tensors{made, p[optimizer.rule().name() + std::string("/gradient_norm")]};
  });
  const auto norm = [&](double a, double b) {
    return step({Tensor::from({{a, b}})})[1].item<double>();
  };
  CHECK(norm(3, 4) == (accumulates ? 0 : 5));
  CHECK(norm(3, -4) == (accumulates ? 3 : 5));  // of the mean gradient
  CHECK(norm(6, 8) == (accumulates ? 3 : 10));
}

TEST_CASE("a global norm is that of many gradients and of long ones", "[optim][clip]") {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    const Parameters p(Device::cpu(), Seed{1}, dtype);
    Tensors gradients;
    double squares = 0;
    for (int i = 0; i < 900; ++i) {
      const std::int64_t n = i == 7 ? 100'003 : i % 3;  // empty parameters, too
      p.declare("p" + std::to_string(i), {n}, initializers::zeros());
      std::vector<double> values(static_cast<std::size_t>(n), i % 8);
      if (i == 7)
        for (std::size_t j = 0; j < values.size(); ++j) values[j] = static_cast<double>(j / 99 % 8);
      gradients.push_back(cast(Tensor::from(values, {n}), dtype));
      for (const double value : values) squares += value * value;
    }
    optim::Sgd({.learning_rate = 1, .clip = {.global_norm = 1}}).apply(gradients, p);
    const double expected = -5 / std::sqrt(squares);  // for a gradient of 5
    const double got = cast(slice(p["p5"], 0, 1), DType::f64).item<double>();
    CAPTURE(name(dtype), expected, got);
    CHECK(std::abs(got / expected - 1) < (dtype == DType::bf16 ? 4e-3 : 1e-6));
    if (dtype == DType::f64) CHECK(std::abs(got / expected - 1) < 1e-13);
  }
}

TEST_CASE("norms of halves are those of float, where their squares have no room", "[optim][clip]") {
  const Tensor g = Tensor::full({100}, 300, DType::f16);
  CHECK(optim::global_norm({g}).item<double>() == 3000);
  CHECK(cast(optim::clip_by_norm({g}, 300)[0], DType::f32).to_vector<float>() ==
        std::vector<float>(100, 30));
}

TEST_CASE("norms are those of all elements, and what is not there stays so", "[optim][clip]") {
  const Tensor a = Tensor::from({3.f, 4.f}), b = Tensor::from({12.f});
  CHECK(optim::global_norm({a, {}, b}).item<double>() == 13);
  const auto [clipped, norm] = optim::clip_by_global_norm({a, {}, b}, 6.5);
  CHECK(norm.item<double>() == 13);
  CHECK(clipped[0].to_vector<float>() == std::vector<float>{1.5f, 2});
  CHECK_FALSE(clipped[1].defined());
  CHECK(clipped[2].to_vector<float>() == std::vector<float>{6});
  CHECK(optim::clip_by_norm({a, b}, 2.5)[0].to_vector<float>() == std::vector<float>{1.5f, 2});
  CHECK(optim::clip_by_norm({a, b}, 5)[0].to_vector<float>() == std::vector<float>{3, 4});
  CHECK(optim::clip_by_value({a, -b}, 3.5)[1].to_vector<float>() == std::vector<float>{-3.5f});
  CHECK(optim::global_norm({Tensor::zeros({0})}).item<double>() == 0);

  // The functions are differentiable: d|x| / dx = x / |x|.
  const Tensor x = Tensor::from({3.0, 4.0}).with_grad();
  const Tensor unit = gradients(optim::global_norm({x}), {x})[0];
  CHECK(distance(values_of(unit), {0.6, 0.8}) < 1e-15);
}

TEST_CASE("a gradient that is not finite is not made so by clipping", "[optim][clip]") {
  const auto stepped = [](double bad, const Clip& clip) {
    const Parameters p(Device::cpu(), Seed{1}, DType::f64);
    p.declare("x", {2}, initializers::zeros());
    p.declare("y", {1}, initializers::zeros());
    optim::Sgd({.learning_rate = 1, .clip = clip})
        .apply({Tensor::from({bad, 1.0}), Tensor::from({1.0})}, p);
    std::vector<double> values = values_of(p["x"]);
    values.push_back(values_of(p["y"])[0]);
    return values;
  };
  for (const double value : stepped(NAN, {.global_norm = 1})) CHECK(std::isnan(value));
  const std::vector<double> infinite = stepped(INFINITY, {.global_norm = 1});
  CHECK(std::isnan(infinite[0]));
  CHECK(infinite[1] == 0);
  CHECK(infinite[2] == 0);
  const std::vector<double> by_itself = stepped(NAN, {.norm = 1});
  CHECK(std::isnan(by_itself[1]));
  CHECK(by_itself[2] == -1);
  const std::vector<double> by_value = stepped(INFINITY, {.value = 0.5});
  CHECK(by_value == std::vector<double>{-0.5, -0.5, -0.5});
  CHECK(std::isnan(stepped(NAN, {.value = 0.5})[0]));
}

TEST_CASE("clipping to a norm takes 4 KiB while a step is made, and no copy of a gradient",
          "[optim][clip][memory]") {
  const auto peak = [](const Clip& clip) {
    return memory::predict(Device::cpu(),
                           [&](const Device& device) {
                             const Parameters p(device, Seed{1});
                             p.declare("x", {1 << 16}, initializers::zeros());
                             p.declare("y", {1 << 16}, initializers::zeros());
                             // Both gradients live throughout the step.
                             const Tensor gradient = Tensor::full({1 << 16}, 1, DType::f32, device);
                             const Tensors gradients = {gradient, gradient};
                             optim::Adam({.clip = clip}).apply(gradients, p);
                           })
        .peak_bytes;
  };
  const std::size_t without = peak({});
  CHECK(peak({.value = 1}) == without);
  CHECK(peak({.norm = 1}) == without + 4096);
  CHECK(peak({.global_norm = 1}) == without + 4096 + 512);  // and the slot of the norm
}

TEST_CASE("limits are finite, not negative, and one at a time", "[optim][clip]") {
  CHECK_ERROR(optim::Adam({.clip = {.value = -1}}), Error, "[clip] value = -1");
  CHECK_ERROR(optim::Lion({.clip = {.norm = NAN}}), Error, "[clip] norm = nan");
  CHECK_ERROR(optim::Sgd({.clip = {.global_norm = INFINITY}}), Error, "[clip] global_norm = inf");
  const Tensor g = Tensor::from({1.f});
  CHECK_ERROR(optim::clip_by_norm({g}, 0), Error, "[clip_by_norm] takes a limit");
  CHECK_ERROR(optim::clip_by_value({{}}, 1), Error, "[clip_by_value] no gradient is defined");
  CHECK_ERROR(optim::global_norm({Tensor::from({1})}), Error, "takes floating gradients, not i32");
  CHECK_ERROR(optim::clip_by_global_norm({}, 1), Error, "clip.cpp:");
}

}  // namespace ebb::tests
