#include "ebb/core/kernels/conv.h"

#include <array>
#include <cmath>

#include "ebb/core/kernels/pool.h"
#include "ebb/tests/kernels/fixture.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

struct Problem {
  ConvAttributes attributes;
  Shape x, weights, y;
};

Problem random_problem(Dice& dice, bool large) {
  Problem p;
  const std::int64_t most = large ? 40 : 9;
  p.attributes.groups = dice.integer(1, 3);
  const std::int64_t channels = dice.integer(1, large ? 20 : 3),
                     filters = dice.integer(1, large ? 12 : 3);
  p.x = {dice.integer(1, 4), channels * p.attributes.groups, 0, 0};
  p.weights = {filters * p.attributes.groups, channels, 0, 0};
  p.y = {p.x[0], p.weights[0], 0, 0};
  for (int side = 0; side < 2; ++side) {
    const std::int64_t kernel = dice.integer(1, 3);
    p.attributes.stride[side] = dice.integer(1, 3);
    p.attributes.padding[side] = dice.integer(0, 2);
    p.attributes.dilation[side] = dice.integer(1, 2);
    const std::int64_t reach = p.attributes.dilation[side] * (kernel - 1) + 1;
    const std::int64_t size = dice.integer(reach, most + reach);
    p.x.set(2 + side, size);
    p.weights.set(2 + side, kernel);
    p.y.set(2 + side,
            (size + 2 * p.attributes.padding[side] - reach) / p.attributes.stride[side] + 1);
  }
  return p;
}

// The sum over all products x weights dy: what y, dx and dw each give with the third.
double product(const Values& a, const Values& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i) sum += a.at(i) * b.at(i);
  return sum;
}

// y, by loops.
std::vector<double> convolved(const Problem& p, const Values& x, const Values& weights) {
  std::vector<double> y;
  const std::int64_t filters = p.y[1] / p.attributes.groups, channels = p.weights[1];
  for (std::int64_t n = 0; n < p.y[0]; ++n)
    for (std::int64_t o = 0; o < p.y[1]; ++o)
      for (std::int64_t i = 0; i < p.y[2]; ++i)
        for (std::int64_t j = 0; j < p.y[3]; ++j) {
          double sum = 0;
          for (std::int64_t c = 0; c < channels; ++c)
            for (std::int64_t a = 0; a < p.weights[2]; ++a)
              for (std::int64_t b = 0; b < p.weights[3]; ++b) {
                const std::int64_t row = i * p.attributes.stride[0] - p.attributes.padding[0] +
                                         a * p.attributes.dilation[0];
                const std::int64_t column = j * p.attributes.stride[1] - p.attributes.padding[1] +
                                            b * p.attributes.dilation[1];
                if (row < 0 || row >= p.x[2] || column < 0 || column >= p.x[3]) continue;
                const std::int64_t channel = o / filters * channels + c;
                sum += x.at(((n * p.x[1] + channel) * p.x[2] + row) * p.x[3] + column) *
                       weights.at(((o * channels + c) * p.weights[2] + a) * p.weights[3] + b);
              }
          y.push_back(sum);
        }
  return y;
}

Call forward(const Problem& p, const Values& x, const Values& weights, DType type) {
  return {.kernel = cpu::conv2d,
          .memory = cpu::conv2d_memory,
          .attributes = p.attributes,
          .inputs = {x, weights},
          .outputs = {{type, p.y}}};
}
Call to_input(const Problem& p, const Values& dy, const Values& weights, DType type) {
  return {.kernel = cpu::conv2d_input_gradient,
          .memory = cpu::conv2d_input_gradient_memory,
          .attributes = p.attributes,
          .inputs = {dy, weights, Values({type, p.x})},
          .outputs = {{type, p.x}},
          .without_input = 4};
}
Call to_weights(const Problem& p, const Values& x, const Values& dy, DType type) {
  return {.kernel = cpu::conv2d_weight_gradient,
          .memory = cpu::conv2d_weight_gradient_memory,
          .attributes = p.attributes,
          .inputs = {x, dy, Values({type, p.weights})},
          .outputs = {{type, p.weights}},
          .without_input = 4};
}

}  // namespace

TEST_CASE("conv2d is the convolution, and its gradients are its transposes") {
  Dice dice(21);
  for (int repeat = 0; repeat < 60; ++repeat) {
    const DType type = repeat % 2 == 0 ? DType::f32 : DType::f64;
    const Problem p = random_problem(dice, repeat % 10 == 0);
    INFO(p.x << " " << p.weights << " " << p.y << " " << name(type));
    const Values x = dice.tensor(type, p.x), weights = dice.tensor(type, p.weights),
                 dy = dice.tensor(type, p.y);
    const Values y = forward(p, x, weights, type).run()[0];
    CHECK(distance(y.list(), convolved(p, x, weights)) < 10 * tolerance(type));
    // <dy, y> = <dx, x> = <dw, w>, for any of them: the gradients are those of a bilinear map.
    const Values dx = to_input(p, dy, weights, type).run()[0];
    const Values dw = to_weights(p, x, dy, type).run()[0];
    const double size = std::sqrt(static_cast<double>(y.elements())) *
                        std::sqrt(static_cast<double>(weights.elements()));
    CHECK(std::abs(product(dy, y) - product(dx, x)) < tolerance(type) * (10 + size));
    CHECK(std::abs(product(dy, y) - product(dw, weights)) < tolerance(type) * (10 + size));
  }
}

