// Several optimizers, each for a part of the parameters, in one step.

#include "ebb/ebb.h"
#include "ebb/tests/line.h"
#include "ebb/tests/optim/rules.h"
#include "ebb/tests/optim/train.h"

namespace ebb::tests {
namespace {

void declare_groups(const Parameters& p) {
  for (const char* scope : {"encoder", "head", "frozen"})
    p.scope(scope).declare("w", {4}, initializers::uniform(-1, 1));
}
Tensor loss_of_groups(const Parameters& p) {
  return sum(square(p["encoder.w"]) * p["head.w"] + exp(p["head.w"]) * p["frozen.w"]);
}

}  // namespace

TEST_CASE("groups make the steps that their optimizers make of one backward pass",
          "[optim][groups]") {
  const optim::Sgd sgd({.learning_rate = 0.1, .momentum = 0.9});
  const std::vector<optim::Optimizer> others = {
      optim::Adam({.learning_rate = 0.01, .clip = {.global_norm = 0.5}}),
      optim::Optimizer(std::make_shared<Momentum>(), 0.1)};
  for (const optim::Optimizer& other : others) {
    const auto together = [&](const Parameters& p) {
      return optim::minimize(loss_of_groups(p),
                             {{p.scope("encoder"), sgd}, {p.scope("head"), other}});
    };
    const auto apart = [&](const Parameters& p) {
      const Tensor loss = loss_of_groups(p);
      loss.backward();
      sgd.step(p.scope("encoder"));
      other.step(p.scope("head"));
      p.zero_grad();
      return loss;
    };
    const Values expected = train(false, {declare_groups, {apart}}, 4);
    check_bits(train(false, {declare_groups, {together}}, 4), expected);
    check_bits(train(true, {declare_groups, {together}}, 4), expected);
    const Values start = train(false, {declare_groups, {together}}, 0);
    CHECK(bit_equal(expected.at("frozen.w"), start.at("frozen.w")));
  }
}

TEST_CASE("groups that cannot make a step together have changed nothing, accumulating or not",
          "[optim][groups][row15]") {
  struct Failing final : optim::Rule {
    const char* name() const noexcept override { return "failing"; }
    std::span<const char* const> slots() const noexcept override { return Momentum::kSlots; }
    optim::RuleResult update(const optim::RuleInput&) const override { throw Error("[failing]"); }
  };
  const Parameters p(Device::cpu(), Seed{1});
  declare_groups(p);
  const Values before = values_of(p);
  const optim::Sgd sgd({.momentum = 0.9});
  const optim::Adam adam;
  const Parameters encoder = p.scope("encoder"), head = p.scope("head");
  const Tensor two = Tensor::full({}, 2, DType::i64);
  const std::size_t held = memory::stats(Device::cpu()).allocated.current;
  for (const bool accumulates : {false, true}) {
    const auto minimize = [&](const Tensor& loss, const std::vector<optim::ParameterGroup>& groups,
                              CallSite site = CallSite::here()) {
      if (!accumulates) return optim::minimize(loss, groups, site);
      return optim::GroupAccumulator(groups, {.samples = 2}, site).minimize(loss, two, site);
    };
    CHECK_ERROR_HERE(minimize(loss_of_groups(p), {}), Error, "takes one group");
    CHECK_ERROR_HERE(minimize(Tensor::full({}, 1), {{p, sgd}}), Error, "");
    CHECK_ERROR(minimize(loss_of_groups(p) + Tensor::zeros({2}), {{p, sgd}}), Error,
                "[minimize] takes a one-element tensor, a loss, not f32[2] on cpu");
    CHECK_ERROR(minimize(loss_of_groups(p), {{p, sgd}, {head, adam}}), Error,
                "'head.w' is in two groups");
    CHECK_ERROR(minimize(sum(p["head.w"]), {{head, sgd}, {p.scope("frozen"), adam}}), Error,
                "depends on none of the 1 parameters whose names begin with \"frozen.\"");
    CHECK_ERROR(
        minimize(loss_of_groups(p), {{encoder, sgd}, {head, {std::make_shared<Failing>(), 0.1}}}),
        Error, "[failing]");
  }
  CHECK_ERROR(optim::GroupAccumulator({{p, sgd}}, {.samples = 0}), Error, "samples = 0 is below 1");
  const optim::GroupAccumulator accumulator({{p, sgd}});
  CHECK_ERROR_HERE(accumulator.flush(), Error, "nothing has been accumulated");
  CHECK_ERROR(accumulator.minimize(loss_of_groups(p), Tensor::full({}, 2)), ShapeError,
              "i64 scalar");
  check_bits(values_of(p), before);
  CHECK(memory::stats(Device::cpu()).allocated.current == held);
}

TEST_CASE("a group that is frozen is passed over", "[optim][groups]") {
  const optim::Sgd sgd({.learning_rate = 0.1, .momentum = 0.9});
  const optim::Adam adam;
  const auto freeze = [](const Parameters& p) {
    declare_groups(p);
    p.scope("encoder").set_trainable(false);
  };
  const auto all = [&](const Parameters& p) {
    return optim::minimize(loss_of_groups(p), {{p.scope("encoder"), sgd}, {p.scope("head"), adam}});
  };
  const auto head = [&](const Parameters& p) {
    return adam.minimize(loss_of_groups(p), p.scope("head"));
  };
  check_bits(train(false, {freeze, {all}}, 3), train(false, {freeze, {head}}, 3));
  check_bits(train(true, {freeze, {all}}, 3), train(true, {freeze, {head}}, 3));

  const Parameters p(Device::cpu(), Seed{1});
  freeze(p);
  // A loss may miss a frozen group altogether, as when that part is computed without a history to
  // save memory.
  optim::minimize(sum(p["head.w"]), {{p.scope("encoder"), sgd}, {p.scope("head"), adam}});
  const Values before = values_of(p);
  CHECK_ERROR(
      optim::minimize(sum(p["head.w"]), {{p.scope("encoder"), sgd}, {p.scope("frozen"), adam}}),
      Error, "depends on none of the 1 parameters whose names begin with \"frozen.\"");
  p.set_trainable(false);
  int line = 0;
  const auto none = [&] {
    line = __LINE__ + 1;
    return optim::minimize(loss_of_groups(p), {{p.scope("encoder"), sgd}, {p.scope("head"), adam}});
  };
  CHECK_ERROR(none(), Error, "every given parameter that the loss, f32[] on cpu, depends on");
  CHECK_ERROR(none(), Error, "groups.cpp:" + std::to_string(line));
  check_bits(values_of(p), before);
}

}  // namespace ebb::tests
