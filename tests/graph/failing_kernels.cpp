// Runs that fail in the middle, and what a session may do afterwards.
#include <functional>

#include "ebb/core/device/runtime.h"
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/device/host_kernel.h"
#include "ebb/tests/device/poisoned.h"

using namespace ebb;

namespace {

using Floats = std::vector<float>;

constexpr auto run_op = [](const KernelContext& c) -> Status {
  const float how = *c.inputs[1].as<float>();
  if (how == 1) return Status::refuse("refused");
  for (std::int64_t i = 0; i < c.outputs[0].elements(); ++i)
    c.outputs[0].as<float>()[i] = c.inputs[0].as<float>()[i];
  return how == 2 ? Status::fail("failed") : Status{};
};

// Returns x if the first value of `how` is 0, refuses if it is 1, fails if it is 2.
Tensor at_risk(const Tensor& x, const Tensor& how) {
  static const OpDef op{.name = "at_risk",
                        .infer = [](Inference& i) { i.output(DType::f32, i.inputs[0].shape); },
                        .stateful = true,
                        .cpu = {run_op},
                        .cuda = tests::copied<run_op>};
  return apply_one(op, {x, how}, {}, CallSite::here());
}

struct AtRisk {
  AtRisk()
      : how(graph.placeholder("how", DType::f32, {1})),
        w(parameters.declare("w", {2}, initializers::constant(1))),
        v(parameters.declare("v", {2}, initializers::constant(1))),
        // v's update depends on w's new value and on at_risk().
        step(add_assign(v, at_risk(add_assign(w, 1), how))),
        drawn(at_risk(uniform(graph, {64}), how)) {}

  Graph graph;
  Parameters parameters{graph};
  Tensor how, w, v, step, drawn;
};

Tensor ok() { return Tensor::from({0.f}); }
Tensor refuse() { return Tensor::from({1.f}); }
Tensor fail() { return Tensor::from({2.f}); }

}  // namespace

TEST_CASE("a run that fails leaves what its steps had updated torn, and nothing else") {
  const tests::TemporaryFolder folder;
  const AtRisk p;
  const Parameters twins(p.graph, Seed{1}, {.name = "twins"});  // a target network's
  for (const char* name : {"w", "v"}) twins.declare(name, {2}, initializers::constant(1));
  Session other(p.graph);
  using Mend = std::function<void(Session&)>;
  const std::vector<Mend> mends = {
      [&](Session& session) {
        session.assign(p.w, Tensor::from({2.f, 2.f}));
      },
      [&](Session& session) { session.restore(folder.path("before")); },
      [&](Session& session) {
        other.assign(p.w, Tensor::from({2.f, 2.f}));
        other.assign(p.v, Tensor::from({3.f, 3.f}));
        session.copy_from(other);
      },
  };
  for (const Tensor& how : {refuse(), fail()})
    for (const Mend& mend : mends) {
      Session session(p.graph);
      session.initialize();
      session.run(p.step, {{p.how, ok()}});
      CHECK(session.value(p.v).to_vector<float>() == Floats{3, 3});
      session.save(folder.path("before"));
      CHECK_THROWS_WITH(session.run(p.step, {{p.how, how}}), Catch::Contains("[at_risk]"));
      CHECK(session.value(p.v).to_vector<float>() == Floats{3, 3});
      CHECK_THROWS_WITH(session.value(p.w),
                        Catch::Contains("'w'") && Catch::Contains("add_assign"));
      CHECK_THROWS_AS(session.run(p.step, {{p.how, ok()}}), Error);
      CHECK_THROWS_AS(session.save(folder.path("after")), Error);
      other.initialize();
      CHECK_ERROR(other.copy_from(session), Error, "'w'");
      CHECK_ERROR(other.copy_from(session, p.parameters, p.parameters), Error, "'w'");
      CHECK_ERROR(session.copy_from(p.parameters, twins), Error, "'w'");
      CHECK(other.value(p.w).to_vector<float>() == Floats{1, 1});
      mend(session);
      session.run(p.step, {{p.how, ok()}});
      CHECK(session.value(p.v).to_vector<float>() == Floats{6, 6});
    }
}

