// Corners of passes, sessions, tape and parameters that the other tests go past.
#include "ebb/core/autodiff/recompute.h"
#include "ebb/core/base/error.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/elementary.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/update.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/core/tensor/gradient_context.h"
#include "ebb/graph/passes/passes.h"
#include "ebb/graph/session.h"
#include "ebb/optim/adam.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/device/host_kernel.h"

namespace ebb::tests {
namespace {

using namespace ebb::detail;

// What runs for these fetches with x fed as [3, 2], in order.
std::vector<std::string> steps_of(const Graph& graph, const Tensor& x, const Tensors& fetches,
                                  bool updates_early = false) {
  Form form = prune(graph.state(), Device::cpu().runtime(), fetches);
  infer(form, {{x, {3, 2}}});
  simplify(form);
  resolve(form);
  connect(form);
  std::vector<std::string> names;
  for (const Index step : order(form, updates_early).order)
    names.emplace_back(form.steps[step].node->op->name);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

namespace {

constexpr auto run_own = [](const KernelContext& c) -> Status {
  for (std::int64_t i = 0; i < c.outputs[0].elements(); ++i)
    c.outputs[0].as<float>()[i] = c.inputs[0].as<float>()[i];
  return {};
};
// x itself, whose gradient rule gives x back: a gradient that is an older version of what it is of.
const OpDef own_op{.name = "own",
                   .infer = [](Inference& i) { i.output(i.inputs[0].dtype, i.inputs[0].shape); },
                   .gradient = [](const GradientContext& g) -> Tensors { return {g.x(0)}; },
                   .cpu = {run_own},
                   .cuda = tests::copied<run_own>};

}  // namespace

TEST_CASE("who reads but the size of an intermediate does not make its updates run") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 2});
  const Tensor h = x * 2;
  add_assign(h, 1);
  CHECK(steps_of(graph, x, {rows(h)}).size() == 1);
}

TEST_CASE("only updates of state are hurried, not those of intermediates") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 2});
  const Tensor h = x * 2, by = tanh(x), heavy = exp(x);
  add_assign(h, by);
  CHECK(steps_of(graph, x, {heavy, h * 3}, true) ==
        Names{"multiply", "tanh", "exp", "add_assign", "multiply"});
}

TEST_CASE("memory that another input reads by broadcasting is not taken over") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {3, 2});
  const Tensor h = x * 2;
  const Tensor y = (h + slice(h, 0, 1)) * 1;
  for (const bool passes : {false, true}) {
    Session session(graph, {.passes = passes});
    const Tensor value = session.run(y, {{x, Tensor::full({3, 2}, 1)}});
    CHECK(value.to_vector<float>() == std::vector<float>(6, 4));
  }
}

TEST_CASE("what a fetched part belongs to is not taken over by the last step") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {3, 2});
  const Tensor h = x * 2, last = h + 1;
  for (const bool passes : {false, true}) {
    Session session(graph, {.passes = passes});
    const auto parts =
        session.run({slice(h, 0, 1), slice(last, 0, 1)}, {{x, Tensor::full({3, 2}, 1)}});
    CHECK(parts[0].to_vector<float>() == std::vector<float>{2, 2});
    CHECK(parts[1].to_vector<float>() == std::vector<float>{3, 3});
  }
}

TEST_CASE("a fetched gradient that is an older version of a variable is copied before its update") {
  Graph graph;
  const Parameters p(graph);
  const Tensor w = p.declare("w", {2}, initializers::constant(2));
  const Tensor loss = sum(apply_one(own_op, {w}, {}, {}));
  const Tensor dw = gradients(loss, {w})[0];
  const Tensor up = assign(w, Tensor::full({2}, 7));
  for (const bool passes : {false, true}) {
    Session session(graph, {.passes = passes});
    session.initialize();
    const auto both = session.run({dw, up});
    CHECK(both[0].to_vector<float>() == std::vector<float>{2, 2});
    CHECK(both[1].to_vector<float>() == std::vector<float>{7, 7});
  }
}

TEST_CASE("a plan's arena is, category by category, all of the arena") {
  for (int width = 1; width <= 40; ++width) {
    Graph graph;
    const Tensor x = graph.placeholder("x", DType::f32, {64 * width, 64});
    Tensor sum_of = tanh(slice(x, 0, 64));
    Tensors alive;
    for (int i = 1; i <= 6; ++i) {
      const Tensor part = exp(slice(x, 0, 1 + (i * 37 + width * 11) % (64 * width)));
      sum_of = sum_of + sum(square(part));
      alive.push_back(part);
      if (i % 2) sum_of = sum_of * sum(alive[static_cast<std::size_t>(i / 2)]);
    }
    const memory::Plan plan = graph.plan({sum(sum_of)}, {{x, {64 * width, 64}}}, Device::cpu());
    std::size_t total = 0;
    for (const std::size_t bytes : plan.arena_by_category) total += bytes;
    CHECK(total == plan.arena_bytes);
  }
}

