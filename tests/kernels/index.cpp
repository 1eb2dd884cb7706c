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
          return static_cast<double>(dice.integer(0, shape[1] - 1));
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
