#include "ebb/core/kernels/linear.h"

#include "ebb/tests/kernels/fixture.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

std::vector<double> product(const Values& a, bool transpose_a, const Values& b, bool transpose_b,
                            std::int64_t m, std::int64_t n, std::int64_t k) {
  std::vector<double> c;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < k; ++l)
        sum +=
            a.at(transpose_a ? l * m + i : i * k + l) * b.at(transpose_b ? j * k + l : l * n + j);
      c.push_back(sum);
    }
  return c;
}

std::int64_t size(Dice& dice, int repeat) {
  return dice.integer(0, 15) == 0 ? dice.integer(0, 1)
                                  : dice.integer(1, repeat % 8 == 0 ? 150 : 20);
}

}  // namespace

TEST_CASE("matmul multiplies matrices of any size, transposed or not") {
  Dice dice(1);
  for (int repeat = 0; repeat < 300; ++repeat) {
    const DType type = repeat % 2 == 0 ? DType::f32 : DType::f64;
    std::int64_t m = size(dice, repeat), n = size(dice, repeat), k = size(dice, repeat);
    if (repeat == 298 || repeat == 299) m = 520, n = 300, k = 40;
    const bool ta = dice.integer(0, 1) == 1, tb = dice.integer(0, 1) == 1;
    INFO(m << "x" << k << "x" << n << " " << ta << tb << " " << name(type));
    Call call{.kernel = cpu::matmul,
              .memory = cpu::matmul_memory,
              .attributes = MatmulAttributes{.transpose_a = ta, .transpose_b = tb},
              .inputs = {dice.tensor(type, ta ? Shape{k, m} : Shape{m, k}),
                         dice.tensor(type, tb ? Shape{n, k} : Shape{k, n})},
              .outputs = {{type, {m, n}}}};
    const auto out = call.run();
    CHECK(distance(out[0].list(), product(call.inputs[0], ta, call.inputs[1], tb, m, n, k)) <
          2 * tolerance(type));
  }
}

TEST_CASE("Products are the same bits for any number of threads") {
  Dice dice(3);
  for (DType type : {DType::f32, DType::f64}) {
    check_threads_agree({.kernel = cpu::matmul,
                         .memory = cpu::matmul_memory,
                         .attributes = MatmulAttributes{},
                         .inputs = {dice.tensor(type, {700, 90}), dice.tensor(type, {90, 530})},
                         .outputs = {{type, {700, 530}}}});
    for (const std::int64_t rows : {7, 300})
      check_threads_agree(
          {.kernel = cpu::matmul,
           .memory = cpu::matmul_memory,
           .attributes = MatmulAttributes{},
           .inputs = {dice.tensor(type, {40, rows, 90}), dice.tensor(type, {40, 90, rows})},
           .outputs = {{type, {40, rows, rows}}}});
  }
}