TEST_CASE("a fetch that an update recorded later has changed is planned anew") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {2});
  const Tensor h = x * 2;
  Session session(graph);
  const Feeds feeds{{x, Tensor::full({2}, 1)}};
  CHECK(session.run(h, feeds).to_vector<float>() == std::vector<float>{2, 2});
  add_assign(h, 1);
  CHECK(session.run(h, feeds).to_vector<float>() == std::vector<float>{3, 3});
}

TEST_CASE("a plan that was dropped is made again") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1});
  const Tensor y = x * 2;
  Session session(graph, {.max_plans = 1});
  for (int i = 0; i < 6; ++i) {
    const std::int64_t n = 1 + i % 3;
    CHECK(session.run(y, {{x, Tensor::full({n}, i)}}).to_vector<float>() ==
          std::vector<float>(static_cast<std::size_t>(n), 2.0f * static_cast<float>(i)));
  }
}

TEST_CASE("a view of an older version stays one") {
  Graph graph;
  const Parameters p(graph);
  const Tensor w = p.declare("w", {2}, initializers::constant(2));
  const Tensor dw = gradients(sum(apply_one(own_op, {w}, {}, {})), {w})[0];
  const Tensor part = slice(dw, 0, 1);
  const Tensor up = assign(w, Tensor::full({2}, 7));
  Session session(graph);
  session.initialize();
  const auto both = session.run({part * 1, up});
  CHECK(both[0].to_vector<float>() == std::vector<float>{2});
}

TEST_CASE("captured tensors that share memory share their versions") {
  const Tensor a = Tensor::full({2}, 3), row = slice(a, 0, 1).detach();
  Graph graph;
  const Parameters p(graph);
  const Tensor w = p.declare("w", {1}, initializers::constant(2));
  const Tensor loss = sum(w * row);
  const Tensor x = graph.placeholder("x", DType::f32, {2});
  const Tensor up = assign(a, x);
  const Tensor dw = gradients(loss, {w})[0];
  Session session(graph);
  session.initialize();
  const auto both = session.run({up, dw}, {{x, Tensor::full({2}, 7)}});
  CHECK(both[1].to_vector<float>() == std::vector<float>{3});
}

TEST_CASE(
    "an outer tensor that recompute hands through keeps its history, beside what it computes") {
  const Tensor w = Tensor::full({2}, 3).with_grad(), v = Tensor::full({2}, 4).with_grad();
  const Tensor h = w * 2;
  const Tensors y = recompute(
      [&](const Tensors& in) -> Tensors {
        return {in[0] * 5, h};
      },
      Tensors{v}, CallSite{"here", 1});
  sum(y[0] + y[1]).backward();
  CHECK(v.grad().to_vector<float>() == std::vector<float>{5, 5});
  REQUIRE(w.grad().defined());
  CHECK(w.grad().to_vector<float>() == std::vector<float>{2, 2});
}

TEST_CASE("state that is updated with something that has a history gets none") {
  const Parameters p(Device::cpu());
  const Tensor w = p.declare("w", {2}, initializers::constant(1));
  const Tensor mean = p.state("mean", {2}, initializers::zeros());
  const Tensor after = add_assign(mean, w * 2);
  CHECK_FALSE(after.requires_grad());
  CHECK_FALSE(p["mean"].requires_grad());
}

TEST_CASE("what is computed from a part does not hold the memory of the whole") {
  const Tensor a = Tensor::full({256, 1024}, 1);
  const auto now = [] { return memory::stats(Device::cpu()).allocated.current; };
  const auto before = now();
  const Tensor row = tanh(slice(a * 2, 0, 1));
  CHECK(now() - before < 100000);
}

TEST_CASE("loading into fewer parameters leaves the slots of the others in the file") {
  const ebb::tests::TemporaryFolder folder;
  const Parameters two(Device::cpu()), one(Device::cpu());
  two.declare("a", {2}, initializers::constant(1));
  two.declare("b", {2}, initializers::constant(1));
  one.declare("a", {2}, initializers::constant(1));
  optim::Adam().minimize(sum(two["a"] * two["b"]), two);
  two.save(folder.path("fewer.safetensors"));
  one.load(folder.path("fewer.safetensors"));
  CHECK(one.contains("a/adam.first_moment"));
  CHECK_FALSE(one.contains("b/adam.first_moment"));
}

}  // namespace ebb::tests
