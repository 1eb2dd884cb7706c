// Variance, norm and logsumexp: many shapes, values far from zero, infinities, empty rows.
#include "ebb/core/ops/statistics.h"

#include <cmath>

#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/base/error.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/infinity.h"
#include "ebb/tests/ops/harness.h"
#include "ebb/tests/ops/refuses.h"

namespace ebb::tests {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

Doubles doubles(const Tensor& x) { return x.to_vector<double>(); }
double number(const Tensor& x) { return doubles(x)[0]; }

}  // namespace

TEST_CASE("statistics are right of rows and columns of any length, near zero and far from it") {
  for (const DType dtype : kFloating)
    for (const double offset : {0.0, 30.0, 1e4})
      for (const Shape& shape :
           {Shape{1, 1, 1}, Shape{1, 70'001, 1}, Shape{3, 1, 5}, Shape{4, 1500, 1},
            Shape{3, 200, 3}, Shape{2, 300, 150}, Shape{700, 3, 1}}) {
        if (is_half(dtype) && offset > 100) continue;  // the numbers would be equal
        if (shape.elements() > 1000 && offset == 30) continue;
        CAPTURE(offset);
        // Running updates of the mean in f64 lose digits in the ratio of mean to deviation, here up
        // to 1e4.
        const double slack = dtype == DType::f64 ? 1e4 : 1;
        const auto call = [&](const Tensors& in) -> Tensors {
          const Tensor x = in[0] + offset;
          return {variance(x, 1), standard_deviation(x, {.axes = {1}, .correction = 1}),
                  norm(x, {.p = 1, .axes = {1}}), norm(x, {.axes = {1}, .keep = true}),
                  logsumexp(x, 1)};
        };
        CHECK(unlike_references({{shape}}, dtype, call, slack) == "");
      }
}

TEST_CASE("logsumexp does not overflow, and knows what infinities are") {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (const int axis : {0, 1}) {
      CAPTURE(name(dtype), axis);
      const auto of = [&](const Doubles& row) {
        const auto n = static_cast<std::int64_t>(row.size());
        return number(
            logsumexp(cast(Tensor::from(row, axis == 0 ? Shape{n, 1, 1} : Shape{1, n, 1}), dtype),
                      {.axes = {axis}}));
      };
      CHECK(of({1000, 1000, -1000}) == Approx(1000 + std::log(2)).epsilon(0.004));
      CHECK(of({-1000, -1000}) == Approx(-1000 + std::log(2)).epsilon(0.004));
      CHECK(of({-kInfinity64, 3, -kInfinity64}) == 3);
      CHECK(of({-kInfinity64, -kInfinity64}) == -kInfinity64);
      CHECK(of({1, kInfinity64, -kInfinity64}) == kInfinity64);
      CHECK(of({kInfinity64, kInfinity64}) == kInfinity64);
      CHECK(std::isnan(of({1, kNaN64, 2})));
      CHECK(std::isnan(of({-kInfinity64, kNaN64})));
      CHECK(std::isnan(of({kNaN64, 1e4, kInfinity64})));
    }
  // The largest values stand far apart in a long row, which is worked on in parts.
  Doubles values(100'000, -kInfinity64);
  values[5] = 700;
  values[99'999] = 700;
  values[50'000] = 600;
  CHECK(number(logsumexp(Tensor::from(values, {100'000}))) == Approx(700 + std::log(2)));
  const Tensor rising = Tensor::from(values, {100'000, 1});
  CHECK(number(logsumexp(rising, 0)) == Approx(700 + std::log(2)));
}

TEST_CASE("where a statistic has no slope its gradient is 0") {
  const auto gradient = [](const Tensor& x, const auto& f) {
    const Tensor leaf = x.detach().with_grad();
    sum(f(leaf)).backward();
    return leaf.grad().template to_vector<float>();
  };
  const Tensor rows = Tensor::from({{0.f, 0.f}, {3.f, -4.f}});
  CHECK(gradient(rows, [](const Tensor& x) { return norm(x, {.axes = {1}}); }) ==
        Floats{0, 0, 0.6f, -0.8f});
  CHECK(gradient(rows, [](const Tensor& x) { return norm(x, {.p = 1}); }) == Floats{0, 0, 1, -1});
  CHECK(gradient(rows, [](const Tensor& x) { return norm(x, {.p = kInfinity64, .axes = {1}}); }) ==
        Floats{0, 0, 0, -1});
  CHECK(gradient(Tensor::from({{7.f, 7.f}, {1.f, 3.f}}), [](const Tensor& x) {
          return standard_deviation(x, 1);
        }) == Floats{0, 0, -0.5f, 0.5f});
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    CAPTURE(name(dtype));
    const Tensor x =
        cast(Tensor::from({{-kInfinity64, -kInfinity64}, {-kInfinity64, 2.0}}), dtype).with_grad();
    sum(logsumexp(x, 1)).backward();
    CHECK(doubles(x.grad()) == Doubles{0, 0, 0, 1});
  }
}

TEST_CASE("gradients of 16 bits are those of f32 far from zero too, rounded") {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    Floats values;
    for (int i = 0; i < 40; ++i) values.push_back(96 + 0.5f * static_cast<float>(i % 5));
    values[7] = 97;
    const Tensor x = cast(Tensor::from(values, {5, 8}), dtype), wide = cast(x, DType::f32);
    const auto check = [&](const auto& f) {
      const auto gradient = [&](const Tensor& of) {
        const Tensor at = of.with_grad();
        return doubles(gradients(sum(f(at)), {at})[0]);
      };
      const Doubles found = gradient(x), right = gradient(wide);
      for (std::size_t i = 0; i < right.size(); ++i)
        CHECK(std::abs(found[i] - right[i]) < 0.01 * std::abs(right[i]) + 1e-4);
    };
    check([](const Tensor& z) { return logsumexp(z, 1); });
    check([](const Tensor& z) { return variance(z, 1); });
    check([](const Tensor& z) { return standard_deviation(z, 0); });
  }
}

TEST_CASE("a deviation of 0 has no derivative of any order") {
  const Tensor x = Tensor::from({{7.0, 7.0, 7.0}}).with_grad();
  const Tensor slope = gradients(sum(standard_deviation(x, 1)), {x}, {.create_graph = true})[0];
  const Tensor weights = Tensor::from({{1.0, 2.0, 4.0}});
  CHECK(doubles(gradients(sum(slope * weights), {x})[0]) == Doubles{0, 0, 0});
}

TEST_CASE("statistics of nothing are what their formulas say") {
  const Tensor none = Tensor::zeros({2, 0});
  for (const float value : variance(none, 1).to_vector<float>()) CHECK(std::isnan(value));
  CHECK(std::isnan(standard_deviation(none).item<float>()));
  CHECK(std::isnan(variance(none, {.correction = 1}).item<float>()));
  CHECK(norm(none, {.axes = {1}}).to_vector<float>() == Floats{0, 0});
  CHECK(norm(none, {.p = 1}).item<float>() == 0);
  CHECK(number(logsumexp(none)) == -kInfinity64);
  CHECK(variance(none, 0).shape() == Shape{0});
  CHECK(std::isnan(variance(Tensor::zeros({1}), {.correction = 1}).item<float>()));
  CHECK(variance(Tensor::zeros({1})).item<float>() == 0);
}

TEST_CASE("the deviation of numbers whose squares vanish is a number") {
  const Tensor x = Tensor::from({1e-25f, 1.0000001e-25f, 1.0000001e-25f});
  CHECK(standard_deviation(x).item<float>() < 1e-30f);
  CHECK(standard_deviation(reshape(x, {3, 1}), 0).item<float>() < 1e-30f);
}

TEST_CASE("statistics that make no sense are refused, in words") {
  const Tensor x = Tensor::zeros({2, 3});
  EBB_REFUSES(variance(x, {.correction = 2}), Error,
              "[variance] takes a correction of 0 or 1, not 2");
  EBB_REFUSES(norm(x, {.p = 3}), Error, "[norm] takes a p of 1, 2 or infinity");
  EBB_REFUSES(norm(cast(x, DType::i32)), ShapeError, "[norm] takes f32, f64, f16 or bf16");
  EBB_REFUSES(norm(cast(x, DType::i32), {.p = kInfinity64}), ShapeError, "[norm] takes f32");
  EBB_REFUSES(standard_deviation(x, 2), ShapeError, "[standard_deviation] there is no axis 2");
  EBB_REFUSES(logsumexp(x, {.axes = {0, 0}}), ShapeError, "given twice");
}

TEST_CASE("The gradient of a product takes no more at once than two f64 of its size") {
  const Tensor x = Tensor::full({64, 1024}, 1.5).with_grad();
  const std::size_t before = memory::stats(Device::cpu()).allocated.current;
  const memory::PeakScope peak(Device::cpu());
  gradients(sum(prod(x, 1)), {x});
  CHECK(peak.bytes() - before < 9 * x.bytes() / 2);
}

TEST_CASE("A product of f32 may be beyond f32 on the way, and is NaN of infinity and 0") {
  std::vector<float> values(200, 4);
  std::fill(values.begin() + 100, values.end(), 0.25f);
  values[7] = 8;
  CHECK(number(prod(Tensor::from(values))) == 2);
  CHECK(std::isnan(number(prod(Tensor::from({1., kInfinity64, 0.})))));
}

TEST_CASE("The gradient of a product of a zero and of factors that overflow is 0, not NaN") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const double large = dtype == DType::f32 ? 1e20 : 1e200;
  const auto gradient = [&](const Doubles& x) {
    const Tensor leaf = cast(Tensor::from(x), dtype).detach().with_grad();
    return doubles(gradients(prod(leaf), {leaf})[0]);
  };
  CHECK(gradient({0, large, large, 1}) == Doubles{kInfinity64, 0, 0, 0});
  CHECK(gradient({large, -large, 0}) == Doubles{0, 0, -kInfinity64});
  CHECK(gradient({0, 0, large, large}) == Doubles{0, 0, 0, 0});
  CHECK(gradient({0, 0, 0, large, large}) == Doubles{0, 0, 0, 0, 0});
  CHECK(std::isnan(gradient({0, kNaN64, 1})[0]));

  // With two zeros, the second derivative is the product of the other values. It overflows like the
  // first.
  const Tensor leaf = cast(Tensor::from({0., 0., -large, large}), dtype).detach().with_grad();
  const Tensor g = gradients(prod(leaf), {leaf}, {.create_graph = true})[0];
  const Doubles second = doubles(gradients(sum(slice(g, 0, 1)) * 0.5, {leaf})[0]);
  CHECK(second[0] == 0);
  CHECK(second[1] == -kInfinity64);
}

TEST_CASE("The gradient of a product of 16 bits is computed in f64") {
  const DType dtype = GENERATE(DType::f16, DType::bf16);
  // The product, or the product of two values, is no f16 number or is far from 1.
  for (const Doubles& values : {Doubles{0.003, 0.003, 0.003}, Doubles{300, 300, 1e-3},
                                Doubles{0, 300, 300, 0.01}, Doubles{1.01, 1.02, 0.97, 1.03}}) {
    const Tensor leaf = cast(Tensor::from(values), dtype).detach().with_grad();
    const Doubles x = doubles(leaf), got = doubles(gradients(prod(leaf), {leaf})[0]);
    for (std::size_t i = 0; i < x.size(); ++i) {
      double others = 1;
      for (std::size_t j = 0; j < x.size(); ++j) others *= j == i ? 1 : x[j];
      CAPTURE(name(dtype), values, i);
      CHECK(got[i] == number(cast(Tensor::from({others}), dtype)));
    }
  }
}

}  // namespace ebb::tests
