// Values that references do not settle: signs of zeros, ties, NaN, and gradients there.
#include <cmath>
#include <numbers>

#include "ebb/core/base/error.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/order.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/update.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/infinity.h"
#include "ebb/tests/ops/refuses.h"

namespace ebb::tests {
namespace {

using Doubles = std::vector<double>;

// Checks values within a relative error of `near`. NaN equals NaN; zeros must have the same sign.
void check_same(const Tensor& x, const Doubles& expected, double near = 0) {
  const Doubles values = x.to_vector<double>();
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    INFO("element " << i << ": " << values[i] << ", expected " << expected[i]);
    if (std::isnan(expected[i])) {
      CHECK(std::isnan(values[i]));
      continue;
    }
    CHECK(std::signbit(values[i]) == std::signbit(expected[i]));
    CHECK((values[i] == expected[i] ||
           std::abs(values[i] - expected[i]) <= near * std::abs(expected[i])));
  }
}

}  // namespace

TEST_CASE("Zeros keep their sign where numbers are rounded, and halves go to the even integer") {
  const Tensor x = Tensor::from({-0.0, 0.0, -0.5, 0.5, 1.5, -1.5, 2.5, -0.3, kNaN64, -kInfinity64});
  check_same(abs(x), {0, 0, 0.5, 0.5, 1.5, 1.5, 2.5, 0.3, kNaN64, kInfinity64});
  check_same(sign(x), {0, 0, -1, 1, 1, -1, 1, -1, kNaN64, -1});
  check_same(floor(x), {-0.0, 0, -1, 0, 1, -2, 2, -1, kNaN64, -kInfinity64});
  check_same(ceil(x), {-0.0, 0, -0.0, 1, 2, -1, 3, -0.0, kNaN64, -kInfinity64});
  check_same(round(x), {-0.0, 0, -0.0, 0, 2, -2, 2, -0.0, kNaN64, -kInfinity64});
  check_same(trunc(x), {-0.0, 0, -0.0, 0, 1, -1, 2, -0.0, kNaN64, -kInfinity64});
}

TEST_CASE("A remainder has the sign of what is divided by, as in NumPy") {
  const Tensor a = Tensor::from(
                   {5.0, -5.0, 5.0, -5.0, 4.0, -4.0, 1.0, -1.0, -0.0, 5.0, kInfinity64}),
               b = Tensor::from(
                   {3.0, 3.0, -3.0, -3.0, -2.0, 2.0, -kInfinity64, kInfinity64, 3.0, 0.0, 3.0});
  check_same(remainder(a, b),
             {2, 1, -1, -2, -0.0, 0, -kInfinity64, kInfinity64, 0, kNaN64, kNaN64});
  check_same(remainder(Tensor::from({-1.0, 7.5}), 2), {1, 1.5});
  check_same(remainder(-7, Tensor::from({2.0, -4.0})), {1, -3});
}

TEMPLATE_TEST_CASE("A remainder is exact, next to multiples and of quotients of many bits too", "",
                   float, double) {
  using T = TestType;
  std::vector<T> a, b;
  std::uint64_t dice = 1;
  for (int i = 0; i < 20'000; ++i) {
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    const T sign = (dice >> 40 & 1) != 0 ? T(-1) : T(1),
            divisor = sign * (T(dice >> 44) + T(1)) / T(1 << 10);
    const auto quotient = static_cast<std::int64_t>(dice >> 8) >> (dice % 56);
    const T near = divisor * static_cast<T>(quotient);
    const T ways[] = {near, std::nextafter(near, T(0)), std::nextafter(near, T(1e30)), near / T(3)};
    a.push_back(ways[dice >> 4 & 3]);
    b.push_back(divisor);
  }
  std::vector<double> expected;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const T rest = std::fmod(a[i], b[i]);
    const bool differs = rest != 0 && (rest < 0) != (b[i] < 0);
    expected.push_back(static_cast<double>(rest == 0 ? std::copysign(rest, b[i])
                                                     : rest + (differs ? b[i] : T(0))));
  }
  check_same(cast(remainder(Tensor::from(a), Tensor::from(b)), DType::f64), expected);
}

TEST_CASE("No gradient goes through a step, and that of abs is 0 at 0") {
  const Tensor x = Tensor::from({-2.5, 0.0, 1.25}).with_grad();
  check_same(gradients(sum(abs(x)), {x})[0], {-1, 0, 1});
  check_same(gradients(sum(floor(x) * 3 + x), {x})[0], {1, 1, 1});
  check_same(gradients(sum(round(x)), {x})[0], {0, 0, 0});
  check_same(gradients(sum(remainder(3, x)), {x})[0], {2, -kInfinity64, -2});
}

TEST_CASE("maximum and minimum share the gradient of a tie with a number") {
  const Tensor a = Tensor::from({1.0, 2.0, kNaN64, 3.0, -kInfinity64}).with_grad();
  check_same(gradients(sum(maximum(a, 2) + minimum(2, a)), {a})[0], {1, 1, 2, 1, 1});
}

