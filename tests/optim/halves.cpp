// Optimizers of 16-bit parameters: state, sums and options are not rounded to 16 bits.
#include <cmath>

#include "ebb/ebb.h"
#include "ebb/tests/optim/rules.h"
#include "ebb/tests/optim/train.h"

namespace ebb::tests {
namespace {

constexpr DType kHalves[] = {DType::f16, DType::bf16};
using Doubles = std::vector<double>;

Doubles doubles(const Tensor& x) { return cast(x, DType::f64).to_vector<double>(); }
// A rule with a 16-bit slot, in which small increments would be lost.
struct InHalves final : optim::Rule {
  const char* name() const noexcept override { return "in_halves"; }
  std::span<const char* const> slots() const noexcept override { return kSlots; }
  DType slot_dtype(std::size_t, DType parameter) const noexcept override { return parameter; }
  optim::RuleResult update(const optim::RuleInput& in) const override {
    return {in.parameter - in.rate * in.gradient, {in.slots[0]}};
  }
  static constexpr const char* kSlots[] = {"slot"};
};

}  // namespace

TEST_CASE("Options that 16 bits cannot hold are not rounded to them", "[optim][half]") {
  for (const DType half : kHalves) {
    // An epsilon of 1e-8 would be 0 in f16, and the update 0 / 0.
    const Parameters parameters(Device::cpu(), Seed{1}, half);
    const Tensor p = parameters.declare("p", {3}, initializers::constant(1));
    optim::Adam().apply({Tensor::zeros({3}, half)}, parameters);
    CHECK(doubles(p) == Doubles{1, 1, 1});
    // Rounded to 16 bits, this rate would put the step on the other side of halfway to the next
    // number.
    const double unit = half == DType::bf16 ? 0x1p-7 : 0x1p-10, rate = 1.001 * unit / 2;
    optim::Sgd({.learning_rate = rate}).apply({Tensor::full({3}, -1, half)}, parameters);
    CHECK(doubles(p) == Doubles(3, 1 + unit));
  }
}

TEST_CASE("Every optimizer trains 16 bits near to float, with state of f32", "[optim][half]") {
  const optim::Optimizer optimizers[] = {
      optim::Sgd({.learning_rate = 0.05}),
      optim::Sgd({.learning_rate = 0.05, .momentum = 0.9, .nesterov = true}),
      optim::Adam({.learning_rate = 0.05}),
      optim::AdamW({.learning_rate = 0.05}),
      optim::Optimizer(std::make_shared<Momentum>(), 0.02),
      optim::Optimizer(std::make_shared<OwnAdam>(), 0.05)};
  for (const optim::Optimizer& optimizer : optimizers)
    for (const DType half : kHalves) {
      INFO(optimizer.rule().name() << ", " << name(half));
      const auto with = [&](DType dtype) {
        const auto declare = [](const Parameters& p) {
          p.declare("x", {40}, initializers::normal(0, 1));
        };
        const auto step = [&](const Parameters& p) {
          return optimizer.minimize(sum(square(p["x"] - 0.3)), p);
        };
        return train(false, {declare, {step}, dtype}, 8);
      };
      const Values trained = with(half);
      CHECK(trained.at("x").dtype() == half);
      const Doubles values = doubles(trained.at("x")), expected = doubles(with(DType::f32).at("x"));
      // Eight steps round gradient and parameter each; the initial value is rounded too.
      const double allowed = 20 * (half == DType::bf16 ? 0x1p-8 : 0x1p-11);
      for (std::size_t i = 0; i < values.size(); ++i)
        CHECK(std::abs(values[i] - expected[i]) < allowed * (1 + std::abs(expected[i])));
      for (const auto& [name, value] : trained)
        if (name.find('/') != std::string::npos && is_floating(value.dtype()))
          CHECK(value.dtype() == DType::f32);
    }
}

TEST_CASE("Gradients of 16 bits are accumulated in f32", "[optim][half]") {
  // The sum of 299 gradients of 1 is beyond 256, up to which bf16 counts.
  for (const bool fused : {true, false}) {
    const Parameters parameters(Device::cpu(), Seed{1}, DType::bf16);
    const Tensor p = parameters.declare("p", {2}, initializers::zeros());
    const optim::Optimizer plain = fused ? optim::Optimizer(optim::Sgd({.learning_rate = 1}))
                                         : optim::Optimizer(std::make_shared<Momentum>(), 1);
    const optim::Accumulator accumulate(plain, {.samples = 600});
    for (int i = 0; i < 299; ++i)
      accumulate.minimize(sum(p), parameters, Tensor::full({}, 1, DType::i64));
    for (const auto& [name, slot] : parameters.slots())
      if (name.find("accumulated") != std::string::npos)
        CHECK(slot.to_vector<float>() == std::vector<float>{299, 299});
    accumulate.minimize(sum(p), parameters, Tensor::full({}, 301, DType::i64));
    CHECK(doubles(p) == Doubles{-1, -1});
  }
}

TEST_CASE("State of 16 bits, or other than f32 beside it, is refused", "[optim][half]") {
  CHECK_ERROR(optim::Adam({.state_dtype = DType::bf16}), Error,
              "[adam] state_dtype = bf16 is not f32 or f64: what is added little by little would "
              "be lost");
  CHECK_ERROR(optim::Accumulator(optim::Sgd(), {.sum_dtype = DType::f16}), Error,
              "[accumulator] sum_dtype = f16 is not f32 or f64");
  const Parameters parameters(Device::cpu(), Seed{1}, DType::bf16);
  const Tensor p = parameters.declare("p", {2}, initializers::constant(1));
  const auto step = [&](const optim::Optimizer& optimizer) {
    return optimizer.minimize(sum(square(p)), parameters);
  };
  CHECK_ERROR(step(optim::Adam({.state_dtype = DType::f64})), Error,
              "[adam] keeps state of f64 beside parameters of bf16: it must be f32");
  CHECK_ERROR(step(optim::Optimizer(std::make_shared<InHalves>(), 0.1)), Error,
              "[in_halves] keeps state of bf16 beside parameters of bf16: it must be f32");
  const optim::Accumulator accumulate(optim::Optimizer(std::make_shared<Momentum>(), 0.1),
                                      {.sum_dtype = DType::f64});
  CHECK_ERROR(accumulate.minimize(sum(p), parameters, Tensor::full({}, 1, DType::i64)), Error,
              "[accumulator] keeps state of f64 beside parameters of bf16: it must be f32");
  CHECK(parameters.slots().empty());
  CHECK(doubles(p) == Doubles{1, 1});
}

}  // namespace ebb::tests
