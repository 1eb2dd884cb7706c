// Sums of whole numbers and of bool at sizes where work is cut, and beyond what doubles hold.
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

TEST_CASE("Sums, any and all of matrices of every form are those of plain loops") {
  for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{1, 1},
                                      {3, 1},
                                      {1, 300},
                                      {70'001, 3},
                                      {3, 70'001},
                                      {257, 256},
                                      {300, 1000},
                                      {5000, 33}}) {
    CAPTURE(rows, columns);
    std::vector<std::int32_t> values;
    std::vector<std::uint8_t> sparse, dense;
    Longs of_rows(static_cast<std::size_t>(rows)), of_columns(static_cast<std::size_t>(columns));
    Longs found_rows(of_rows), found_columns(of_columns);
    std::int64_t total = 0;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        const std::int64_t k = i * columns + j;
        const auto value = static_cast<std::int32_t>(k * 7919 % 1001 - 500);
        const bool on = k * 104729 % 1009 == 7;
        const auto row = static_cast<std::size_t>(i), column = static_cast<std::size_t>(j);
        values.push_back(value);
        sparse.push_back(on);
        dense.push_back(!on);
        of_rows[row] += value;
        of_columns[column] += value;
        found_rows[row] |= on;
        found_columns[column] |= on;
        total += value;
      }
    const Shape shape{rows, columns};
    const auto bools = [&](const std::vector<std::uint8_t>& flags) {
      return cast(Tensor::from(flags, shape), DType::boolean);
    };
    const auto longs = [](const Tensor& x) {
      return cast(x, DType::i64).to_vector<std::int64_t>();
    };
    for (const DType dtype : {DType::i32, DType::i64}) {
      const Tensor x = cast(Tensor::from(values, shape), dtype);
      CHECK(longs(sum(x, 1)) == of_rows);
      CHECK(longs(sum(x, 0)) == of_columns);
      CHECK(sum(x).item<std::int64_t>() == total);
    }
    const Tensor some = bools(sparse), most = bools(dense);
    CHECK(longs(any(some, 1)) == found_rows);
    CHECK(longs(any(some, 0)) == found_columns);
    CHECK(longs(!all(most, 1)) == found_rows);
    CHECK(longs(!all(most, 0)) == found_columns);
    std::int64_t count = 0;
    for (const std::uint8_t on : sparse) count += on;
    CHECK(sum(some).item<std::int64_t>() == count);
    CHECK(is(any(some)) == (count > 0));
    CHECK(is(all(most)) == (count == 0));
  }
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
