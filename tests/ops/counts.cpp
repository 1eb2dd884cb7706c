// Sums of whole numbers and of bool, beyond what doubles hold and of nothing.
#include <limits>

#include "ebb/core/base/error.h"
#include "ebb/core/ops/comparison.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

using Longs = std::vector<std::int64_t>;

bool is(const Tensor& x) { return x.item<bool>(); }

}  // namespace

TEST_CASE("Sums of whole numbers are exact where doubles are not, and wrap around") {
  const std::int64_t large = (std::int64_t{1} << 60) + 1;
  CHECK(sum(Tensor::from({large, large, std::int64_t{1}})).item<std::int64_t>() == 2 * large + 1);
  CHECK(sum(Tensor::from({-large, large - 5})).item<std::int64_t>() == -5);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  CHECK(sum(Tensor::from({kMost, std::int64_t{1}})).item<std::int64_t>() == -kMost - 1);
  CHECK(sum(Tensor::full({100'000}, 255, DType::u8)).item<std::int64_t>() == 25'500'000);
  CHECK(sum(Tensor::full({3, 70'000}, -2'000'000'000, DType::i32), 1).to_vector<std::int64_t>() ==
        Longs(3, -140'000'000'000'000));
}

TEST_CASE("Of nothing none is true and all are, and its sum is 0") {
  const Tensor none = Tensor::zeros({0, 3}, DType::boolean);
  CHECK_FALSE(is(any(none)));
  CHECK(is(all(none)));
  CHECK(any(none, 1).elements() == 0);
  CHECK(cast(all(none, 0), DType::i64).to_vector<std::int64_t>() == Longs{1, 1, 1});
  CHECK(sum(none, 0).to_vector<std::int64_t>() == Longs{0, 0, 0});
}

TEST_CASE("any and all take bool, means no whole numbers") {
  const Tensor x = Tensor::zeros({2, 3});
  CHECK_ERROR(any(x), ShapeError, "[any] takes bool (a comparison gives it: x != 0)");
  CHECK_ERROR(all(x, 0), ShapeError, "[all] takes bool");
  CHECK_ERROR(all(x > 0, 2), ShapeError, "[all] there is no axis 2");
  CHECK_ERROR(mean(cast(x, DType::i32)), ShapeError, "[mean] takes f32, f64, f16 or bf16");
}

}  // namespace ebb::tests
