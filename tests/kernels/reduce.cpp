#include "ebb/core/kernels/reduce.h"

#include "ebb/tests/kernels/fixture.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

Shape random_shape(Dice& dice, int repeat) {
  Shape shape;
  for (std::int64_t axes = dice.integer(0, 5); axes > 0; --axes)
    shape.push_back(dice.integer(0, 12) == 0 ? dice.integer(0, 1)
                                             : dice.integer(1, repeat % 10 == 0 ? 12 : 5));
  const Shape large[] = {{300'000},  {70'000, 10},  {10, 70'000},
                         {300, 700}, {129, 5, 200}, {7, 1000, 65}};
  if (repeat % 12 == 5) shape = large[repeat / 12 % 6];
  return shape;
}

std::uint32_t random_axes(Dice& dice, const Shape& shape) {
  return static_cast<std::uint32_t>(dice.integer(0, (1 << shape.rank()) - 1));
}

Shape reduced(const Shape& shape, const Reduction& reduction) {
  Shape out;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if ((reduction.axes >> axis & 1) == 0)
      out.push_back(shape[axis]);
    else if (reduction.keep != 0)
      out.push_back(1);
  }
  return out;
}

// The element of the reduced tensor that an element of the whole belongs to.
std::size_t target(std::int64_t index, const Shape& shape, std::uint32_t axes) {
  std::size_t at = 0, step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    const std::int64_t i = index % shape[axis];
    index /= shape[axis];
    if ((axes >> axis & 1) != 0) continue;
    at += static_cast<std::size_t>(i) * step;
    step *= static_cast<std::size_t>(shape[axis]);
  }
  return at;
}

// In long double: one after the other in double would be less exact than the kernels.
std::vector<double> summed(const Values& in, std::uint32_t axes, std::int64_t results) {
  std::vector<long double> sums(static_cast<std::size_t>(results));
  for (std::int64_t i = 0; i < in.elements(); ++i)
    sums[target(i, in.spec().shape, axes)] += in.at(i);
  std::vector<double> rounded;
  for (long double sum : sums) rounded.push_back(static_cast<double>(sum));
  return rounded;
}

}  // namespace

TEST_CASE("sum adds up any axes of any shape, and mean divides by their number") {
  Dice dice(1);
  for (int repeat = 0; repeat < 500; ++repeat) {
    const DType type = repeat % 2 == 0 ? DType::f32 : DType::f64;
    const Shape shape = random_shape(dice, repeat);
    const Reduction reduction{.axes = random_axes(dice, shape),
                              .keep = static_cast<std::uint8_t>(dice.integer(0, 1)),
                              .mean = static_cast<std::uint8_t>(dice.integer(0, 1))};
    INFO(shape.to_string() << " axes " << reduction.axes);
    Call call{.kernel = cpu::sum,
              .memory = cpu::sum_memory,
              .attributes = reduction,
              .inputs = {dice.tensor(type, shape, 0, 1)},
              .outputs = {{type, reduced(shape, reduction)}}};
    const auto out = call.run();
    std::vector<double> expected = summed(call.inputs[0], reduction.axes, out[0].elements());
    if (reduction.mean != 0 && shape.elements() > 0)
      for (double& x : expected)
        x *= static_cast<double>(out[0].elements()) / static_cast<double>(shape.elements());
    if (reduction.mean == 0 || shape.elements() > 0)
      CHECK(distance(out[0].list(), expected) < tolerance(type));
  }
}

TEST_CASE("Rows of every short length are summed exactly, whatever row they are") {
  for (DType type : {DType::f32, DType::f64})
    for (std::int64_t n = 1; n <= 70; ++n)
      for (std::int64_t rows : {1, 2, 7, 8, 9, 15, 17, 40}) {
        Call call{.kernel = cpu::sum,
                  .memory = cpu::sum_memory,
                  .attributes = Reduction{.axes = 2},
                  .inputs = {values(type, {rows, n},
                                    [](std::int64_t i) { return static_cast<double>(i % 101); })},
                  .outputs = {{type, {rows}}}};
        CHECK(call.run()[0].list() == summed(call.inputs[0], 2, rows));
      }
}

