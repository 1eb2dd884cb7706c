// where(): NaN, memory, refusals.
#include "ebb/core/ops/where.h"

#include <cmath>

#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/ops/comparison.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/infinity.h"
#include "ebb/tests/ops/refuses.h"

namespace ebb::tests {
namespace {

using Floats = std::vector<float>;

Tensor flags(const std::vector<std::uint8_t>& values, const Shape& shape) {
  return cast(Tensor::from(values, shape), DType::boolean);
}

}  // namespace

TEST_CASE("The side that is not taken has the gradient 0, even where its own would be NaN") {
  const Tensor a = Tensor::from({1.f, 2.f}).with_grad(), b = Tensor::from({3.f, 4.f}).with_grad();
  const Tensor condition = flags({1, 0}, {2});
  sum(where(condition, a, b) * Tensor::from({kNaN, 5.f})).backward();
  CHECK(std::isnan(a.grad().to_vector<float>()[0]));
  CHECK(a.grad().to_vector<float>()[1] == 0);
  CHECK(b.grad().to_vector<float>() == Floats{0, 5});
}

TEST_CASE("A temporary that is chosen from gives its memory to the result") {
  const Tensor x = Tensor::full({1000}, -1), condition = x > 0;
  Tensor y = x * 2;
  memory::CachingAllocator& allocator = x.device().runtime().allocator();
  allocator.reset_peaks();
  const std::size_t before = allocator.stats().requested.current;
  y = where(condition, x, std::move(y));
  CHECK(allocator.stats().requested.peak == before);
  CHECK(y.to_vector<float>() == Floats(1000, -2));
}

TEST_CASE("where and masked_fill refuse what they cannot take, in words and by line") {
  const Tensor x = Tensor::zeros({2, 3}), on = x > 0, whole = cast(x, DType::i32);
  EBB_REFUSES(where(x, x, x), ShapeError, "[where] takes a condition of bool (a comparison gives");
  EBB_REFUSES(where(on, x, whole), ShapeError, "[where] takes inputs of one dtype to choose from");
  EBB_REFUSES(where(on, x, Tensor::zeros({2})), ShapeError, "[where] shapes do not broadcast");
  EBB_REFUSES(where(on, 1, 0), Error, "[where] takes at least one tensor to choose from");
  EBB_REFUSES(where(1, x, 0), Error, "[where] takes a tensor here, not a number");
  EBB_REFUSES(where(on, whole, 2.5), ShapeError,
              "[where] i32 does not have the number 2.5; inputs are bool[2, 3], i32[2, 3]");
  EBB_REFUSES(where(on, whole, 0x1p31), ShapeError, "i32 does not have the number 2147483648");
  EBB_REFUSES(where(on, -1, cast(x, DType::u8)), ShapeError, "u8 does not have the number -1");
  EBB_REFUSES(where(on, on, 2), ShapeError, "bool does not have the number 2");
  EBB_REFUSES(masked_fill(whole, on, kNaN), ShapeError,
              "[masked_fill] i32 does not have the number nan");
  EBB_REFUSES(masked_fill(Tensor::zeros({3}), on, 1), ShapeError,
              "[masked_fill] the mask does not broadcast to the other input");
}

}  // namespace ebb::tests
