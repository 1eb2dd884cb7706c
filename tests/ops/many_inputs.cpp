// Operators with any number of inputs: sets of inputs hold every index.
#include <algorithm>

#include "ebb/core/autodiff/recompute.h"
#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/core/tensor/gradient_context.h"
#include "ebb/eager/no_grad.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/host_kernel.h"
#include "ebb/tests/ops/harness.h"
#include "ebb/tests/ops/requested.h"

namespace ebb::tests {
namespace {

constexpr std::size_t kPlaces[] = {0, 31, 32, 63, 64, 199};

void like_first(Inference& inference) {
  inference.output(inference.inputs[0].dtype, inference.inputs[0].shape);
}

// Works element by element, so `to` may be any of the inputs.
void add_squares(std::span<const Buffer> inputs, float* to) {
  for (std::int64_t i = 0; i < inputs[0].elements(); ++i) {
    float total = 0;
    for (const Buffer& input : inputs) total += input.as<float>()[i] * input.as<float>()[i];
    to[i] = total;
  }
}

constexpr auto run_sum_of_squares = [](const KernelContext& c) -> Status {
  add_squares(c.inputs, c.outputs[0].as<float>());
  return {};
};
// Sum of the squares of all inputs. Keeps the inputs whose gradient is wanted. The output may take
// over any input from the 33rd on.
const OpDef sum_of_squares_op{
    .name = "sum_of_squares",
    .infer = like_first,
    .gradient = [](const GradientContext& g) -> Tensors {
      Tensors dx(static_cast<std::size_t>(g.inputs()));
      for (int i = 0; i < g.inputs(); ++i)
        if (g.wants(i)) dx[static_cast<std::size_t>(i)] = g.dy() * (2 * g.x(i));
      return dx;
    },
    .keeps_input = [](std::size_t i, const IndexSet& wants) { return wants.has(i); },
    .takes_over = from(32),
    .cpu = {run_sum_of_squares},
    .cuda = tests::copied<run_sum_of_squares>};

constexpr auto run_triple = [](const KernelContext& c) -> Status {
  for (const Buffer& input : c.inputs)
    for (std::int64_t j = 0; j < input.elements(); ++j) input.as<float>()[j] *= 3;
  return {};
};
const OpDef triple_op{.name = "triple",
                      .infer = like_first,
                      .updates = kAll,
                      .stateful = true,
                      .cpu = {run_triple},
                      .cuda = tests::copied<run_triple>};

template <class Question>
std::size_t scratch_input(std::size_t inputs, const Question& question) {
  std::size_t i = 0;
  while (i < inputs && !question.destroys(i)) ++i;
  return i;
}

constexpr auto run_scratch = [](const KernelContext& c) -> Status {
  const std::size_t i = scratch_input(c.inputs.size(), c);
  float* scratch = i < c.inputs.size() ? c.inputs[i].as<float>() : static_cast<float*>(c.workspace);
  add_squares(c.inputs, scratch);
  std::copy_n(scratch, c.outputs[0].elements(), c.outputs[0].as<float>());
  return {};
};
constexpr auto memory_of_scratch = [](const MemoryQuery& q) -> MemoryNeeds {
  const bool needs = scratch_input(q.inputs.size(), q) == q.inputs.size();
  return {.workspace_bytes = needs ? q.outputs[0].bytes() : 0};
};
// Sum of squares that is made in an input that it may destroy, else in workspace, and then copied
// to the output.
const OpDef scratch_op{.name = "scratch",
                       .infer = like_first,
                       .destroys = from(32),
                       .cpu = {.run = run_scratch, .memory = memory_of_scratch},
                       .cuda = tests::copied<run_scratch, memory_of_scratch>};

Tensor applied(const OpDef& op, const Tensors& in, std::size_t expiring = ~std::size_t{0}) {
  std::vector<Input> inputs(in.begin(), in.end());
  if (expiring < inputs.size()) inputs[expiring].expiring = true;
  return apply(op, inputs, {}, {})[0];
}

// Whole numbers, so that sums and products are exact.
Tensor values_of_input(std::size_t i, std::int64_t elements = 2) {
  std::vector<float> values(static_cast<std::size_t>(elements));
  for (std::size_t j = 0; j < values.size(); ++j)
    values[j] = static_cast<float>((i + 2 * j) % 5) - static_cast<float>(i % 3);
  return Tensor::from(values, {elements});
}

Tensors make_all(std::size_t count, std::int64_t elements = 2) {
  Tensors all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(values_of_input(i, elements));
  return all;
}

using Lists = std::vector<std::vector<float>>;
Lists values_of(const Tensors& tensors) {
  Lists values;
  for (const Tensor& tensor : tensors) values.push_back(tensor.to_vector<float>());
  return values;
}

// Gradients of y^2, where y is the sum of squares: the first is 4 y x, the second 8 x^2 + 4 y.
Lists expected(std::size_t count, std::size_t k) {
  Lists values(2, std::vector<float>(2));
  for (std::size_t j = 0; j < 2; ++j) {
    float y = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const float x = values_of_input(i).to_vector<float>()[j];
      y += x * x;
    }
    const float x = values_of_input(k).to_vector<float>()[j];
    values[0][j] = 4 * y * x;
    values[1][j] = 8 * x * x + 4 * y;
  }
  return values;
}

// The first two gradients of y^2 by reverse mode, to compare with expected().
Tensors two_gradients(const Tensors& in, std::size_t k, bool recomputed) {
  const auto function = [](const Tensors& x) -> Tensors { return {applied(sum_of_squares_op, x)}; };
  const Tensor y = recomputed ? recompute(function, in)[0] : function(in)[0];
  const Tensor first = gradients(sum(square(y)), {in[k]}, {.create_graph = true})[0];
  return {first, gradients(sum(first), {in[k]})[0]};
}

}  // namespace

