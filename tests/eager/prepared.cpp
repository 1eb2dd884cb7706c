// Prepared state of kernels, looked up once, in both modes.
#include "ebb/core/ops/shape_rules.h"
#include "ebb/core/tensor/prepared_cache.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/host_kernel.h"

using namespace ebb;

namespace {

int prepared = 0, alive = 0;

// The kernel's factor, and the number of elements it was made for.
struct Factor final : Prepared {
  Factor(float value, std::int64_t elements) : value(value), elements(elements) { ++alive; }
  ~Factor() override { --alive; }
  std::size_t bytes() const noexcept override { return sizeof *this; }

  const float value;
  const std::int64_t elements;
};

struct FactorAttributes {
  double value = 1;
};

constexpr auto run_scale = [](const KernelContext& c) -> Status {
  const auto* factor = static_cast<const Factor*>(c.prepared);
  if (!factor || factor->elements != c.outputs[0].elements())
    return Status::refuse("was prepared for something else");
  for (std::int64_t i = 0; i < factor->elements; ++i)
    c.outputs[0].as<float>()[i] = factor->value * c.inputs[0].as<float>()[i];
  return {};
};
constexpr auto prepare_scale = [](const MemoryQuery& query) -> detail::Ref<Prepared> {
  ++prepared;
  REQUIRE(query.profile != nullptr);
  return detail::make_ref<Factor>(static_cast<float>(query.attribute<FactorAttributes>().value),
                                  query.outputs[0].shape.elements());
};
const OpDef scale_op{.name = "scale",
                     .infer = detail::same_shape,
                     .cpu = {.run = run_scale, .prepare = prepare_scale},
                     .cuda = tests::copied<run_scale, nullptr, prepare_scale>};

Tensor scale(const Tensor& x, double value) {
  return apply_one(scale_op, {x}, FactorAttributes{value}, CallSite::here());
}

float first_of(const Tensor& x) { return x.to_vector<float>()[0]; }

}  // namespace

TEST_CASE("eager prepares a kernel once for each shape and attributes, and forgets the oldest") {
  prepared = 0;
  const int before = alive;
  for (int i = 0; i < 3; ++i) {
    CHECK(first_of(scale(Tensor::full({4}, 1), 2)) == 2);
    CHECK(first_of(scale(Tensor::full({4}, 1), 3)) == 3);
    CHECK(first_of(scale(Tensor::full({5}, 1), 2)) == 2);
  }
  CHECK(prepared == 3);
  const auto most = static_cast<int>(detail::PreparedCache::kMost);
  for (int i = 0; i < most; ++i) scale(Tensor::full({6}, 1), i);
  CHECK(alive - before <= most);
  prepared = 0;
  scale(Tensor::full({6}, 1), most - 1);
  CHECK(prepared == 0);
  scale(Tensor::full({4}, 1), 2);
  CHECK(prepared == 1);
}

TEST_CASE("a session prepares kernels that are alike once for all its plans, until it closes") {
  first_of(Tensor::full({1}, 1));  // earlier work is done and keeps nothing
  const int before = alive;
  {
    Graph graph;
    const Tensor x = graph.placeholder("x", DType::f32, {-1});
    const Tensor y = scale(scale(scale(x, 2), 3), 2);
    Session session(graph, {.max_plans = 1});
    prepared = 0;
    for (int i = 0; i < 3; ++i) CHECK(first_of(session.run(y, {{x, Tensor::full({4}, 1)}})) == 12);
    CHECK(prepared == 2);
    CHECK(alive - before == 2);
    CHECK(first_of(session.run(y, {{x, Tensor::full({9}, 1)}})) == 12);
    CHECK(first_of(session.run(y, {{x, Tensor::full({4}, 1)}})) == 12);  // a new plan
    CHECK(prepared == 4);
    CHECK(alive - before == 4);
    session.close();
    CHECK(alive == before);
    graph.plan({y}, {{x, {7}}}, Device::cpu().twin());
  }
  CHECK(prepared == 4);
}

TEST_CASE("nothing is prepared on a simulated device") {
  prepared = 0;
  scale(Tensor::full({4}, 1, DType::f32, Device::cpu().twin()), 2);
  CHECK(prepared == 0);
}