TEST_CASE("clamp takes either bound or both, and its gradient passes at the bounds themselves") {
  const Tensor x = Tensor::from({-2.0, -1.0, 0.5, 1.0, kInfinity64, kNaN64}).with_grad();
  check_same(clamp(x, -1, 1), {-1, -1, 0.5, 1, 1, kNaN64});
  check_same(clamp(x, 0), {0, 0, 0.5, 1, kInfinity64, kNaN64});
  check_same(clamp(x, {}, 0), {-2, -1, 0, 0, 0, kNaN64});
  check_same(clamp(x, 1, -1), {-1, -1, -1, -1, -1, kNaN64});
  check_same(gradients(sum(clamp(x, -1, 1)), {x})[0], {0, 1, 1, 1, 0, 0});
  check_same(gradients(sum(clamp(x, {}, 0.5)), {x})[0], {1, 1, 1, 0, 0, 0});
  EBB_REFUSES(clamp(x, kNaN64), Error, "[clamp] a bound is NaN");
}

TEST_CASE("integers are clamped to integers, in both modes") {
  using Integers = std::vector<std::int32_t>;
  const Tensor x = Tensor::from({-3, 0, 2, 9});
  CHECK(clamp(x, 0, 5).to_vector<std::int32_t>() == Integers{0, 0, 2, 5});
  CHECK(clamp(x, 1).to_vector<std::int32_t>() == Integers{1, 1, 2, 9});
  CHECK(clamp(x, {}, 1).to_vector<std::int32_t>() == Integers{-3, 0, 1, 1});
  CHECK(clamp(x, 5, 1).to_vector<std::int32_t>() == Integers{1, 1, 1, 1});
  CHECK(clamp(cast(x, DType::i64), 0, 5).dtype() == DType::i64);
  Tensor same = clamp(x, {}, {});
  assign(same, 7);
  CHECK(x.to_vector<std::int32_t>() == Integers{-3, 0, 2, 9});
  EBB_REFUSES(clamp(x, 0.5), Error, "[clamp] i32 does not have the number 0.5");
  EBB_REFUSES(clamp(x, 0, 9.5), Error, "[clamp] i32 does not have the number 9.5");
  EBB_REFUSES(clamp(x, {}, kNaN64), Error, "[clamp] a bound is NaN");
  Graph graph;
  const Tensor p = graph.placeholder("p", DType::i32, {-1});
  CHECK(Session(graph).run(clamp(p, 0, 5), {{p, x}}).to_vector<std::int32_t>() ==
        Integers{0, 0, 2, 5});
}

TEST_CASE("pow gives what C says for zeros, infinities and NaN, and of negative numbers") {
  const Doubles all = {0,     -0.0,        0.5,          -0.5,  1,      -1,         2,   -2,
                       3,     -3,          2.5,          -2.5,  0x1p53, 0x1p53 + 2, 1.5, -1.5,
                       1e300, kInfinity64, -kInfinity64, kNaN64};
  Doubles a, b, expected;
  for (const double x : all)
    for (const double y : all) {
      a.push_back(x);
      b.push_back(y);
      expected.push_back(std::pow(x, y));
    }
  const auto n = static_cast<std::int64_t>(a.size());
  check_same(pow(Tensor::from(a, {n}), Tensor::from(b, {n})), expected, 4e-16);
  const Tensor x = Tensor::from(all);
  for (const double y : {1.0, 2.0, 3.0, 0.5, -1.0, -0.5, -2.0, -3.0, 0.25}) {
    expected.clear();
    for (const double one : all) expected.push_back(std::pow(one, y));
    CAPTURE(y);
    check_same(pow(x, y), expected, 4e-16);
  }
}

TEST_CASE(
    "The gradients of pow are PyTorch's where the exponent is 0, or the base, which may be a "
    "number") {
  const Tensor a = Tensor::from({0.0, 0.0, 0.0, 0.0, -2.0, 3.0}).with_grad(),
               b = Tensor::from({0.0, 1.0, 2.5, -1.0, 0.0, 2.0}).with_grad();
  const Tensors g = gradients(sum(pow(a, b)), {a, b});
  check_same(g[0], {0, 1, 0, -kInfinity64, 0, 6}, 4e-16);
  check_same(g[1], {0, 0, 0, -kInfinity64, kNaN64, 9 * std::log(3.0)}, 4e-16);
  check_same(gradients(sum(pow(a, 0) + pow(a, 1)), {a})[0], {1, 1, 1, 1, 1, 1});
  check_same(gradients(sum(pow(0, b)), {b})[0], {0, 0, 0, -kInfinity64, 0, 0});
  const Tensor below = Tensor::from({-1.0}).with_grad();
  check_same(gradients(sum(pow(-0.0, below)), {below})[0], {kInfinity64});
  check_same(gradients(sum(pow(Tensor::from({-0.0}), below)), {below})[0], {kInfinity64});
}

TEST_CASE("The second derivative of a gelu is 0 far from 0, for every dtype") {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16})
    for (const bool approximate : {false, true}) {
      CAPTURE(dtype, approximate);
      const Tensor x = cast(Tensor::from({-1e30, -300., -20., 30., 6e4, 1e30}), dtype).with_grad();
      const Tensor dx =
          gradients(sum(gelu(x, {.approximate = approximate})), {x}, {.create_graph = true})[0];
      const Tensor curve = gradients(sum(dx), {x})[0];
      CHECK(max(abs(cast(curve, DType::f64))).item<double>() < 1e-50);
    }
}

