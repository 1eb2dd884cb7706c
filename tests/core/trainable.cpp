// Training switched on and off by set_trainable: refusals, and attempts that undo it.
#include "ebb/core/autodiff/attempt.h"
#include "ebb/core/base/error.h"
#include "ebb/core/parameters/declaring.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/graph/graph.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/line.h"
#include "ebb/tests/uniform.h"

namespace ebb::tests {
namespace {

Parameters declare(const Parameters& p) {
  for (const char* name : {"a.w", "ab.w", "w", "a.b"}) p.declare(name, {2}, kUniform);
  return p;
}

}  // namespace

TEST_CASE("set_trainable says where it would do nothing", "[trainable]") {
  const Parameters p = declare(Parameters(Device::cpu()));
  CHECK_ERROR_HERE(p.scope("encodr").set_trainable(true), Error,
                   "[set_trainable] there are no parameters whose names begin with \"encodr.\"");
  const Parameters layers(Device::cpu());
  for (const char* name : {"head.w", "encoder.0.w", "fc.bias"}) layers.declare(name, {2}, kUniform);
  CHECK_ERROR(layers.scope("encodr").set_trainable(false), Error,
              "begin with \"encodr.\"; the scopes that have some are encoder, ");
  CHECK_ERROR(
      layers.scope("fc.bias").set_trainable(false), Error,
      "[set_trainable] \"fc.bias\" is a parameter, not a scope; it is in the scope \"fc\" (");
  CHECK_ERROR(p.scope("w").set_trainable(false), Error, "; it is in the whole set (");
  const Parameters substitutes = p.with(p.tensors());
  CHECK_ERROR(substitutes.set_trainable(false), Error,
              "[set_trainable] these parameters are substitutes");
  CHECK_ERROR(Parameters(Device::cpu()).set_trainable(false), Error, "declare them first");
}

TEST_CASE("attempt takes back what was frozen and thawed", "[trainable]") {
  const auto trained = [](const Parameters& p) {
    std::string all;
    for (const Parameters::Entry& entry : p.entries()) all += p.is_trainable(entry) ? '1' : '0';
    return all;
  };
  const auto failing = [](const auto& step) {
    CHECK_THROWS_AS(attempt([&] {
                      step();
                      throw Error("[failing]");
                    }),
                    Error);
  };
  Graph graph;
  for (const Parameters& p :
       {declare(Parameters(Device::cpu())), declare(Parameters(graph, Seed{1}))}) {
    p.scope("a").set_trainable(false);
    const std::string before = trained(p);
    failing([&] { p.set_trainable(false); });
    CHECK(trained(p) == before);
    failing([&] {
      p.set_trainable(true);
      p.scope("a").set_trainable(false);
      failing([&] { p.set_trainable(false); });
      CHECK(trained(p) == before);
      attempt([&] { p.set_trainable(true); });
    });
    CHECK(trained(p) == before);
    attempt([&] { p.set_trainable(true); });
    CHECK(trained(p).find('0') == std::string::npos);
  }

  // A failed attempt frees the name. A new parameter of that name is not frozen.
  const Parameters p(Device::cpu());
  failing([&] {
    p.declare("w", {1}, kUniform);
    p.set_trainable(false);
  });
  p.declare("w", {1}, kUniform);
  CHECK(trained(p) == "1");
  const auto construct = [&](bool fails) {
    const detail::Declaring declaring(p, CallSite::here());
    p.declare("b", {1}, kUniform);
    if (!fails) return;
    p.set_trainable(false);
    throw Error("[failing]");
  };
  CHECK_THROWS_AS(construct(true), Error);
  construct(false);
  CHECK(trained(p) == "01");
}

TEST_CASE("a model that does not fit takes back its state as well", "[parameters]") {
  const Parameters p(Device::cpu());
  const auto construct = [&](bool fails) {
    const detail::Declaring declaring(p, CallSite::here());
    p.declare("scale", {1}, kUniform);
    p.state("mean", {1});
    if (fails) throw Error("[failing]");
  };
  CHECK_THROWS_AS(construct(true), Error);
  CHECK((p.entries().empty() && p.states().empty()));
  construct(false);
  CHECK(p.states().size() == 1);
}

}  // namespace ebb::tests
