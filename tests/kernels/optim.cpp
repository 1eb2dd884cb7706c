#include <cmath>
#include <numbers>

#include "ebb/optim/kernels/accumulator.h"
#include "ebb/optim/kernels/adam.h"
#include "ebb/optim/kernels/learning_rate.h"
#include "ebb/optim/kernels/sgd.h"
#include "ebb/tests/kernels/fixture.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

Values flag(bool value) {
  return values(DType::boolean, {}, [&](std::int64_t) { return value; });
}

// PyTorch's Adam and AdamW, one number at a time.
struct AdamReference {
  optim::AdamAttributes a;
  void step(double& p, double& m, double& v, double g, double rate, double t) const {
    if (a.decoupled != 0)
      p *= 1 - rate * a.weight_decay;
    else
      g += a.weight_decay * p;
    m = a.beta1 * m + (1 - a.beta1) * g;
    v = a.beta2 * v + (1 - a.beta2) * g * g;
    const double denominator = std::sqrt(v) / std::sqrt(1 - std::pow(a.beta2, t)) + a.epsilon;
    p -= rate / (1 - std::pow(a.beta1, t)) * m / denominator;
  }
};

}  // namespace

TEST_CASE("Ten steps of Adam are those of its formula, gated or not") {
  Dice dice(1);
  for (DType type : {DType::f32, DType::f64})
    for (std::int64_t n : {0, 1, 15, 1000, 80'003})
      for (int decoupled : {0, 1})
        for (int gated : {0, 1}) {
          const optim::AdamAttributes a{.weight_decay = 0.05, .decoupled = decoupled};
          Call call{
              .kernel = cpu::adam_update,
              .attributes = a,
              .inputs = {dice.tensor(type, {n}), values(type, {n}, [](std::int64_t) { return 0; }),
                         values(type, {n}, [](std::int64_t) { return 0; }), Values({type, {n}}),
                         scalar(std::int64_t{0}), scalar(0.01)}};
          if (gated != 0) {
            call.inputs.push_back(flag(true));
            call.inputs.push_back(scalar(std::int64_t{4}));
          }
          std::vector<double> p = call.inputs[0].list(), m(p.size()), v(p.size());
          for (int step = 1; step <= 10; ++step) {
            call.inputs[3] = dice.tensor(type, {n});
            call.inputs[4] = scalar(std::int64_t{step});
            for (std::size_t i = 0; i < p.size(); ++i)
              AdamReference{a}.step(
                  p[i], m[i], v[i],
                  call.inputs[3].at(static_cast<std::int64_t>(i)) / (gated != 0 ? 4 : 1), 0.01,
                  step);
            call.run();
          }
          CHECK(distance(call.inputs[0].list(), p) < (type == DType::f32 ? 1e-5 : 1e-13));
          if (gated == 0) continue;
          const Values before = call.inputs[0];
          call.inputs[6] = flag(false);
          call.run();
          CHECK(call.inputs[0].same_bits(before));
        }
}

TEST_CASE(
    "Ten steps of SGD are those of its formula, with momentum, decay and Nesterov or without") {
  Dice dice(2);
  for (DType type : {DType::f32, DType::f64})
    for (std::int64_t n : {0, 1, 33, 50'000})
      for (double momentum : {0.0, 0.9})
        for (int nesterov : {0, 1})
          for (int gated : {0, 1}) {
            const optim::SgdAttributes a{
                .momentum = momentum, .weight_decay = 0.1, .nesterov = nesterov};
            Call call{.kernel = momentum > 0 ? cpu::sgd_momentum_update : cpu::sgd_update,
                      .attributes = a,
                      .inputs = {dice.tensor(type, {n})}};
            if (momentum > 0)
              call.inputs.push_back(values(type, {n}, [](std::int64_t) { return 0; }));
            const std::size_t gradient = call.inputs.size();
            call.inputs.push_back(Values({type, {n}}));
            call.inputs.push_back(scalar(std::int64_t{1}));
            call.inputs.push_back(scalar(0.05));
            if (gated != 0) {
              call.inputs.push_back(flag(true));
              call.inputs.push_back(scalar(std::int64_t{3}));
            }
            std::vector<double> p = call.inputs[0].list(), v(p.size());
            for (int step = 0; step < 10; ++step) {
              call.inputs[gradient] = dice.tensor(type, {n});
              for (std::size_t i = 0; i < p.size(); ++i) {
                const double g =
                    call.inputs[gradient].at(static_cast<std::int64_t>(i)) / (gated != 0 ? 3 : 1) +
                    0.1 * p[i];
                v[i] = momentum * v[i] + g;
                p[i] -= 0.05 * (momentum > 0 && nesterov != 0 ? g + momentum * v[i] : v[i]);
              }
              call.run();
            }
            CHECK(distance(call.inputs[0].list(), p) < 10 * tolerance(type));
            if (gated == 0) continue;
            const Values before = call.inputs[0];
            call.inputs[gradient + 3] = flag(false);
            call.run();
            CHECK(call.inputs[0].same_bits(before));
          }
}

TEST_CASE("A cosine schedule warms up, falls and stays at its end") {
  const optim::ScheduleAttributes cosine{.kind = optim::ScheduleAttributes::cosine,
                                         .base = 0.1,
                                         .end = 0.01,
                                         .warm_up = 4,
                                         .steps = 20};
  const auto rate = [](const optim::ScheduleAttributes& a, std::int64_t step) {
    Call call{.kernel = cpu::schedule,
              .attributes = a,
              .inputs = {scalar(step - 1)},
              .outputs = {{DType::f64, {}}}};
    return call.run()[0].at(0);
  };
  CHECK(rate({.base = 0.3}, 1000) == 0.3);
  CHECK(rate(cosine, 1) == 0.1 / 4);
  CHECK(rate(cosine, 4) == 0.1);
  CHECK(std::abs(rate(cosine, 12) - 0.055) < 1e-15);
  CHECK(std::abs(rate(cosine, 8) - (0.01 + 0.045 * (1 + std::cos(std::numbers::pi / 4)))) < 1e-15);
  CHECK(rate(cosine, 20) == 0.01);
  CHECK(rate(cosine, 500) == 0.01);
  CHECK(rate({.kind = optim::ScheduleAttributes::cosine, .base = 0.1, .warm_up = 5, .steps = 5},
             6) == 0);
}

TEST_CASE("A sum takes a gradient as often as it has rows") {
  Dice dice(3);
  for (DType type : {DType::f32, DType::f64})
    for (std::int64_t n : {0, 1, 19, 40'000}) {
      const Values sum = dice.tensor(type, {n}), g = dice.tensor(type, {n});
      std::vector<double> expected;
      for (std::int64_t i = 0; i < n; ++i) expected.push_back(sum.at(i) + 5 * g.at(i));
      Call call{.kernel = cpu::accumulate, .inputs = {sum, g, scalar(std::int64_t{5})}};
      call.run();
      CHECK(distance(call.inputs[0].list(), expected) < tolerance(type));
    }
}

TEST_CASE("A rule's kernel refuses dtypes that it has no code for, and has written nothing") {
  Dice dice(4);
  const auto refused = [](Call call) {
    const std::vector<Values> before = call.inputs;
    std::vector<Buffer> in;
    for (Values& input : call.inputs) in.push_back(input.buffer());
    const Status status =
        call.kernel({.inputs = in, .outputs = {}, .attributes = &call.attributes});
    bool same = true;
    for (std::size_t i = 0; i < before.size(); ++i)
      same = same && call.inputs[i].same_bits(before[i]);
    return !status.ok() && status.refused && same;
  };
  const Shape shape{5};
  const Values f32 = dice.tensor(DType::f32, shape), f64 = dice.tensor(DType::f64, shape),
               whole = dice.tensor(DType::i32, shape), half({DType::f16, shape});
  const Values step = scalar(std::int64_t{1}), rate = scalar(0.1), rows = scalar(std::int64_t{2});
  for (const Values& wrong : {whole, half}) {
    const optim::AdamAttributes adam;
    CHECK(refused({.kernel = cpu::adam_update,
                   .attributes = adam,
                   .inputs = {f64, wrong, wrong, f32, step, rate}}));
    CHECK(refused({.kernel = cpu::adam_update,
                   .attributes = adam,
                   .inputs = {f64, f32, f32, wrong, step, rate}}));
    const optim::SgdAttributes sgd{.momentum = 0.9};
    CHECK(refused({.kernel = cpu::sgd_momentum_update,
                   .attributes = sgd,
                   .inputs = {f64, wrong, f32, step, rate}}));
    CHECK(refused({.kernel = cpu::accumulate, .inputs = {wrong, f32, rows}}));
  }
  CHECK(refused({.kernel = cpu::accumulate, .inputs = {f32, whole, rows}}));
  CHECK(refused({.kernel = cpu::accumulate, .inputs = {f64, half, rows}}));
}
