// Update rules as users write them.
#pragma once
#include <cmath>
#include <span>

#include "ebb/ebb.h"

namespace ebb::tests {

// Heavy-ball momentum.
struct Momentum final : optim::Rule {
  const char* name() const noexcept override { return "momentum"; }
  std::span<const char* const> slots() const noexcept override { return kSlots; }
  optim::RuleResult update(const optim::RuleInput& in) const override {
    const Tensor velocity = 0.9 * in.slots[0] + in.gradient;
    return {in.parameter - in.rate * velocity, {velocity}};
  }
  static constexpr const char* kSlots[] = {"velocity"};
};

// optim::Adam, written in operators.
struct OwnAdam final : optim::Rule {
  const char* name() const noexcept override { return "own_adam"; }
  std::span<const char* const> slots() const noexcept override { return kSlots; }
  optim::RuleResult update(const optim::RuleInput& in) const override {
    const auto corrected = [&](const Tensor& moment, double beta) {
      return moment / cast(1 - exp(in.step * std::log(beta)), moment.dtype());
    };
    const Tensor m = kBeta1 * in.slots[0] + (1 - kBeta1) * in.gradient;
    const Tensor v = kBeta2 * in.slots[1] + (1 - kBeta2) * square(in.gradient);
    return {in.parameter - in.rate * corrected(m, kBeta1) / (sqrt(corrected(v, kBeta2)) + 1e-8),
            {m, v}};
  }
  static constexpr double kBeta1 = 0.9, kBeta2 = 0.999;
  static constexpr const char* kSlots[] = {"m", "v"};
};

}  // namespace ebb::tests
