#include "ebb/core/kernels/linear.h"

#include <cmath>

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

double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::relu:
      return x > 0 ? x : 0;
    case Activation::tanh:
      return std::tanh(x);
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    default:
      return x;
  }
}

double derivative(Activation activation, double y) {
  switch (activation) {
    case Activation::relu:
      return y > 0;
    case Activation::tanh:
      return 1 - y * y;
    case Activation::sigmoid:
      return y * (1 - y);
    default:
      return 1;
  }
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

TEST_CASE("a batch of products is each of them, whichever axes broadcast") {
  Dice dice(4);
  for (int repeat = 0; repeat < 100; ++repeat) {
    const DType type = repeat % 2 == 0 ? DType::f32 : DType::f64;
    const std::int64_t m = size(dice, 1), n = size(dice, 1), k = size(dice, repeat);
    const bool ta = dice.integer(0, 1) == 1, tb = dice.integer(0, 1) == 1;
    // Of three axes each factor has some, others have size 1.
    std::int64_t out[3], of_a[3], of_b[3];
    for (int axis = 0; axis < 3; ++axis) {
      out[axis] = dice.integer(1, 4);
      const std::int64_t who = dice.integer(0, 3);
      of_a[axis] = who == 1 ? 1 : out[axis];
      of_b[axis] = who == 2 ? 1 : out[axis];
    }
    INFO(m << "x" << k << "x" << n << " " << ta << tb << " " << name(type));
    const auto shape = [](const std::int64_t(&batch)[3], std::int64_t rows, std::int64_t columns) {
      return Shape{batch[0], batch[1], batch[2], rows, columns};
    };
    Call call{.kernel = cpu::matmul,
              .memory = cpu::matmul_memory,
              .attributes = MatmulAttributes{.transpose_a = ta, .transpose_b = tb},
              .inputs = {dice.tensor(type, ta ? shape(of_a, k, m) : shape(of_a, m, k)),
                         dice.tensor(type, tb ? shape(of_b, n, k) : shape(of_b, k, n))},
              .outputs = {{type, shape(out, m, n)}}};
    const Values got = call.run()[0];
    const auto matrix = [](const Values& all, std::int64_t index, std::int64_t elements) {
      return values(all.spec().dtype, {elements},
                    [&](std::int64_t i) { return all.at(index * elements + i); });
    };
    std::int64_t at = 0;
    for (std::int64_t x = 0; x < out[0]; ++x)
      for (std::int64_t y = 0; y < out[1]; ++y)
        for (std::int64_t z = 0; z < out[2]; ++z, ++at) {
          const auto of = [&](const std::int64_t(&batch)[3]) {
            return ((batch[0] == 1 ? 0 : x) * batch[1] + (batch[1] == 1 ? 0 : y)) * batch[2] +
                   (batch[2] == 1 ? 0 : z);
          };
          CHECK(distance(matrix(got, at, m * n).list(),
                         product(matrix(call.inputs[0], of(of_a), m * k), ta,
                                 matrix(call.inputs[1], of(of_b), k * n), tb, m, n, k)) <
                2 * tolerance(type));
        }
  }
}

TEST_CASE("dense is a product, a bias and an activation; dense_backward its gradient") {
  Dice dice(2);
  for (int repeat = 0; repeat < 300; ++repeat) {
    const DType type = repeat % 2 == 0 ? DType::f32 : DType::f64;
    const std::int64_t outer = size(dice, 1), inner = dice.integer(1, 5), rows = outer * inner;
    const std::int64_t in = size(dice, repeat), width = size(dice, repeat);
    const auto activation = static_cast<Activation>(repeat / 2 % 4);
    const bool bias = dice.integer(0, 1) == 1;
    INFO(rows << "x" << in << "x" << width << " activation " << repeat / 2 % 4 << " bias " << bias);
    Call call{.kernel = cpu::dense,
              .memory = cpu::dense_memory,
              .attributes = DenseAttributes{.activation = activation, .bias = bias},
              .inputs = {dice.tensor(type, {outer, inner, in}), dice.tensor(type, {in, width})},
              .outputs = {{type, {outer, inner, width}}}};
    if (bias) call.inputs.push_back(dice.tensor(type, {width}));
    auto y = call.run();
    std::vector<double> expected =
        product(call.inputs[0], false, call.inputs[1], false, rows, width, in);
    for (std::size_t i = 0; i < expected.size(); ++i)
      expected[i] = activated(
          activation,
          expected[i] + (bias ? call.inputs[2].at(static_cast<std::int64_t>(i) % width) : 0));
    CHECK(distance(y[0].list(), expected) < 40 * tolerance(type));

    // Small sums cancel, and 1 - y y does: hence the room.
    const auto wants = static_cast<std::uint32_t>(dice.integer(0, 7));
    Call through{.kernel = cpu::activation_backward,
                 .attributes = ActivationAttributes{activation},
                 .inputs = {dice.tensor(type, {outer, inner, width}), y[0]},
                 .outputs = {{type, {outer, inner, width}}}};
    const auto da = activation == Activation::none ? through.inputs : through.run();
    Values dz({DType::f64, {rows, width}});
    std::vector<double> db(static_cast<std::size_t>(width)), expected_da;
    for (std::int64_t i = 0; i < rows * width; ++i) {
      dz.set(i, through.inputs[0].at(i) * derivative(activation, y[0].at(i)));
      expected_da.push_back(dz.at(i));
      db[static_cast<std::size_t>(i % width)] += dz.at(i);
    }
    CHECK(distance(da[0].list(), expected_da) < 40 * tolerance(type));
    Call back{.kernel = cpu::dense_backward,
              .memory = cpu::dense_backward_memory,
              .inputs = {call.inputs[0], call.inputs[1], da[0]},
              .outputs = {call.inputs[0].spec(), call.inputs[1].spec(), {type, {width}}},
              .without_input = ((wants & 2) == 0 ? 1u : 0u) | ((wants & 1) == 0 ? 2u : 0u),
              .without_output = ~std::uint64_t{wants}};
    const auto d = back.run();
    if ((wants & 1) != 0)
      CHECK(distance(d[0].list(), product(dz, false, call.inputs[1], true, rows, in, width)) <
            40 * tolerance(type));
    if ((wants & 2) != 0)
      CHECK(distance(d[1].list(), product(call.inputs[0], true, dz, false, in, width, rows)) <
            40 * tolerance(type));
    if ((wants & 4) != 0) CHECK(distance(d[2].list(), db) < 40 * tolerance(type));
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
    check_threads_agree({.kernel = cpu::dense_backward,
                         .memory = cpu::dense_backward_memory,
                         .inputs = {dice.tensor(type, {9000, 20}), dice.tensor(type, {20, 30}),
                                    dice.tensor(type, {9000, 30})},
                         .outputs = {{type, {9000, 20}}, {type, {20, 30}}, {type, {30}}}});
  }
}
