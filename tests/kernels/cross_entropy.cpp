#include "ebb/core/kernels/cross_entropy.h"

#include <cmath>
#include <limits>

#include "ebb/tests/kernels/fixture.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

Values labels(Dice& dice, DType type, std::int64_t n, std::int64_t classes) {
  return values(type, {n},
                [&](std::int64_t) { return static_cast<double>(dice.integer(0, classes - 1)); });
}

}  // namespace

TEST_CASE(
    "softmax_cross_entropy and its gradient are those of the formula, however large the scores") {
  Dice dice(1);
  for (int repeat = 0; repeat < 200; ++repeat) {
    const DType type = repeat % 2 == 0 ? DType::f32 : DType::f64;
    const DType label = repeat / 2 % 2 == 0 ? DType::i32 : DType::i64;
    const std::int64_t n = dice.integer(1, 40),
                       classes = dice.integer(1, repeat % 9 == 0 ? 3000 : 40);
    const double spread = repeat % 5 == 0 ? 300 : 3, shift = repeat % 7 == 0 ? 5000 : 0;
    INFO(n << " rows of " << classes);
    Call call{.kernel = cpu::softmax_cross_entropy,
              .memory = cpu::softmax_cross_entropy_memory,
              .inputs = {dice.tensor(type, {n, classes}, shift - spread, shift + spread),
                         labels(dice, label, n, classes)},
              .outputs = {{type, {}}}};
    const auto out = call.run();
    Call back = call;
    back.kernel = cpu::softmax_cross_entropy_backward;
    back.memory = nullptr;
    back.inputs.push_back(dice.tensor(type, {}, 0.5, 2));
    back.outputs = {call.inputs[0].spec()};
    const auto gradient = back.run();
    double loss = 0;
    std::vector<double> expected;
    for (std::int64_t i = 0; i < n; ++i) {
      double largest = -1e300, sum = 0;
      for (std::int64_t j = 0; j < classes; ++j)
        largest = std::max(largest, call.inputs[0].at(i * classes + j));
      for (std::int64_t j = 0; j < classes; ++j)
        sum += std::exp(call.inputs[0].at(i * classes + j) - largest);
      const auto target = static_cast<std::int64_t>(call.inputs[1].at(i));
      loss += std::log(sum) + (largest - call.inputs[0].at(i * classes + target));
      for (std::int64_t j = 0; j < classes; ++j)
        expected.push_back(
            back.inputs[2].at(0) / static_cast<double>(n) *
            (std::exp(call.inputs[0].at(i * classes + j) - largest) / sum - (j == target)));
    }
    CHECK(std::abs(out[0].at(0) - loss / static_cast<double>(n)) <=
          2 * tolerance(type) * std::max(1.0, loss / static_cast<double>(n)));
    CHECK(distance(gradient[0].list(), expected) <
          (classes == 1 ? 1e-30 : 2 * tolerance(type)) + (spread > 100 ? tolerance(type) * 30 : 0));
  }
}

TEST_CASE("The loss is the same bits for any number of threads") {
  Dice dice(3);
  Call call{.kernel = cpu::softmax_cross_entropy,
            .memory = cpu::softmax_cross_entropy_memory,
            .inputs = {dice.tensor(DType::f32, {9000, 37}), labels(dice, DType::i32, 9000, 37)},
            .outputs = {{DType::f32, {}}}};
  check_threads_agree(call);
}
