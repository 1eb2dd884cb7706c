// An eager step that fails can be made again as though it had not been tried: MEMORY.md, row 11.
#include <limits>
#include <stdexcept>

#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/eager/bytes.h"
#include "ebb/tests/failing_allocation.h"
#include "ebb/tests/optim/rules.h"

using namespace ebb;
using ebb::tests::Bytes;
using ebb::tests::fails_at;

namespace {

struct Halted : std::runtime_error {
  Halted() : std::runtime_error("half-way") {}
};

// Makes the step in an attempt that then fails.
template <class Step>
void halted(const Step& step) {
  CHECK_THROWS_AS(attempt([&] {
                    step();
                    throw Halted();
                  }),
                  Halted);
}

std::uint64_t drawn() { return detail::generator().counter; }

float draw() { return uniform({1}).item<float>(); }

struct Model {
  Tensor loss() const { return mean(square(dropout(matmul(x, w), 0.5, Phase::training))); }

  const Tensor x = Tensor::full({4, 8}, 0.5);
  const Parameters parameters{Device::cpu(), Seed{1}};
  const Tensor w = parameters.declare("w", {8, 8}, initializers::uniform(-1, 1));
};

// Draws random numbers before it fails.
struct FailingRule final : optim::Rule {
  const char* name() const noexcept override { return "failing"; }
  std::span<const char* const> slots() const noexcept override { return {}; }
  optim::RuleResult update(const optim::RuleInput& in) const override {
    uniform_like(in.gradient);
    throw Halted();
  }
};

}  // namespace

TEST_CASE("attempt() gives what the step gives, and what that drew stays drawn", "[row11]") {
  set_seed(Seed{1});
  const float first = draw(), second = draw();
  set_seed(Seed{1});
  CHECK(attempt([] { return draw(); }) == first);
  float value = 0;
  attempt([&] { value = draw(); });
  CHECK(value == second);
  CHECK(&attempt([&]() -> float& { return value; }) == &value);
}

TEST_CASE("a step that throws out of attempt() is drawn again, another error or not", "[row11]") {
  set_seed(Seed{1});
  const float first = draw();
  set_seed(Seed{1});
  halted([] {
    draw();
    draw();
  });
  CHECK(draw() == first);
}

TEST_CASE("without attempt() a program that kept its draws meets none of them again", "[row11]") {
  set_seed(Seed{1});
  const float first = draw();
  try {
    draw();
    throw Halted();
  } catch (const Halted&) {
  }
  CHECK(draw() != first);
  CHECK(drawn() == 3);
}

TEST_CASE("an attempt in an attempt takes back its own part alone", "[row11]") {
  set_seed(Seed{1});
  attempt([] {
    draw();
    halted([] { draw(); });
    CHECK(drawn() == 1);
    attempt([] { draw(); });
  });
  CHECK(drawn() == 2);
  halted([] { attempt([] { draw(); }); });
  CHECK(drawn() == 2);
}

TEST_CASE("gradients that a failed attempt has made are free, those it added to are refused",
          "[row11]") {
  const Model model;
  const optim::Adam adam;
  const auto backward = [&] { model.loss().backward(); };
  const Bytes bytes;
  halted(backward);
  CHECK_FALSE(model.w.grad().defined());
  CHECK(bytes.now() == 0);

  backward();
  halted(backward);
  CHECK(model.w.grad().defined());
  CHECK_ERROR(adam.step(model.parameters), Error, "incomplete");
  model.parameters.zero_grad();
  backward();
  CHECK_NOTHROW(adam.step(model.parameters));

  const Tensor rounded = Tensor::full({8}, 0.5).with_grad();  // whose gradient is 0
  halted([&] { sum(round(rounded)).backward(); });
  CHECK_FALSE(rounded.grad().defined());

  // A gradient made after zero_grad() is the attempt's own and goes with it, though there was one
  // before the attempt.
  halted([&] {
    backward();
    model.parameters.zero_grad();
    backward();
  });
  CHECK_FALSE(model.w.grad().defined());
  backward();
  CHECK_NOTHROW(adam.step(model.parameters));

  // The attempt cleared the gradient that it had added to, so the next gradient is whole.
  halted([&] {
    backward();
    model.parameters.zero_grad();
  });
  backward();
  CHECK_NOTHROW(adam.step(model.parameters));
}

TEST_CASE("a leaf that goes within an attempt takes its gradient along", "[row11]") {
  const Bytes bytes;
  attempt([&] {
    {
      const Tensor leaf = Tensor::full({8}, 1).with_grad();
      sum(square(leaf)).backward();
    }
    CHECK(bytes.now() == 0);
  });
}

TEST_CASE("what was drawn for a step that an optimizer has made is not drawn again", "[row11]") {
  const Model model;
  set_seed(Seed{1});
  halted([&] {
    optim::Adam().minimize(model.loss(), model.parameters);
    draw();
  });
  CHECK(drawn() == 1);
}

