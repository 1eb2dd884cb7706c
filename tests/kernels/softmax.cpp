#include <cmath>

#include "ebb/core/kernels/softmax.h"
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
