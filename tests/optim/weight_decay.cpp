// Weight decay of some parameters and not of others.

#include "ebb/ebb.h"
#include "ebb/tests/optim/train.h"

namespace ebb::tests {
namespace {

std::vector<optim::Optimizer> optimizers(double weight_decay, const optim::DecayOnly& only) {
  const auto decaying = [&](auto options) {
    options.learning_rate = 0.1;
    options.weight_decay = weight_decay;
    options.decay_only = only;
    return options;
  };
  return {optim::Sgd(decaying(optim::SgdOptions{})),
          optim::Sgd(decaying(optim::SgdOptions{.momentum = 0.9})),
          optim::Adam(decaying(optim::AdamOptions{})),
          optim::AdamW(decaying(optim::AdamWOptions{})),
          optim::Rmsprop(decaying(optim::RmspropOptions{})),
          optim::Adagrad(decaying(optim::AdagradOptions{})),
          optim::Lion(decaying(optim::LionOptions{}))};
}

Training training_of(const Step& step) {
  return {[](const Parameters& p) {
            p.declare("0.weight", {2, 3}, initializers::uniform(1, 2));
            p.declare("0.bias", {3}, initializers::uniform(1, 2));
            p.declare("1.weight", {3, 2}, initializers::uniform(1, 2));
            p.declare("1.bias", {2}, initializers::uniform(1, 2));
          },
          {step}};
}

Tensor decayed_loss(const Parameters& p) {
  Tensor loss = sum(exp(p["0.weight"]));
  for (const char* name : {"0.bias", "1.weight", "1.bias"}) loss = loss + sum(exp(p[name]));
  return loss;
}

}  // namespace

TEST_CASE("a weight decay spares what it is not for, in both modes", "[optim][decay]") {
  const bool as_graph = GENERATE(false, true);
  const auto only_first = [](const Parameters::Entry& p) { return p.name.starts_with("0."); };
  for (std::size_t k = 0; k < optimizers(0, {}).size(); ++k) {
    const auto with = [&](double decay, const optim::DecayOnly& only, bool accumulates) {
      const optim::Optimizer optimizer = optimizers(decay, only)[k];
      const optim::Accumulator accumulator(optimizer, {.samples = 1});
      return train(as_graph, training_of([&](const Parameters& p) {
                     return accumulates ? accumulator.minimize(decayed_loss(p), p,
                                                               Tensor::full({}, 1, DType::i64))
                                        : optimizer.minimize(decayed_loss(p), p);
                   }),
                   3);
    };
    const Values all = with(0.5, {}, false), none = with(0, {}, false);
    CAPTURE(as_graph, optimizers(0, {})[k].rule().name());
    for (const bool accumulates : {false, true}) {
      const Values matrices = with(0.5, optim::is_matrix, accumulates),
                   first = with(0.5, only_first, accumulates);
      for (const char* name : {"0.weight", "0.bias", "1.weight", "1.bias"}) {
        CAPTURE(name, accumulates);
        REQUIRE_FALSE(bit_equal(all.at(name), none.at(name)));
        const bool is_weight = std::string(name).ends_with("weight");
        CHECK(bit_equal(matrices.at(name), (is_weight ? all : none).at(name)));
        CHECK(bit_equal(first.at(name), (name[0] == '0' ? all : none).at(name)));
      }
    }
  }
}

TEST_CASE("a filter that throws has changed nothing", "[optim][decay]") {
  const Parameters p(Device::cpu(), Seed{1});
  p.declare("x", {2}, initializers::constant(1));
  const optim::AdamW adam({.decay_only = [](const Parameters::Entry& entry) -> bool {
    throw Error("[filter] not " + entry.name);
  }});
  CHECK_ERROR(adam.minimize(sum(square(p["x"])), p), Error, "[filter] not x");
  CHECK(values_of(p["x"]) == std::vector<double>{1, 1});
  CHECK(p.slots().empty());
}

}  // namespace ebb::tests