TEST_CASE("A sum of a hundred million equal floats would not stand still") {
  // Added one after the other in f32, sixteen million ones and one more stay sixteen million.
  const std::int64_t n = (1 << 24) + 4096;
  Call call{.kernel = cpu::sum,
            .memory = cpu::sum_memory,
            .attributes = Reduction{.axes = 1},
            .inputs = {values(DType::f32, {n}, [](std::int64_t) { return 1; })},
            .outputs = {{DType::f32, {}}}};
  CHECK(call.run()[0].at(0) == static_cast<double>(n));
}

TEST_CASE("sum_like undoes a broadcast") {
  Dice dice(2);
  for (int repeat = 0; repeat < 300; ++repeat) {
    const DType type = repeat % 2 == 0 ? DType::f32 : DType::f64;
    const Shape shape = random_shape(dice, repeat);
    std::uint32_t axes = random_axes(dice, shape);
    const auto left_out = static_cast<int>(dice.integer(0, shape.rank()));
    Shape to;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (axis < left_out)
        axes |= 1u << axis;
      else
        to.push_back((axes >> axis & 1) != 0 ? 1 : shape[axis]);
    }
    INFO(shape.to_string() << " to " << to.to_string());
    Call call{.kernel = cpu::sum_like,
              .memory = cpu::sum_like_memory,
              .inputs = {dice.tensor(type, shape, 0, 1), Values({type, to})},
              .outputs = {{type, to}},
              .without_input = 2};
    const auto out = call.run();
    CHECK(distance(out[0].list(), summed(call.inputs[0], axes, to.elements())) < tolerance(type));
  }
}

TEST_CASE("broadcast_like is the transpose of sum") {
  Dice dice(3);
  for (int repeat = 0; repeat < 300; ++repeat) {
    const DType type = repeat % 2 == 0 ? DType::f32 : DType::f64;
    const Shape shape = random_shape(dice, repeat);
    const Reduction reduction{.axes = random_axes(dice, shape),
                              .keep = static_cast<std::uint8_t>(dice.integer(0, 1)),
                              .mean = static_cast<std::uint8_t>(dice.integer(0, 1))};
    INFO(shape.to_string() << " axes " << reduction.axes);
    Call call{.kernel = cpu::broadcast_like,
              .attributes = reduction,
              .inputs = {dice.tensor(type, reduced(shape, reduction)), Values({type, shape})},
              .outputs = {{type, shape}},
              .without_input = 2};
    const auto out = call.run();
    const double divisor = reduction.mean == 0 || shape.elements() == 0
                               ? 1
                               : static_cast<double>(shape.elements()) /
                                     static_cast<double>(call.inputs[0].elements());
    std::vector<double> expected;
    for (std::int64_t i = 0; i < shape.elements(); ++i)
      expected.push_back(
          call.inputs[0].at(static_cast<std::int64_t>(target(i, shape, reduction.axes))) / divisor);
    CHECK(distance(out[0].list(), expected) < tolerance(type));
  }
}

TEST_CASE("Sums are the same bits for any number of threads") {
  Dice dice(4);
  for (const Shape& shape : {Shape{1'000'003}, Shape{100'000, 10}, Shape{50'001, 3},
                             Shape{512, 700}, Shape{20, 300, 70}, Shape{300, 40, 5}})
    for (std::uint32_t axes = 0; axes < 1u << shape.rank(); ++axes)
      check_threads_agree({.kernel = cpu::sum,
                           .memory = cpu::sum_memory,
                           .attributes = Reduction{.axes = axes},
                           .inputs = {dice.tensor(DType::f32, shape)},
                           .outputs = {{DType::f32, reduced(shape, {.axes = axes})}}});
}