TEST_CASE("convolutions are the same bits for any number of threads") {
  Dice dice(22);
  const Problem problems[] = {
      {{.padding = {1, 1}}, {3, 20, 40, 41}, {9, 20, 3, 3}, {3, 9, 40, 41}},
      {{}, {40, 3, 12, 12}, {7, 3, 5, 5}, {40, 7, 8, 8}},
      {{.stride = {2, 2}, .groups = 2}, {1, 60, 9, 9}, {4, 30, 1, 1}, {1, 4, 5, 5}}};
  for (const DType type : {DType::f32, DType::f64})
    for (const Problem& p : problems) {
      const Values x = dice.tensor(type, p.x), weights = dice.tensor(type, p.weights),
                   dy = dice.tensor(type, p.y);
      check_threads_agree(forward(p, x, weights, type));
      check_threads_agree(to_input(p, dy, weights, type));
      check_threads_agree(to_weights(p, x, dy, type));
    }
}

TEST_CASE("the workspace of convolutions does not grow with the images") {
  for (const std::int64_t size : {8, 64}) {
    std::size_t bytes[3][2];
    for (int many = 0; many < 2; ++many) {
      const std::int64_t images = many == 0 ? 64 : 4096;
      const Spec x{DType::f32, {images, 16, size, size}}, weights{DType::f32, {32, 16, 3, 3}},
          y{DType::f32, {images, 32, size, size}};
      const Attributes attributes = ConvAttributes{.padding = {1, 1}};
      const auto needs = [&](MemoryRule rule, std::vector<Spec> inputs, const Spec& output) {
        return rule({.inputs = inputs, .outputs = {&output, 1}, .attributes = &attributes})
            .workspace_bytes;
      };
      bytes[0][many] = needs(cpu::conv2d_memory, {x, weights}, y);
      bytes[1][many] = needs(cpu::conv2d_input_gradient_memory, {y, weights, x}, x);
      bytes[2][many] = needs(cpu::conv2d_weight_gradient_memory, {x, y, weights}, weights);
    }
    for (const auto& of : bytes) {
      CHECK(of[0] == of[1]);
      CHECK(of[0] <= std::size_t{6} << 20);
    }
  }
}

TEST_CASE("fewer images never take more workspace of convolutions") {
  for (const DType type : {DType::f32, DType::f64, DType::bf16})
    for (const auto& [channels, size, groups] :
         {std::array{64, 32, 1}, {3, 64, 1}, {17, 9, 1}, {64, 32, 2}, {40, 3, 5}}) {
      CAPTURE(name(type), channels, size, groups);
      const Attributes attributes = ConvAttributes{.padding = {1, 1}, .groups = groups};
      std::size_t before[3] = {};
      for (std::int64_t images = 0; images < 40; ++images) {
        CAPTURE(images);
        const Spec x{type, {images, channels * groups, size, size}},
            weights{type, {16 * groups, channels, 3, 3}},
            y{type, {images, 16 * groups, size, size}};
        const auto check = [&](int which, MemoryRule rule, std::vector<Spec> inputs,
                               const Spec& output) {
          const std::size_t bytes =
              rule({.inputs = inputs, .outputs = {&output, 1}, .attributes = &attributes})
                  .workspace_bytes;
          CHECK(bytes >= before[which]);
          before[which] = bytes;
        };
        check(0, cpu::conv2d_memory, {x, weights}, y);
        check(1, cpu::conv2d_input_gradient_memory, {y, weights, x}, x);
        check(2, cpu::conv2d_weight_gradient_memory, {x, y, weights}, weights);
      }
    }
}

TEST_CASE("max_pool prefers the first of equal elements, and NaN to any") {
  const double nan = std::nan("");
  const std::vector<double> x = {1, 3, nan, 5, nan, 7, 2, 3, nan, 9, 0, -1};
  Call call{.kernel = cpu::max_pool,
            .attributes = PoolAttributes{.kernel = {1, 2}, .stride = {1, 2}},
            .inputs = {values(DType::f32, {1, 12},
                              [&](std::int64_t i) { return x[static_cast<std::size_t>(i)]; })},
            .outputs = {{DType::f32, {1, 6}}}};
  const std::vector<double> y = call.run()[0].list();
  CHECK((y[0] == 3 && std::isnan(y[1]) && std::isnan(y[2]) && y[3] == 3 && std::isnan(y[4]) &&
         y[5] == 0));
  const std::vector<double> ties = {4, 4, 1, 4, 4, 4, nan, nan};
  Call back{.kernel = cpu::max_pool_backward,
            .memory = cpu::max_pool_backward_memory,
            .attributes = PoolAttributes{.kernel = {1, 4}, .stride = {1, 4}},
            .inputs = {values(DType::f32, {1, 2},
                              [](std::int64_t i) { return static_cast<double>(i + 1); }),
                       values(DType::f32, {1, 8},
                              [&](std::int64_t i) { return ties[static_cast<std::size_t>(i)]; })},
            .outputs = {{DType::f32, {1, 8}}}};
  CHECK(back.run()[0].list() == std::vector<double>{1, 0, 0, 0, 0, 0, 2, 0});
}
