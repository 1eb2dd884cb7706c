#include "ebb/core/kernels/index.h"

#include "ebb/tests/kernels/fixture.h"

using namespace ebb;
using namespace ebb::tests;

// Cut along the axis, along what is behind it, and not at all.
TEST_CASE("what is added by number is the same bits for any number of threads") {
  Dice dice(8);
  for (const Shape& shape : {Shape{1, 70'000, 1}, Shape{1, 9000, 17}, Shape{2, 300, 500},
                             Shape{1, 3, 40'000}, Shape{500, 70, 2}})
    for (const std::int64_t chosen : {0, 1, 40}) {
      CAPTURE(shape.to_string(), chosen);
      const Shape parts{shape[0], chosen, shape[2]};
      const auto numbers = [&](const Shape& of) {
        return values(DType::i64, of, [&](std::int64_t) {
          return static_cast<double>(dice.integer(-1, shape[1]));
        });
      };
      const auto call = [&](Kernel kernel, const Shape& of) {
        return Call{
            .kernel = kernel,
            .attributes = IndexAttributes{1},
            .inputs = {dice.tensor(DType::f32, parts), numbers(of), Values({DType::f32, shape})},
            .outputs = {{DType::f32, shape}},
            .without_input = 1u << 2};
      };
      check_threads_agree(call(cpu::gather_backward, parts));
      check_threads_agree(call(cpu::index_select_backward, {chosen}));
    }
}

TEST_CASE("an index out of range is added nowhere, behind the last row neither") {
  const std::vector<double> places = {0, 3, -1, 2, 4, 3};
  const Values dy =
      values(DType::f64, {6, 2}, [](std::int64_t i) { return static_cast<double>(i + 1); });
  const std::vector<double> expected = {1, 2, 0, 0, 7, 8};
  Call of_rows{
      .kernel = cpu::index_select_backward,
      .memory = cpu::index_select_backward_memory,
      .attributes = IndexAttributes{0},
      .inputs = {dy,
                 values(DType::i64, {6},
                        [&](std::int64_t i) { return places[static_cast<std::size_t>(i)]; }),
                 Values({DType::f64, {3, 2}})},
      .outputs = {{DType::f64, {3, 2}}},
      .without_input = 4};
  CHECK(of_rows.run()[0].list() == expected);
  Call of_elements = of_rows;
  of_elements.kernel = cpu::gather_backward;
  of_elements.memory = cpu::gather_backward_memory;
  of_elements.inputs[1] = values(
      DType::i64, {6, 2}, [&](std::int64_t i) { return places[static_cast<std::size_t>(i / 2)]; });
  CHECK(of_elements.run()[0].list() == expected);
}
