#include <cmath>

#include "ebb/core/kernels/cross_entropy.h"
#include "ebb/core/kernels/softmax.h"
#include "ebb/tests/infinity.h"
#include "ebb/tests/kernels/fixture.h"
#include "ebb/tests/kernels/ulps.h"

using namespace ebb;
using namespace ebb::tests;

TEMPLATE_TEST_CASE("softmax is within 6 ulp of the exact value, of likely and of unlikely classes",
                   "", float, double) {
  using T = TestType;
  Dice dice(2);
  double worst = 0;
  bool vanishes = true;
  for (int repeat = 0; repeat < 300; ++repeat) {
    const std::int64_t rows = dice.integer(1, 9),
                       classes = dice.integer(1, repeat % 9 == 0 ? 5000 : 70);
    const double spread = repeat % 3 == 0 ? 90 : repeat % 3 == 1 ? 3 : 1000;
    Call call{.kernel = cpu::softmax,
              .inputs = {dice.tensor(dtype_of<T>, {rows, classes}, -spread, spread)},
              .outputs = {{dtype_of<T>, {rows, classes}}}};
    const auto y = call.run();
    for (std::int64_t row = 0; row < rows * classes; row += classes) {
      const auto score = [&](std::int64_t j) {
        return static_cast<long double>(call.inputs[0].at(row + j));
      };
      long double shift = score(0), total = 0;
      for (std::int64_t j = 1; j < classes; ++j) shift = std::max(shift, score(j));
      for (std::int64_t j = 0; j < classes; ++j) total += std::exp(score(j) - shift);
      // Where exp is a denormal it counts as zero.
      for (std::int64_t j = 0; j < classes; ++j) {
        const long double exact = std::exp(score(j) - shift) / total;
        if (exact * total >= static_cast<long double>(kLeast<T>))
          worst = std::max(worst, ulps(static_cast<T>(y[0].at(row + j)), exact));
        else
          vanishes = vanishes && y[0].at(row + j) <= static_cast<double>(kLeast<T>);
      }
    }
    Buffer buffer = call.inputs[0].buffer();
    REQUIRE(cpu::softmax(
                {.inputs = {&buffer, 1}, .outputs = {&buffer, 1}, .attributes = &call.attributes})
                .ok());
    CHECK(call.inputs[0].same_bits(y[0]));
  }
  INFO(worst << " ulp");
  CHECK(worst <= 6);
  CHECK(vanishes);
}

TEMPLATE_TEST_CASE("softmax and its loss find the largest score wherever it stands", "", float,
                   double) {
  using T = TestType;
  for (std::int64_t classes : {1, 2, 7, 8, 9, 15, 16, 17, 33, 70})
    for (std::int64_t largest = 0; largest < classes; ++largest) {
      // Both are wrong if the shift is another's score: exp(900) is infinite, and exp(-900) is 0.
      Call call{.kernel = cpu::softmax,
                .inputs = {values(dtype_of<T>, {1, classes},
                                  [=](std::int64_t i) { return i == largest ? 900 : -900; })},
                .outputs = {{dtype_of<T>, {1, classes}}}};
      const auto p = call.run();
      for (std::int64_t i = 0; i < classes; ++i) CHECK(p[0].at(i) == (i == largest ? 1 : 0));
      call.kernel = cpu::softmax_cross_entropy;
      call.memory = cpu::softmax_cross_entropy_memory;
      call.inputs.push_back(
          values(DType::i32, {1}, [=](std::int64_t) { return static_cast<double>(largest); }));
      call.outputs = {{dtype_of<T>, {}}};
      CHECK(call.run()[0].at(0) == 0);
    }
}

TEMPLATE_TEST_CASE("softmax of huge scores is finite, and of infinite ones what the formula says",
                   "", float, double) {
  using T = TestType;
  const double huge = static_cast<double>(std::numeric_limits<T>::max()) * 0.9,
               infinity = kInfinity;
  const auto softmax = [](std::vector<double> scores) {
    Call call{
        .kernel = cpu::softmax,
        .inputs = {values(dtype_of<T>, {static_cast<std::int64_t>(scores.size())},
                          [&](std::int64_t i) { return scores[static_cast<std::size_t>(i)]; })},
        .outputs = {{dtype_of<T>, {static_cast<std::int64_t>(scores.size())}}}};
    return call.run()[0].list();
  };
  using Doubles = std::vector<double>;
  CHECK(softmax({-huge, huge, -huge, huge}) == Doubles{0, 0.5, 0, 0.5});
  CHECK(softmax({-huge, -huge}) == Doubles{0.5, 0.5});
  CHECK(softmax({1, -infinity, 1}) == Doubles{0.5, 0, 0.5});
  CHECK(softmax({-infinity, -huge}) == Doubles{0, 1});
  for (const double bad : {infinity, std::nan("")})
    for (const double p : softmax({1, bad, bad})) CHECK((std::isnan(p) || p == 0));
  CHECK(std::isnan(softmax({1, infinity})[1]));
  for (const double p : softmax({1, std::nan(""), 2})) CHECK(std::isnan(p));
  for (const double p : softmax({-infinity, -infinity})) CHECK(std::isnan(p));
}

TEST_CASE("softmax is the same bits for any number of threads") {
  Dice dice(3);
  check_threads_agree({.kernel = cpu::softmax,
                       .inputs = {dice.tensor(DType::f32, {9000, 37}, -20, 20)},
                       .outputs = {{DType::f32, {9000, 37}}}});
}
