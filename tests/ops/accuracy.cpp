// Accuracy of functions in ulps: each stays within the bound that its sample states.
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "ebb/core/ops/activations.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/elementary.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/lstm.h"
#include "ebb/core/ops/powers.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/softmax.h"
#include "ebb/core/ops/trigonometry.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/infinity.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

template <class T>
constexpr T kLeast = std::numeric_limits<T>::min();

// Distance from x to exact in ulps of exact. Denormals count as zeros, and numbers beyond the
// largest one as infinity. Infinite where only one of the two is NaN or infinity.
template <class T>
double ulps(T x, long double exact) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  if (std::isnan(exact)) return std::isnan(x) ? 0 : kFar;
  const T rounded = static_cast<T>(exact);
  if (std::isinf(rounded)) return x == rounded ? 0 : kFar;
  if (std::abs(rounded) < kLeast<T>) return std::abs(x) <= kLeast<T> ? 0 : kFar;
  int exponent;
  std::frexp(exact, &exponent);
  const long double place = std::ldexp(1.0L, exponent - std::numeric_limits<T>::digits);
  const auto error = static_cast<double>(std::abs(static_cast<long double>(x) - exact) / place);
  return std::isnan(error) ? kFar : error;
}

// Numbers of every size and sign, infinities included. Denser where functions bend and around 1,
// for log.
template <class T>
std::vector<T> points() {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  std::vector<T> x = {0, T(-0.0), kInfinity, -kInfinity, kLeast<T>, -kLeast<T>, 1, -1};
  std::mt19937_64 engine(1);
  const auto within = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(engine);
  };
  for (const T edge : {std::log(kLeast<T>), std::log(std::numeric_limits<T>::max())})
    for (int i = -1000; i <= 1000; ++i)
      for (const T sign : {T(1), T(-1)})
        x.push_back(sign * edge * (1 + static_cast<T>(i) * std::numeric_limits<T>::epsilon()));
  const int many = on_emulated_cuda() ? 1000 : 60'000;  // it calls the host's functions
  for (int i = 0; i < many; ++i) {
    const T any = std::bit_cast<T>(static_cast<Bits>(engine()));
    if (std::isnan(any) || std::abs(any) >= kLeast<T>) x.push_back(any);
  }
  for (const double reach : {1e-6, 1e-3, 0.1, 0.5, 1.0, 3.0, 10.0, 30.0, 100.0, 800.0})
    for (int i = 0; i < many / 10; ++i) {
      x.push_back(static_cast<T>(within(-reach, reach)));
      if (reach <= 1) x.push_back(static_cast<T>(1 + within(-reach, reach)));
    }
  return x;
}

template <class T>
Tensor tensor_of(const std::vector<T>& values) {
  return Tensor::from(values, {static_cast<std::int64_t>(values.size())});
}
template <class T>
double at(Tensor (*function)(const Operand&), T x) {
  return static_cast<double>(function(tensor_of<T>({x})).template to_vector<T>()[0]);
}

}  // namespace

TEMPLATE_TEST_CASE("A function of one number is within its bound of the exact value, everywhere",
                   "", float, double) {
  using T = TestType;
  const std::vector<T> x = points<T>();
  const Tensor input = tensor_of(x);
  for (const Sample& sample : all_samples(dtype_of<T>)) {
    if (!sample.exact) continue;
    const std::vector<T> y = sample.call({input})[0].template to_vector<T>();
    double worst = 0;
    T at = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double error = ulps(y[i], sample.exact(static_cast<long double>(x[i])));
      if (error > worst) {
        worst = error;
        at = x[i];
      }
    }
    INFO(sample.name << " is " << worst << " ulp off at " << at);
    CHECK(worst <= (on_gpu() ? std::max(sample.ulps, 2.0) : sample.ulps));
  }
}

