#include "ebb/core/kernels/index.h"

#include "ebb/tests/kernels/fixture.h"

using namespace ebb;
using namespace ebb::tests;

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