TEST_CASE("One of very many inputs has its gradients of both orders, in both modes") {
  for (const std::size_t count : {40u, 200u})
    for (const std::size_t k : kPlaces) {
      if (k >= count) continue;
      for (const bool recomputed : {false, true}) {
        INFO("input " << k << " of " << count << (recomputed ? ", recomputed" : ""));
        Tensors in = make_all(count);
        in[k] = in[k].with_grad();
        CHECK(values_of(two_gradients(in, k, recomputed)) == expected(count, k));
        for (const bool passes : {false, true}) {
          Graph graph;
          Tensors nodes = make_all(count);
          nodes[k] = graph.placeholder("x", DType::f32, {2});
          const Tensors fetches = two_gradients(nodes, k, recomputed);
          Session session(graph, {.passes = passes});
          CHECK(values_of(session.run(fetches, {{nodes[k], values_of_input(k)}})) ==
                expected(count, k));
        }
      }
    }
}

TEST_CASE("Of very many inputs the tape keeps those that the gradient reads, and nothing else") {
  constexpr std::int64_t kElements = 1000;
  for (const std::size_t k : kPlaces) {
    INFO("input " << k);
    const std::size_t before = requested();
    Tensors in = make_all(200, kElements);
    in[k] = in[k].with_grad();
    Tensor y = applied(sum_of_squares_op, in);
    in.clear();
    CHECK(requested() - before == 2 * y.bytes());
    y = {};
    CHECK(requested() == before);
  }
}

TEST_CASE("The 33rd input and later ones give their memory where that is declared, and no other") {
  constexpr std::int64_t kElements = 1000;
  for (const OpDef* op : {&sum_of_squares_op, &scratch_op})
    for (const std::size_t k : {0u, 31u, 32u, 160u, 199u}) {
      INFO(op->name << ", input " << k);
      const bool declared = k >= 32, destroys = op == &scratch_op;
      Tensors in = make_all(200, kElements);
      const std::vector<float> y = applied(*op, in).to_vector<float>();
      const std::size_t bytes = in[k].bytes(), before = requested();
      allocator().reset_peaks();
      const Tensor result = applied(*op, in, k);
      CHECK(allocator().stats().requested.peak - before ==
            (destroys ? bytes : 0) + (declared ? 0 : bytes));
      CHECK(result.to_vector<float>() == y);
      for (std::size_t i = 0; i < in.size(); ++i)
        if (i != k)
          CHECK(in[i].to_vector<float>() == values_of_input(i, kElements).to_vector<float>());

      Graph graph;
      const Tensor x = graph.placeholder("x", DType::f32, {kElements});
      Tensors nodes = make_all(200, kElements);
      nodes[k] = x + 1;
      const Tensor after = applied(*op, nodes) + 1;
      const auto plan = graph.plan({after}, {{x, {kElements}}}, Device::cpu());
      const std::size_t one = Device::cpu().runtime().profile().rounded(bytes);
      CHECK(plan.workspace_bytes == (destroys && !declared ? bytes : 0));
      if (!destroys) CHECK(plan.arena_bytes == (declared ? one : 2 * one));
      std::vector<float> one_more = y;
      for (float& value : one_more) value += 1;
      CHECK(
          Session(graph).run(after, {{x, values_of_input(k, kElements) - 1}}).to_vector<float>() ==
          one_more);
    }
}

namespace {

constexpr int kMany = 60;

Parameters sixty(Parameters p) {
  for (int i = 0; i < kMany; ++i)
    p.declare("w" + std::to_string(i), {2}, initializers::constant(i));
  return p;
}

Tensor tripled(const Parameters& p) {
  const NoGrad no_grad;
  return applied(triple_op, p.tensors());
}

}  // namespace

TEST_CASE("An update of very many parameters gives each of them a new version, in both modes") {
  const auto program = [](const Parameters& p) -> Tensors {
    const NoGrad no_grad;
    const Tensor& last = p.entries().back().tensor;
    const Tensor before = last * 1, updated = tripled(p);
    return {before, updated * 1, last * 1};
  };
  const Lists results{{59, 59}, {0, 0}, {177, 177}};
  const auto check = [](const auto& value_of, const Parameters& p) {
    for (int i = 0; i < kMany; ++i)
      CHECK(value_of(p["w" + std::to_string(i)]).template to_vector<float>() ==
            std::vector<float>(2, static_cast<float>(3 * i)));
  };
  const Parameters eager = sixty(Parameters(Device::cpu()));
  CHECK(values_of(program(eager)) == results);
  check([](const Tensor& w) { return w; }, eager);
  const Tensor& last = eager.entries().back().tensor;
  const Tensor loss = sum(square(last));
  tripled(eager);
  CHECK_ERROR(gradients(loss, {last}), Error, "has been updated in place");
  for (const bool passes : {false, true}) {
    Graph graph;
    const Parameters p = sixty(Parameters(graph));
    const Tensors fetches = program(p);
    Session session(graph, {.passes = passes});
    session.initialize(p);
    CHECK(values_of(session.run(fetches)) == results);
    check([&](const Tensor& w) { return session.value(w); }, p);
  }
}

}  // namespace ebb::tests
