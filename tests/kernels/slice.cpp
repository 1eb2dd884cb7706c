#include "ebb/core/kernels/slice.h"

#include "ebb/tests/kernels/fixture.h"

using namespace ebb;
using namespace ebb::tests;

TEST_CASE("select takes an index along an axis, and select_backward puts it back among zeros") {
  Dice dice(1);
  for (int repeat = 0; repeat < 200; ++repeat) {
    const DType types[] = {DType::f32, DType::f64, DType::i32, DType::u8};
    const DType type = types[repeat % 4];
    Shape shape;
    for (std::int64_t axes = dice.integer(1, 5); axes > 0; --axes)
      shape.push_back(dice.integer(1, 6));
    if (repeat % 20 == 3) shape = {400, 3, 200};
    const std::int64_t axis = dice.integer(0, shape.rank() - 1);
    const std::int64_t n = shape[static_cast<int>(axis)], index = dice.integer(0, n - 1);
    Shape rest;
    std::int64_t inner = 1;
    for (int i = 0; i < shape.rank(); ++i) {
      if (i != axis) rest.push_back(shape[i]);
      if (i > axis) inner *= shape[i];
    }
    const bool from_end = dice.integer(0, 1) == 1;
    Call call{.kernel = cpu::select,
              .attributes = SelectAttributes{axis, from_end ? index - n : index},
              .inputs = {dice.tensor(type, shape, 0, 100)},
              .outputs = {{type, rest}}};
    const auto out = call.run();
    Call back = call;
    back.kernel = cpu::select_backward;
    back.inputs = {out[0], Values(call.inputs[0].spec())};
    back.without_input = 2;
    back.outputs = {call.inputs[0].spec()};
    const auto zeros = back.run();
    bool right = true;
    for (std::int64_t i = 0; i < shape.elements(); ++i) {
      const bool chosen = i / inner % n == index;
      right = right && zeros[0].at(i) == (chosen ? call.inputs[0].at(i) : 0);
      if (chosen)
        right = right && out[0].at(i / (inner * n) * inner + i % inner) == call.inputs[0].at(i);
    }
    CHECK(right);
  }
}

TEST_CASE("size is a dimension of a tensor whose values it does not need") {
  for (const std::int64_t axis : {0, 1}) {
    Call call{.kernel = cpu::size,
              .attributes = SizeAttributes{axis},
              .inputs = {Values({DType::f32, {7, 3}})},
              .outputs = {{DType::i64, {}}},
              .without_input = 1};
    CHECK(call.run()[0].at(0) == (axis == 0 ? 7 : 3));
  }
}

TEST_CASE("strided_slice walks an axis in steps, and slice_backward walks it the other way round") {
  Dice dice(2);
  for (int repeat = 0; repeat < 300; ++repeat) {
    const DType types[] = {DType::f32, DType::f64, DType::i32, DType::u8};
    const DType type = types[repeat % 4];
    Shape shape;
    for (std::int64_t axes = dice.integer(1, kMaxRank); axes > 0; --axes)
      shape.push_back(dice.integer(1, 5));
    const std::int64_t axis = dice.integer(0, shape.rank() - 1);
    if (repeat % 20 == 3) shape.set(static_cast<int>(axis), 3000);
    const std::int64_t n = shape[static_cast<int>(axis)];
    const std::int64_t low = dice.integer(0, n - 1), high = dice.integer(low, n - 1);
    SliceAttributes slice{low, high + 1, axis, dice.integer(1, 3)};
    if (dice.integer(0, 1) == 1) slice = {high, low - 1 - n, axis, -slice.step};
    if (slice.step < 0 && low == 0 && dice.integer(0, 1) == 1) slice.end = slice.kToTheEnd;
    std::vector<std::int64_t> taken;  // along the axis
    for (std::int64_t i = slice.begin; i >= low && i <= high; i += slice.step) taken.push_back(i);
    Shape part = shape;
    part.set(static_cast<int>(axis), static_cast<std::int64_t>(taken.size()));
    Call call{.kernel = cpu::strided_slice,
              .attributes = slice,
              .inputs = {dice.tensor(type, shape, 1, 100)},
              .outputs = {{type, part}}};
    const auto out = call.run();
    Call back{.kernel = cpu::slice_backward,
              .attributes = slice,
              .inputs = {out[0], Values(call.inputs[0].spec())},
              .outputs = {call.inputs[0].spec()},
              .without_input = 2};
    const auto zeros = back.run();
    std::int64_t inner = 1;
    for (int i = static_cast<int>(axis) + 1; i < shape.rank(); ++i) inner *= shape[i];
    bool right = true;
    for (std::int64_t i = 0; i < shape.elements(); ++i) {
      const auto found = std::find(taken.begin(), taken.end(), i / inner % n);
      right = right && zeros[0].at(i) == (found != taken.end() ? call.inputs[0].at(i) : 0);
      if (found == taken.end()) continue;
      const std::int64_t row = i / (inner * n) * part[static_cast<int>(axis)];
      right = right && out[0].at((row + (found - taken.begin())) * inner + i % inner) ==
                           call.inputs[0].at(i);
    }
    CHECK(right);
    if (repeat % 50 == 3) check_threads_agree(back);
  }
}