TEST_CASE("The approximate gelu is within 2 ulp of its formula, of those of 1 at least") {
  std::vector<double> x = {0, -0.0, kInfinity64, -1e30, 1e30};
  for (int i = -3000; i <= 3000; ++i) x.push_back(i / 100.0);
  const auto n = static_cast<std::int64_t>(x.size());
  const auto formula = [](double at) {
    return at / 2 *
           (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (at + 0.044715 * at * at * at)));
  };
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor at = cast(Tensor::from(x, {n}), dtype);
    const Doubles values = cast(gelu(at, {.approximate = true}), DType::f64).to_vector<double>();
    const Doubles points = cast(at, DType::f64).to_vector<double>();
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double expected = formula(points[i]);
      if (values[i] == expected) continue;  // also if both are infinite
      worst = std::max(worst, std::abs(values[i] - expected) / std::max(1.0, std::abs(expected)));
    }
    CHECK(worst <= (dtype == DType::f32 ? 0x1p-22 : 0x1p-51));
  }
}

TEST_CASE("Activations have their limits at infinity, and so have their slopes") {
  const Tensor x = Tensor::from({kInfinity64, -kInfinity64, 1e5, -1e5, kNaN64}).with_grad();
  const auto check = [&](const Tensor& y, const Doubles& values, const Doubles& slopes) {
    check_same(y, values);
    check_same(gradients(sum(y), {x})[0], slopes);
  };
  check(silu(x), {kInfinity64, -0.0, 1e5, -0.0, kNaN64}, {1, -0.0, 1, -0.0, kNaN64});
  check(gelu(x), {kInfinity64, -0.0, 1e5, -0.0, kNaN64}, {1, -0.0, 1, -0.0, kNaN64});
  check(gelu(x, {.approximate = true}), {kInfinity64, -0.0, 1e5, -0.0, kNaN64},
        {1, -0.0, 1, -0.0, kNaN64});
  check(leaky_relu(x), {kInfinity64, -kInfinity64, 1e5, -1e3, kNaN64}, {1, 0.01, 1, 0.01, 0.01});
  check(elu(x, 2), {kInfinity64, -2, 1e5, -2, kNaN64}, {1, 0, 1, 0, kNaN64});
  EBB_REFUSES(leaky_relu(x, -0.1), Error, "[leaky_relu] takes a slope of 0 or more");
  EBB_REFUSES(elu(x, kNaN64), Error, "[elu] takes an alpha of 0 or more");
}

TEST_CASE("A sum of many equal floats does not stand still") {
  if (!on_host()) return;  // takes too long on an emulated GPU
  // A running sum in float would stop at 2^24.
  const std::int64_t n = (1 << 24) + 4096;
  CHECK(sum(Tensor::full({n}, 1)).item<float>() == static_cast<float>(n));
}

TEST_CASE(
    "An activation of dense that its kernel does not have is the operator behind the product") {
  const auto random = [](const Shape& shape) { return normal(shape, DType::f64); };
  const Tensor x = random({4, 3, 5}), w = random({5, 6}), b = random({6}), plain = dense(x, w, b);
  const auto check = [&](Activation activation, const Tensor& expected) {
    check_same(dense(x, w, b, activation), expected.to_vector<double>());
  };
  check(Activation::gelu, gelu(plain));
  check(Activation::gelu_tanh, gelu(plain, {.approximate = true}));
  check(Activation::silu, silu(plain));
  check(Activation::leaky_relu, leaky_relu(plain));
  check(Activation::elu, elu(plain));
  check(Activation::softplus, softplus(plain));
}

TEST_CASE("cast cuts towards integers, and its gradient passes between floats only") {
  const Tensor x = Tensor::from({-1.7f, 0.f, 2.9f}).with_grad();
  CHECK(cast(x, DType::i32).to_vector<std::int32_t>() == std::vector<std::int32_t>{-1, 0, 2});
  CHECK(cast(cast(x, DType::boolean), DType::u8).to_vector<std::uint8_t>() ==
        std::vector<std::uint8_t>{1, 0, 1});
  const Tensor far = Tensor::from({1e20, -1e20, 300.5, -3.0, kNaN64});
  check_same(cast(cast(far, DType::u8), DType::f64), {255, 0, 255, 0, 0});
  check_same(cast(cast(far, DType::i32), DType::f64), {2147483647, -2147483648.0, 300, -3, 0});
  CHECK(cast(far, DType::i64).to_vector<std::int64_t>()[4] == 0);
  sum(square(cast(x, DType::f64))).backward();
  CHECK(x.grad().dtype() == DType::f32);
  CHECK(x.grad().to_vector<float>() == std::vector<float>{2 * -1.7f, 0, 2 * 2.9f});
  CHECK_FALSE(cast(cast(x, DType::i32), DType::f32).requires_grad());
}

}  // namespace ebb::tests
