// How far exp, log, tanh and sigmoid are from the exact values: the bounds of core/ops/pointwise.h.
#include <bit>
#include <cmath>
#include <limits>

#include "ebb/core/kernels/functors.h"
#include "ebb/core/kernels/pointwise.h"
#include "ebb/tests/kernels/fixture.h"
#include "ebb/tests/kernels/ulps.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

struct Function {
  const char* name;
  Kernel kernel;
  long double (*exact)(long double);
  double bound;
};

const Function functions[] = {
    {"exp", cpu::map<functors::Exp>, [](long double x) { return std::exp(x); }, 1.5},
    {"log", cpu::map<functors::Log>, [](long double x) { return std::log(x); }, 1.5},
    {"tanh", cpu::map<functors::Tanh>, [](long double x) { return std::tanh(x); }, 3},
    {"sigmoid", cpu::map<functors::Sigmoid>, [](long double x) { return 1 / (1 + std::exp(-x)); },
     3},
};

// Numbers of every size and sign, the infinities among them; many where functions bend, and log's
// surroundings of 1.
template <class T>
std::vector<T> points() {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  std::vector<T> x = {0, T(-0.0), kInfinity<T>, -kInfinity<T>, kLeast<T>, -kLeast<T>, 1, -1};
  Dice dice(1);
  for (const T edge : {std::log(kLeast<T>), std::log(std::numeric_limits<T>::max())})
    for (int i = -1000; i <= 1000; ++i)
      for (const T sign : {T(1), T(-1)})
        x.push_back(sign * edge * (1 + static_cast<T>(i) * std::numeric_limits<T>::epsilon()));
  for (int i = 0; i < 300'000; ++i) {
    const T any = std::bit_cast<T>(
        static_cast<Bits>(static_cast<std::uint64_t>(dice.engine()) << 32 | dice.engine()));
    if (std::isnan(any) || std::abs(any) >= kLeast<T>) x.push_back(any);
  }
  for (const double reach : {1e-6, 1e-3, 0.1, 0.5, 1.0, 3.0, 10.0, 30.0, 100.0, 800.0})
    for (int i = 0; i < 30'000; ++i) {
      x.push_back(static_cast<T>(dice.real(-reach, reach)));
      if (reach <= 1) x.push_back(static_cast<T>(1 + dice.real(-reach, reach)));
    }
  return x;
}

template <class T>
Values values_of(const std::vector<T>& list) {
  Values x({dtype_of<T>, {static_cast<std::int64_t>(list.size())}});
  std::copy(list.begin(), list.end(), x.as<T>());
  return x;
}

}  // namespace

TEMPLATE_TEST_CASE("exp and log are within 1.5 ulp of the exact value, tanh and sigmoid within 3",
                   "", float, double) {
  using T = TestType;
  const std::vector<T> x = points<T>();
  for (const Function& function : functions) {
    Call call{.kernel = function.kernel,
              .inputs = {values_of(x)},
              .outputs = {{dtype_of<T>, {static_cast<std::int64_t>(x.size())}}}};
    const auto y = call.run();
    double worst = 0;
    T at = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double error = ulps(static_cast<T>(y[0].at(static_cast<std::int64_t>(i))),
                                function.exact(static_cast<long double>(x[i])));
      if (error > worst) {
        worst = error;
        at = x[i];
      }
    }
    INFO(function.name << " is " << worst << " ulp off at " << at);
    CHECK(worst <= function.bound);
  }
}

TEMPLATE_TEST_CASE("At zero and beyond all numbers functions have their limits, signs included", "",
                   float, double) {
  using T = TestType;
  const auto at = [](Kernel kernel, T x) {
    Call call{.kernel = kernel, .inputs = {scalar(x)}, .outputs = {{dtype_of<T>, {}}}};
    return call.run()[0].at(0);
  };
  const double infinity = kInfinity<double>;
  const auto exp = cpu::map<functors::Exp>, log = cpu::map<functors::Log>;
  const auto tanh = cpu::map<functors::Tanh>, sigmoid = cpu::map<functors::Sigmoid>;
  CHECK(at(exp, 0) == 1);
  CHECK(at(exp, kInfinity<T>) == infinity);
  CHECK(at(exp, -kInfinity<T>) == 0);
  CHECK(at(log, 1) == 0);
  CHECK(at(log, 0) == -infinity);
  CHECK(at(log, T(-0.0)) == -infinity);
  CHECK(at(log, kInfinity<T>) == infinity);
  CHECK(std::isnan(at(log, -1)));
  CHECK(std::isnan(at(log, -kInfinity<T>)));
  CHECK(std::signbit(at(tanh, T(-0.0))));
  CHECK(at(tanh, kLeast<T>) == static_cast<double>(kLeast<T>));
  CHECK(at(tanh, kInfinity<T>) == 1);
  CHECK(at(tanh, -kInfinity<T>) == -1);
  CHECK(at(sigmoid, 0) == 0.5);
  CHECK(at(sigmoid, kInfinity<T>) == 1);
  CHECK(at(sigmoid, -kInfinity<T>) == 0);
  for (const Function& function : functions)
    for (const T nan : {std::numeric_limits<T>::quiet_NaN(), -std::numeric_limits<T>::quiet_NaN(),
                        static_cast<T>(std::nan("1234567"))})
      CHECK(std::isnan(at(function.kernel, nan)));
}

TEMPLATE_TEST_CASE("tanh is odd, and sigmoid never leaves [0, 1]", "", float, double) {
  using T = TestType;
  std::vector<T> x = points<T>(), opposite = x;
  for (T& value : opposite) value = -value;
  const auto run = [](Kernel kernel, const std::vector<T>& list) {
    Call call{.kernel = kernel,
              .inputs = {values_of(list)},
              .outputs = {{dtype_of<T>, {static_cast<std::int64_t>(list.size())}}}};
    return call.run()[0].list();
  };
  const auto y = run(cpu::map<functors::Tanh>, x), z = run(cpu::map<functors::Tanh>, opposite);
  const auto s = run(cpu::map<functors::Sigmoid>, x);
  bool odd = true, inside = true;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i])) continue;
    odd = odd && y[i] == -z[i] && std::abs(y[i]) <= 1;
    inside = inside && s[i] >= 0 && s[i] <= 1;
  }
  CHECK(odd);
  CHECK(inside);
}
