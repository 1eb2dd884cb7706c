#include "ebb/core/kernels/attention.h"

#include <cmath>

#include "ebb/tests/kernels/fixture.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

Call forward(const Values& q, const Values& k, const Values& v, bool causal) {
  const DType type = q.spec().dtype;
  const Shape& shape = q.spec().shape;
  return {
      .kernel = cpu::attention,
      .memory = cpu::attention_memory,
      .attributes = AttentionAttributes{.scale = 0.3, .causal = causal},
      .inputs = {q, k, v},
      .outputs = {{type, {shape[0], shape[1], v.spec().shape[2]}}, {type, {shape[0], shape[1]}}}};
}

Call backward(const Values& q, const Values& k, const Values& v, const std::vector<Values>& y,
              const Values& dy, bool causal) {
  return {.kernel = cpu::attention_backward,
          .memory = cpu::attention_backward_memory,
          .attributes = AttentionAttributes{.scale = 0.3, .causal = causal},
          .inputs = {q, k, v, y[0], y[1], dy},
          .outputs = {q.spec(), k.spec(), v.spec()}};
}

}  // namespace

TEST_CASE("attention over more keys than a tile has is softmax(q k^T) v, and so is its gradient") {
  Dice dice(31);
  for (const bool causal : {false, true}) {
    const std::int64_t length = 150, keys = 600, depth = 5, width = 3;
    const Values q = dice.tensor(DType::f64, {2, length, depth}, -4, 4),
                 k = dice.tensor(DType::f64, {2, keys, depth}, -4, 4),
                 v = dice.tensor(DType::f64, {2, keys, width}),
                 dy = dice.tensor(DType::f64, {2, length, width});
    const std::vector<Values> y = forward(q, k, v, causal).run();
    std::vector<double> expected, lse, dq(static_cast<std::size_t>(q.elements())),
        dk(static_cast<std::size_t>(k.elements())), dv(static_cast<std::size_t>(v.elements()));
    for (std::int64_t row = 0; row < 2 * length; ++row) {
      const std::int64_t of = row / length * keys, seen = causal ? row % length + 1 : keys;
      std::vector<double> p;
      double sum = 0;
      for (std::int64_t j = of; j < of + seen; ++j) {
        double score = 0;
        for (std::int64_t l = 0; l < depth; ++l)
          score += 0.3 * q.at(row * depth + l) * k.at(j * depth + l);
        p.push_back(std::exp(score));
        sum += p.back();
      }
      lse.push_back(std::log(sum));
      std::vector<double> dp;
      double mean = 0;
      for (std::int64_t j = 0; j < seen; ++j) {
        double& own = p[static_cast<std::size_t>(j)];
        own /= sum;
        dp.push_back(0);
        for (std::int64_t l = 0; l < width; ++l) {
          dp.back() += dy.at(row * width + l) * v.at((of + j) * width + l);
          dv[static_cast<std::size_t>((of + j) * width + l)] += own * dy.at(row * width + l);
        }
        mean += own * dp.back();
      }
      for (std::int64_t l = 0; l < width; ++l) {
        double of_row = 0;
        for (std::int64_t j = 0; j < seen; ++j)
          of_row += p[static_cast<std::size_t>(j)] * v.at((of + j) * width + l);
        expected.push_back(of_row);
      }
      for (std::int64_t j = 0; j < seen; ++j)
        for (std::int64_t l = 0; l < depth; ++l) {
          const double ds =
              0.3 * p[static_cast<std::size_t>(j)] * (dp[static_cast<std::size_t>(j)] - mean);
          dq[static_cast<std::size_t>(row * depth + l)] += ds * k.at((of + j) * depth + l);
          dk[static_cast<std::size_t>((of + j) * depth + l)] += ds * q.at(row * depth + l);
        }
    }
    CHECK(distance(y[0].list(), expected) < 100 * tolerance(DType::f64));
    CHECK(distance(y[1].list(), lse) < 100 * tolerance(DType::f64));
    const std::vector<Values> d = backward(q, k, v, y, dy, causal).run();
    CHECK(distance(d[0].list(), dq) < 100 * tolerance(DType::f64));
    CHECK(distance(d[1].list(), dk) < 100 * tolerance(DType::f64));
    CHECK(distance(d[2].list(), dv) < 100 * tolerance(DType::f64));
  }
}

TEST_CASE("attention is the same bits for any number of threads") {
  Dice dice(32);
  for (const DType type : {DType::f32, DType::f64}) {
    const Values q = dice.tensor(type, {5, 130, 24}), k = dice.tensor(type, {5, 300, 24}),
                 v = dice.tensor(type, {5, 300, 40}), dy = dice.tensor(type, {5, 130, 40});
    const std::vector<Values> y = forward(q, k, v, true).run();
    check_threads_agree(forward(q, k, v, true));
    check_threads_agree(backward(q, k, v, y, dy, true));
  }
}

TEST_CASE("a query for which no key counts gives zeros, and no gradient") {
  Dice dice(33);
  const Values q = dice.tensor(DType::f32, {1, 2, 3}), k = dice.tensor(DType::f32, {1, 4, 3}),
               v = dice.tensor(DType::f32, {1, 4, 2}), dy = dice.tensor(DType::f32, {1, 2, 2});
  const Values mask = values(DType::boolean, {2, 4}, [](std::int64_t i) { return i < 4 ? 0 : 1; });
  Call call = forward(q, k, v, false);
  call.attributes = AttentionAttributes{.scale = 1, .mask = 1};
  call.inputs.push_back(mask);
  const std::vector<Values> y = call.run();
  CHECK((y[0].at(0) == 0 && y[0].at(1) == 0 && y[0].at(2) != 0));
  CHECK(std::isinf(y[1].at(0)));
  Call back = backward(q, k, v, y, dy, false);
  back.attributes = call.attributes;
  back.inputs.push_back(mask);
  const std::vector<Values> d = back.run();
  for (std::int64_t i = 0; i < 3; ++i) CHECK(d[0].at(i) == 0);
  for (const Values& gradient : d)
    for (const double value : gradient.list()) CHECK(std::isfinite(value));
}

TEST_CASE("the memory of attention is linear in the length, and does not grow with the keys") {
  const auto bytes = [](std::int64_t length, bool is_backward) {
    const Spec x{DType::f32, {8, length, 64}}, lse{DType::f32, {8, length}};
    const Attributes attributes = AttentionAttributes{};
    const std::vector<Spec> inputs =
        is_backward ? std::vector<Spec>{x, x, x, x, lse, x} : std::vector<Spec>{x, x, x};
    const std::vector<Spec> outputs =
        is_backward ? std::vector<Spec>{x, x, x} : std::vector<Spec>{x, lse};
    const MemoryRule rule = is_backward ? cpu::attention_backward_memory : cpu::attention_memory;
    return rule({.inputs = inputs, .outputs = outputs, .attributes = &attributes}).workspace_bytes;
  };
  for (const bool is_backward : {false, true}) {
    CHECK(bytes(1 << 12, is_backward) == bytes(1 << 20, is_backward));
    CHECK(bytes(1 << 20, is_backward) <= std::size_t{3} << 20);
  }
}