TEST_CASE("state that a failed attempt has updated holds what it held", "[row11]") {
  const Model model;
  const Parameters& p = model.parameters;
  const models::BatchNorm norm(p.scope("norm"), 8);
  const Tensor seen = p.state("seen", {}, initializers::zeros());
  const Tensor mean = p["norm.running_mean"];
  const auto normed = [&](const auto& step) {
    halted([&] {
      norm(model.x, Phase::training);
      step();
    });
  };
  const auto values = [&] {
    std::vector<std::vector<float>> all;
    for (const auto* list : {&p.entries(), &p.states()})
      for (const Parameters::Entry& entry : *list) all.push_back(entry.tensor.to_vector<float>());
    return all;
  };
  const auto before = values();
  const std::vector<float> mean_before = mean.to_vector<float>();
  const Bytes bytes;
  normed([&] {
    add_assign(seen, 1);
    assign(model.w.detach(), 5);
    add_assign(seen, 1);
  });
  CHECK(values() == before);
  normed([&] { attempt([&] { add_assign(seen, 1); }); });
  CHECK(values() == before);
  CHECK(bytes.now() == 0);
  {  // What has read the new values has no gradient any more.
    Tensor of_new;
    normed([&] {
      add_assign(seen, 1);
      of_new = sum(model.w * seen);
    });
    CHECK_ERROR(of_new.backward(), Error, "has been updated in place");
  }

  attempt([&] {
    add_assign(seen, 1);
    normed([&] { add_assign(seen, 1); });
    CHECK(mean.to_vector<float>() == mean_before);
    CHECK(seen.item<float>() == 1);
  });
  CHECK(seen.item<float>() == 1);

  // A load stays, whatever the attempt wrote before it.
  const tests::TemporaryFolder folder;
  const std::string file = folder.path("values");
  p.save(file);
  assign(seen, 7);
  normed([&] {
    add_assign(seen, 1);
    p.load(file);
  });
  CHECK(seen.item<float>() == 1);
  CHECK(mean.to_vector<float>() == mean_before);

  {  // So does a run of a session, with what it has updated.
    Graph graph;
    const Tensor by = graph.placeholder("by", DType::f32, {});
    const Tensor up = add_assign(seen, by);
    Session session(graph);
    normed([&] {
      add_assign(seen, 1);
      session.run(up, {{by, Tensor::full({}, 2)}});
    });
    CHECK(seen.item<float>() == 4);
    assign(seen, 1);
  }

  // State that was torn before is torn again, and what the attempt has torn is whole.
  const auto tear = [&] {
    const Tensor nan = Tensor::full({}, std::numeric_limits<float>::quiet_NaN());
    const DetectNan detect;
    CHECK_THROWS_AS(add_assign(seen, nan), Error);
  };
  normed(tear);
  CHECK(seen.item<float>() == 1);
  tear();
  normed([&] { assign(seen, 7); });
  CHECK_THROWS_AS(seen.item<float>(), Error);
  assign(seen, 1);

  // State written on the way to a step that was made stays, as the step does. Later writes are
  // undone.
  normed([&] {
    optim::Adam().minimize(model.loss(), p);
    add_assign(seen, 1);
  });
  CHECK(mean.to_vector<float>() != mean_before);
  CHECK(seen.item<float>() == 1);
}

TEST_CASE("one call that draws and then fails has drawn nothing, taped or not", "[row11]") {
  const Parameters parameters(Device::cpu(), Seed{1});
  const models::Forecaster forecaster(parameters, 2, {.hidden = 4, .layers = 2, .dropout = 0.5});
  const models::Gru gru(parameters.scope("gru"), 2, {.hidden = 4, .layers = 2, .dropout = 0.5});
  const Model model;
  const Tensor x = Tensor::full({3, 5, 2}, 1);
  const auto failures_of = [&](const auto& call) {
    set_seed(Seed{1});
    std::size_t n = 0;
    for (; fails_at(n, call); ++n) REQUIRE(drawn() == 0);
    CHECK(drawn() > 0);
    return n;
  };
  // One failure is in the head, which allocates after the draw.
  CHECK(failures_of([&] { forecaster(x, Phase::training); }) > 3);
  CHECK(failures_of([&] { gru(x, Phase::training); }) > 1);
  CHECK(failures_of([] { permutation(100); }) > 3);
  const auto recomputed = [&] {
    recompute([&](const Tensor& in) { return matmul(dropout(in, 0.5, Phase::training), model.w); },
              model.x);
  };
  CHECK(failures_of(recomputed) > 1);  // also in the product, which comes after the draw
  {
    const NoGrad untaped;
    CHECK(failures_of(recomputed) > 1);
  }

  const Tensor loss = model.loss();
  const std::uint64_t before = drawn();
  CHECK_THROWS_AS(
      optim::Optimizer(std::make_shared<FailingRule>(), 0.1).minimize(loss, model.parameters),
      Halted);
  CHECK(drawn() == before);
}
