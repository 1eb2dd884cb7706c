// A step that runs out of memory has not happened: MEMORY.md, row 11.
#include <functional>

#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/eager/bytes.h"
#include "ebb/tests/failing_allocation.h"
#include "ebb/tests/golden/golden.h"
#include "ebb/tests/optim/rules.h"

namespace ebb::tests {
namespace {

struct SmallTraining {
  SmallTraining() {
    w = parameters.scope("s").declare("w", {12, 3}, initializers::uniform(-1, 1));
    b = parameters.scope("t").declare("b", {3}, initializers::zeros());
  }
  Tensor loss() const { return softmax_cross_entropy(dense(x, w, b, Activation::tanh), y); }

  const Parameters parameters{Device::cpu(), Seed{5}};
  Tensor w, b;
  const Tensor x = slice(Golden("mlp_f32")["x"], 0, 2).clone();
  const Tensor y = slice(Golden("mlp_f32")["y"], 0, 2).clone();
};

// Bits of every parameter and slot.
std::vector<std::pair<std::string, std::vector<std::byte>>> bits(const Parameters& parameters) {
  std::vector<std::pair<std::string, std::vector<std::byte>>> all;
  for (const auto* list : {&parameters.entries(), &parameters.slots()})
    for (const auto& [name, tensor] : *list) all.emplace_back(name, bytes_of(tensor));
  return all;
}

struct Method {
  const char* name;
  std::function<void(const Parameters&, const Tensor& loss)> step;
};

std::vector<Method> methods() {
  const optim::Adam adam;
  const optim::Sgd sgd({.momentum = 0.9});
  const optim::Accumulator waits(adam, {.samples = 100}), at_once(sgd, {.samples = 2});
  const optim::Optimizer own(std::make_shared<OwnAdam>(), 0.1);
  const optim::Accumulator own_at_once(own, {.samples = 2});
  const Tensor two = rows(Tensor::zeros({2}));
  const Tensor rate = Tensor::full({}, 0.1, DType::f64);
  return {{"adam.minimize", [=](auto& p, auto& l) { adam.minimize(l, p); }},
          {"sgd.minimize", [=](auto& p, auto& l) { sgd.minimize(l, p); }},
          {"a rate of one's own",
           [=](auto& p, auto& l) { optim::Sgd({.learning_rate = rate}).minimize(l, p); }},
          {"accumulate", [=](auto& p, auto& l) { waits.minimize(l, p, two); }},
          {"accumulate and update", [=](auto& p, auto& l) { at_once.minimize(l, p, two); }},
          {"a rule of one's own", [=](auto& p, auto& l) { own.minimize(l, p); }},
          {"accumulate by a rule of one's own",
           [=](auto& p, auto& l) { own_at_once.minimize(l, p, two); }},
          {"minimize on a scope", [=](auto& p, auto& l) { adam.minimize(l, p.scope("s")); }},
          {"minimize a group",
           [=](auto& p, auto& l) {
             optim::minimize(l, {{p.scope("s"), adam}});
           }},
          {"minimize groups that accumulate",
           [=](auto& p, auto& l) {
             optim::GroupAccumulator({{p.scope("s"), own}, {p.scope("t"), adam}}, {.samples = 2})
                 .minimize(l, two);
           }},
          {"flush", [=](auto& p, auto&) { waits.flush(p); }}};
}

}  // namespace

TEST_CASE("a step that runs out of memory has changed nothing", "[optim][row11]") {
  for (const Method& method : methods()) {
    const bool flushes = std::string(method.name) == "flush";
    for (const int steps_before : {0, 1}) {
      if (flushes && steps_before == 0) continue;
      CAPTURE(method.name, steps_before);
      std::size_t failures = 0;
      for (;; ++failures) {
        const SmallTraining training;
        if (flushes) methods()[3].step(training.parameters, training.loss());
        for (int i = 0; i < steps_before && !flushes; ++i)
          method.step(training.parameters, training.loss());
        const auto before = bits(training.parameters);
        const Bytes bytes;
        {
          const Tensor loss = training.loss();
          if (!fails_at(failures, [&] { method.step(training.parameters, loss); })) break;
        }
        REQUIRE(bits(training.parameters) == before);
        REQUIRE(bytes.now() == 0);
        method.step(training.parameters, training.loss());
        REQUIRE(bits(training.parameters) != before);
      }
      CHECK(failures > 0);
    }
  }
}

TEST_CASE("step() that runs out of memory has changed nothing", "[optim][row11]") {
  std::size_t failures = 0;
  for (;; ++failures) {
    const SmallTraining training;
    training.loss().backward();
    const auto before = bits(training.parameters);
    const Bytes bytes;
    if (!fails_at(failures, [&] { optim::Adam().step(training.parameters); })) break;
    REQUIRE(bits(training.parameters) == before);
    REQUIRE(bytes.now() == 0);
  }
  // The step allocates four moments, the count of steps and the learning rate.
  CHECK(failures == 6);
}

}  // namespace ebb::tests