TEMPLATE_TEST_CASE("pow is within 1.5 ulp of the exact value for numbers of every size and sign",
                   "", float, double) {
  using T = TestType;
  std::vector<T> a, b;
  std::mt19937_64 engine(2);
  const auto within = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(engine);
  };
  // Results of every size: from bases of every size, from bases near 1, and from whole exponents.
  const double reach = std::log(static_cast<double>(std::numeric_limits<T>::max()));
  for (int i = 0; i < 100'000; ++i) {
    a.push_back(static_cast<T>(std::exp(within(-reach, reach))));
    a.push_back(static_cast<T>(1 + within(-1, 1) * std::exp2(within(-20, -1))));
    for (std::size_t k = a.size() - 2; k < a.size(); ++k)
      b.push_back(
          static_cast<T>(1.1 * within(-reach, reach) / std::log(static_cast<double>(a[k]))));
    a.push_back(static_cast<T>(within(-30, 30)));
    b.push_back(static_cast<T>(std::floor(within(-30, 30))));
    a.push_back(static_cast<T>(within(-3, 3)));
    b.push_back(static_cast<T>(within(-3, 3)));
  }
  const std::vector<T> y = pow(tensor_of(a), tensor_of(b)).template to_vector<T>();
  double worst = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::abs(a[i]) < kLeast<T> || std::abs(b[i]) < kLeast<T>) continue;
    const double error =
        ulps(y[i], std::pow(static_cast<long double>(a[i]), static_cast<long double>(b[i])));
    if (error > worst) {
      worst = error;
      at = i;
    }
  }
  INFO("pow is " << worst << " ulp off at " << a[at] << ", " << b[at]);
  CHECK(worst <= (on_gpu() ? 2 : 1.5));
}

TEMPLATE_TEST_CASE("Where functions are exact they are, signs of zeros included", "", float,
                   double) {
  using T = TestType;
  CHECK(at<T>(exp, 0) == 1);
  CHECK(at<T>(exp, -kInfinity) == 0);
  CHECK(at<T>(log, 1) == 0);
  CHECK(std::signbit(at<T>(tanh, T(-0.0))));
  CHECK(at<T>(tanh, kLeast<T>) == static_cast<double>(kLeast<T>));
  CHECK(at<T>(tanh, kInfinity) == 1);
  CHECK(at<T>(tanh, -kInfinity) == -1);
  for (int k = std::numeric_limits<T>::min_exponent; k < std::numeric_limits<T>::max_exponent;
       ++k) {
    CHECK(ulps(static_cast<T>(at<T>(log2, std::ldexp(T(1), k))), k) <= (on_gpu() ? 1 : 0));
    CHECK(ulps(static_cast<T>(at<T>(exp2, T(k - 1))), std::ldexp(T(1), k - 1)) <=
          (on_gpu() ? 2 : 0));
  }
  for (int k = 0; k <= 10; ++k)
    CHECK(ulps(static_cast<T>(at<T>(log10, static_cast<T>(std::pow(10, k)))), k) <=
          (on_gpu() ? 1 : 0));
  for (Tensor (*const keeps_zero)(const Operand&) :
       {expm1, log1p, sin, tan, asin, atan, sinh, asinh, atanh, erf, silu}) {
    CHECK(std::signbit(at<T>(keeps_zero, T(-0.0))));
    CHECK_FALSE(std::signbit(at<T>(keeps_zero, 0)));
    CHECK(at<T>(keeps_zero, 0) == 0);
  }
  for (const T tiny : {std::numeric_limits<T>::denorm_min(), std::numeric_limits<T>::min() / 3}) {
    if (!on_host()) break;  // on a GPU denormals count
    CHECK(at<T>(log2, tiny) == -kInfinity);
    CHECK(at<T>([](const Operand& x) { return pow(x, 0.25); }, tiny) == 0);
    CHECK(at<T>([](const Operand& x) { return pow(x, -0.1); }, -tiny) == kInfinity);
  }
  CHECK(at<T>(cos, 0) == 1);
  CHECK(at<T>(cosh, 0) == 1);
  CHECK(at<T>(acos, 1) == 0);
  CHECK(at<T>(erf, kInfinity) == 1);
  CHECK(at<T>(sigmoid, 0) == 0.5);
  CHECK(at<T>(sigmoid, kInfinity) == 1);
  CHECK(at<T>(sigmoid, -kInfinity) == 0);
}

