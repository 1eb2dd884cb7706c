// A step that runs out of memory has not happened: MEMORY.md, row 11.
#include <algorithm>
#include <functional>

#include "ebb/ebb.h"
#include "ebb/tests/eager/bytes.h"
#include "ebb/tests/failing_allocation.h"
#include "ebb/tests/optim/rules.h"
#include "ebb/tests/optim/train.h"
#include "ebb/tests/uniform.h"

namespace ebb::tests {

TEST_CASE("a step that runs out of memory has changed nothing", "[optim][row11]") {
  struct Row {
    const char* name;
    std::function<void(const Parameters&, const Tensor&loss)> step, first = step;
  };
  const optim::Adam adam;
  const optim::Optimizer own(std::make_shared<OwnAdam>(), 0.1);
  const Tensor two = Tensor::full({}, 2, DType::i64);
  const auto accumulate = [=](const optim::Optimizer& by, std::int64_t samples) {
    return
        [=](auto& p, auto& l) { optim::Accumulator(by, {.samples = samples}).minimize(l, p, two); };
  };
  const Row rows[] = {
      {"minimize", [=](auto& p, auto& l) { adam.minimize(l, p); }},
      {"minimize by a rule of one's own", [=](auto& p, auto& l) { own.minimize(l, p); }},
      {"step",
       [=](auto& p, auto& l) {
         l.backward();
         adam.step(p);
         p.zero_grad();
       }},
      {"accumulate", accumulate(adam, 100)},
      {"accumulate and update", accumulate(optim::Sgd({.momentum = 0.9}), 2)},
      {"accumulate and update by a rule of one's own", accumulate(own, 2)},
      {"groups that accumulate",
       [=](auto& p, auto& l) {
         optim::GroupAccumulator({{p.scope("s"), own}, {p.scope("t"), adam}}, {.samples = 2})
             .minimize(l, two);
       }},
      {"flush", [=](auto& p, auto&) { optim::Accumulator(adam).flush(p); }, accumulate(adam, 100)}};
  for (const Row& row : rows)
    for (const int steps_before : {0, 1}) {
      if (std::string(row.name) == "flush" && steps_before == 0) continue;
      CAPTURE(row.name, steps_before);
      std::size_t failures = 0;
      for (;; ++failures) {
        const Parameters p(Device::cpu(), Seed{5});
        const Tensor w = p.scope("s").declare("w", {12, 3}, kUniform);
        const Tensor b = p.scope("t").declare("b", {3}, initializers::zeros());
        const auto loss = [&] {
          return softmax_cross_entropy(dense(Tensor::full({2, 12}, 0.5), w, b, Activation::tanh),
                                       Tensor::from({0, 2}));
        };
        if (steps_before) row.first(p, loss());
        const Values before = values_of(p);
        const Bytes bytes;
        {
          const Tensor of_step = loss();
          if (!fails_at(failures, [&] { row.step(p, of_step); })) break;
        }
        p.zero_grad();
        check_bits(values_of(p), before);
        REQUIRE(bytes.now() == 0);
        row.step(p, loss());
        const Values after = values_of(p);
        REQUIRE(std::any_of(after.begin(), after.end(), [&](const auto& each) {
          return !before.contains(each.first) || !bit_equal(each.second, before.at(each.first));
        }));
      }
      CHECK(failures > 0);
    }
}

}  // namespace ebb::tests
