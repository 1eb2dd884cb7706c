// The time of kernels grows as their work does. Of one thread, so that it is the same thread's.
#include "ebb/core/kernels/index.h"
#include "ebb/tests/cpu_time.h"
#include "ebb/tests/kernels/fixture.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

double seconds_of(Call call) {
  return least_seconds([&] { call.run(); });
}

Values indices(std::int64_t size, const Shape& shape) {
  Dice dice(3);
  return values(DType::i64, shape,
                [&](std::int64_t) { return static_cast<double>(dice.integer(0, size - 1)); });
}

// What takes elements or rows by number, along the first axis, and its gradient.
struct Times {
  double forward, backward;

  Times(Kernel take, Kernel add, const Shape& table, const Shape& numbers, const Shape& taken) {
    const Values number = indices(table[0], numbers);
    const Spec all{DType::f32, table}, some{DType::f32, taken};
    const auto zeros = [](const Spec& spec) {
      return values(spec.dtype, spec.shape, [](std::int64_t) { return 0.0; });
    };
    forward = seconds_of({.kernel = take,
                          .attributes = IndexAttributes{0},
                          .inputs = {zeros(all), number},
                          .outputs = {some}});
    backward = seconds_of({.kernel = add,
                           .attributes = IndexAttributes{0},
                           .inputs = {zeros(some), number, Values(all)},
                           .outputs = {all},
                           .without_input = 1u << 2});
  }
};

}  // namespace

// With a look for each 128 KiB of the sums, it was 17 times and 40 times that.
TEST_CASE("what is added by number takes as long as to take it, however large the sums are") {
  const Threads one(1);
  const Times elements(cpu::gather, cpu::gather_backward, {512, 1024}, {512, 1024}, {512, 1024});
  CHECK(elements.backward < 6 * elements.forward);
  const std::int64_t rows = 1 << 17;
  const Times parts(cpu::index_select, cpu::index_select_backward, {rows, 16}, {rows / 4},
                    {rows / 4, 16});
  CHECK(parts.backward < 10 * parts.forward);
}