TEMPLATE_TEST_CASE("softmax is near the exact value of likely and of unlikely classes, on any axis",
                   "", float, double) {
  using T = TestType;
  std::mt19937_64 engine(2);
  double worst = 0;
  bool vanishes = true;
  for (const std::int64_t classes : {1, 3, 8, 33, 70, on_emulated_cuda() ? 300 : 5000})
    for (const double spread : {3., 90., 1000.}) {
      constexpr std::int64_t kRows = 3;
      std::vector<T> x(static_cast<std::size_t>(kRows * classes));
      for (T& score : x)
        score = static_cast<T>(std::uniform_real_distribution<double>(-spread, spread)(engine));
      const Tensor rows = Tensor::from(x, {kRows, classes});
      for (const Tensor& result : {softmax(rows), transpose(softmax(transpose(rows), 0))}) {
        const std::vector<T> y = result.template to_vector<T>();
        for (std::size_t row = 0; row < x.size(); row += static_cast<std::size_t>(classes)) {
          const auto end = row + static_cast<std::size_t>(classes);
          long double shift = x[row], total = 0;
          for (std::size_t j = row; j < end; ++j) shift = std::max<long double>(shift, x[j]);
          for (std::size_t j = row; j < end; ++j) total += std::exp(x[j] - shift);
          // Terms of exp that would be denormal count as zero.
          for (std::size_t j = row; j < end; ++j) {
            const long double share = std::exp(x[j] - shift);
            if (share >= static_cast<long double>(kLeast<T>))
              worst = std::max(worst, ulps(y[j], share / total));
            else
              vanishes = vanishes && y[j] <= kLeast<T>;
          }
        }
      }
    }
  INFO(worst << " ulp");
  CHECK(worst <= (on_host() ? 6 : 12));
  CHECK(vanishes);
}

TEMPLATE_TEST_CASE("NaN of either sign and with any bits goes through every function of one number",
                   "", float, double) {
  using T = TestType;
  const Tensor none = tensor_of(std::vector<T>{std::numeric_limits<T>::quiet_NaN(),
                                               -std::numeric_limits<T>::quiet_NaN(),
                                               static_cast<T>(std::nan("1234567"))});
  for (const Sample& sample : all_samples(dtype_of<T>)) {
    if (!sample.exact) continue;
    INFO(sample.name);
    for (const T y : sample.call({none})[0].template to_vector<T>()) CHECK(std::isnan(y));
  }
}

TEMPLATE_TEST_CASE("tanh is odd, and sigmoid never leaves [0, 1]", "", float, double) {
  using T = TestType;
  const std::vector<T> x = points<T>();
  const Tensor input = tensor_of(x);
  const std::vector<T> y = tanh(input).template to_vector<T>(),
                       z = tanh(-input).template to_vector<T>(),
                       s = sigmoid(input).template to_vector<T>();
  bool odd = true, inside = true;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i])) continue;
    odd = odd && y[i] == -z[i] && std::abs(y[i]) <= 1;
    inside = inside && s[i] >= 0 && s[i] <= 1;
  }
  CHECK(odd);
  CHECK(inside);
}

TEST_CASE("The activations of dense and the gates of an lstm are as accurate as the functions") {
  std::vector<float> at;
  for (int i = -1600; i <= 1600; ++i) at.push_back(static_cast<float>(i) / 100);
  const auto n = static_cast<std::int64_t>(at.size());
  const auto check = [&](const Tensor& result, double (*exact)(double)) {
    const std::vector<float> values = result.to_vector<float>();
    REQUIRE(values.size() == at.size());
    double worst = 0;
    for (std::size_t i = 0; i < at.size(); ++i) {
      const double y = exact(static_cast<double>(at[i]));
      if (y != 0) worst = std::max(worst, std::abs(static_cast<double>(values[i]) / y - 1));
    }
    CHECK(worst < (on_gpu() ? 1e-6 : 5e-7));
  };
  const auto logistic = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto hyperbolic = [](double x) { return std::tanh(x); };
  const Tensor x = Tensor::from(at, {n}), none = Tensor::zeros({1, 1});
  check(sigmoid(x), logistic);
  check(tanh(x), hyperbolic);
  check(dense(none, Tensor::zeros({1, n}), x, Activation::sigmoid), logistic);
  check(dense(none, Tensor::zeros({1, n}), x, Activation::tanh), hyperbolic);

  // One step from a state of zeros: cell = sigmoid(i) tanh(g), hidden = sigmoid(o) tanh(cell).
  const Tensor gates =
      Tensor::from({{1.f, 0.f, 0.f, 0.f}, {0.f, 0.f, 1.f, 0.f}, {0.f, 0.f, 0.f, 1.f}});
  const LstmWeights weights[] = {{gates, Tensor::zeros({1, 4}), Tensor::zeros({4})}};
  const auto step = [&](const Tensor& i, const Tensor& g, const Tensor& o) {
    return lstm(reshape(stack({i, g, o}, 1), {n, 1, 3}), weights);
  };
  const Tensor open = Tensor::full({n}, 40);
  check(step(x, open, open).cell, logistic);
  check(step(open, x, open).cell, hyperbolic);
  check(step(open, open, x).hidden / std::tanh(1.0), logistic);
}

}  // namespace ebb::tests
