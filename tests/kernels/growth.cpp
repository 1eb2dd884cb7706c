// Kernel time grows in proportion to the work. Runs use one thread, so that one thread's CPU time
// is all of it.
#include "ebb/core/kernels/index.h"
#include "ebb/core/ops/create.h"
#include "ebb/core/ops/index.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/cpu_time.h"
#include "ebb/tests/kernels/threads.h"

namespace ebb::tests {
namespace {

// Time of adding elements or rows by index along the first axis, relative to the time of taking
// them.
double ratio(const OpDef& take, const OpDef& add, const Shape& table, const Shape& numbers,
             const Shape& taken) {
  const Tensor number = randint(0, table[0], numbers), all = Tensor::zeros(table),
               some = Tensor::zeros(taken);
  const IndexAttributes axis{0};
  const double forward = least_seconds([&] { apply_one(take, {all, number}, axis, {}); });
  return least_seconds([&] { apply_one(add, {some, number, all}, axis, {}); }) / forward;
}

}  // namespace

// When each 128 KiB of the sums scanned all indices, the ratios were 17 and 40.
TEST_CASE("What is added by number takes as long as to take it, however large the sums are") {
  const Threads one(1);
  CHECK(ratio(gather_op, gather_backward_op, {512, 1024}, {512, 1024}, {512, 1024}) < 6);
  const std::int64_t rows = 1 << 17;
  CHECK(ratio(index_select_op, index_select_backward_op, {rows, 16}, {rows / 4}, {rows / 4, 16}) <
        10);
}

}  // namespace ebb::tests
