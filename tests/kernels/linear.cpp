#include "ebb/core/kernels/linear.h"

#include "ebb/tests/kernels/fixture.h"

using namespace ebb;
using namespace ebb::tests;

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