TEST_CASE("a run that fails before its first update changes nothing") {
  Graph graph;
  const Parameters parameters(graph);
  const Tensor how = graph.placeholder("how", DType::f32, {1});
  const Tensor w = parameters.declare("w", {2}, initializers::constant(1));
  const Tensor step = add_assign(w, at_risk(square(w), how));
  Session session(graph);
  session.initialize(parameters);
  CHECK_THROWS_AS(session.run(step, {{how, fail()}}), Error);
  CHECK(session.value(w).to_vector<float>() == Floats{1, 1});
  session.run(step, {{how, ok()}});
  CHECK(session.value(w).to_vector<float>() == Floats{2, 2});
}

TEST_CASE("a run that fails draws the same numbers when it is repeated") {
  const AtRisk p;
  Session a(p.graph, {.seed = Seed{3}}), b(p.graph, {.seed = Seed{3}});
  CHECK_THROWS_AS(a.run(p.drawn, {{p.how, fail()}}), Error);
  const Floats first = a.run(p.drawn, {{p.how, ok()}}).to_vector<float>();
  CHECK(first == b.run(p.drawn, {{p.how, ok()}}).to_vector<float>());
  CHECK(first != a.run(p.drawn, {{p.how, ok()}}).to_vector<float>());
}

TEST_CASE("a captured tensor that a failed run was updating is refused until it is set") {
  const AtRisk p;
  const Tensor captured = Tensor::from({1.f, 2.f});
  const Tensor step = at_risk(add_assign(captured, Tensor::from({1.f, 1.f}) * p.how), p.how);
  Session session(p.graph);
  session.initialize(p.parameters);
  CHECK_THROWS_AS(session.run(step, {{p.how, fail()}}), Error);
  CHECK_THROWS_AS(captured.to_vector<float>(), Error);
  CHECK_THROWS_WITH(session.run(step, {{p.how, ok()}}), Catch::Contains("add_assign"));
  CHECK_THROWS_WITH(session.assign(p.w, captured), Catch::Contains("add_assign"));
  CHECK(session.value(p.w).to_vector<float>() == Floats{1, 1});
  assign(captured, Tensor::from({5.f, 6.f}));
  session.assign(p.w, captured);
  CHECK(session.value(p.w).to_vector<float>() == Floats{5, 6});
  CHECK(session.run(step, {{p.how, ok()}}).to_vector<float>() == Floats{5, 6});
}

namespace {
constexpr auto run_half = [](const KernelContext& c) -> Status {
  const float how = *c.inputs[1].as<float>();
  if (how == 1) return Status::refuse("refused");
  for (std::int64_t i = 0; i < c.inputs[0].elements() / 2; ++i) c.inputs[0].as<float>()[i] = 7;
  return Status::fail("failed");
};
}  // namespace

TEST_CASE(
    "the update that fails in a session tears its own target, and one that refuses does not") {
  static const OpDef half{.name = "half",
                          .infer = [](Inference& i) { i.output(DType::f32, i.inputs[0].shape); },
                          .updates = bit(0),
                          .stateful = true,
                          .cpu = {run_half},
                          .cuda = tests::copied<run_half>};
  const AtRisk p;
  const Tensor step = apply_one(half, {p.w, p.how}, {}, CallSite::here());
  Session session(p.graph);
  session.initialize(p.parameters);
  CHECK_THROWS_WITH(session.run(step, {{p.how, refuse()}}), Catch::Contains("[half]"));
  CHECK(session.value(p.w).to_vector<float>() == Floats{1, 1});
  CHECK_THROWS_WITH(session.run(step, {{p.how, fail()}}), Catch::Contains("[half]"));
  CHECK_THROWS_AS(session.value(p.w), Error);
}

TEST_CASE("a poisoned run that fails names the step that failed") {
  const AtRisk p;
  const tests::Poisoned poisoned;
  Session session(p.graph);
  session.initialize(p.parameters);
  CHECK_THROWS_WITH(session.run(p.step, {{p.how, fail()}}), Catch::Contains("[at_risk]"));
  CHECK_THROWS_AS(session.value(p.w), Error);
}
