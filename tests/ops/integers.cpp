// Integer arithmetic and sums: every pair of bytes, the limits of the wider types, values that a
// double cannot represent, refusals.
#include <cmath>
#include <limits>

#include "ebb/core/base/error.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/ops/refuses.h"

namespace ebb::tests {
namespace {

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 WideUnsigned;

// Result of an operation that wraps around in T.
template <class T>
T wrapped(Wide value) {
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(value));
}
Wide quotient(Wide a, Wide b) {
  if (b == 0) return 0;
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}

// Checks all operations on tensors a and b, which broadcast to `pairs` (x, y).
template <class T>
void check_all(const Tensor& a, const Tensor& b, const std::vector<std::pair<Wide, Wide>>& pairs) {
  const auto check = [&](const char* what, const Tensor& result, auto formula) {
    const std::vector<T> values = result.to_vector<T>();
    REQUIRE(values.size() == pairs.size());
    std::size_t wrong = 0, at = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] != wrapped<T>(formula(pairs[i].first, pairs[i].second)) && wrong++ == 0) at = i;
    INFO(what << " of " << static_cast<std::int64_t>(pairs[at].first) << " and "
              << static_cast<std::int64_t>(pairs[at].second));
    CHECK(wrong == 0);
  };
  check("add", a + b, [](Wide x, Wide y) { return x + y; });
  check("subtract", a - b, [](Wide x, Wide y) { return x - y; });
  check("multiply", a * b, [](Wide x, Wide y) {
    return static_cast<Wide>(static_cast<WideUnsigned>(x) * static_cast<WideUnsigned>(y));
  });
  check("maximum", maximum(a, b), [](Wide x, Wide y) { return x > y ? x : y; });
  check("minimum", minimum(a, b), [](Wide x, Wide y) { return x < y ? x : y; });
  check("floor_divide", floor_divide(a, b), quotient);
  check("remainder", remainder(a, b),
        [](Wide x, Wide y) { return y == 0 ? Wide(0) : x - y * quotient(x, y); });
}

template <class T>
void check_ends() {
  constexpr T kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
  std::vector<T> ends = {kLeast, kMost, 0, 1, 2, 3, 7};
  ends.push_back(static_cast<T>(kLeast + 1));
  ends.push_back(static_cast<T>(kMost - 1));
  ends.push_back(static_cast<T>(kMost / 2));
  if (std::is_signed_v<T>)
    for (const int less : {-1, -2, -3, -7}) ends.push_back(static_cast<T>(less));
  const auto n = static_cast<std::int64_t>(ends.size());
  std::vector<std::pair<Wide, Wide>> pairs;
  for (const T x : ends)
    for (const T y : ends) pairs.emplace_back(x, y);
  check_all<T>(Tensor::from(ends, {n, 1}), Tensor::from(ends, {n}), pairs);

  const Tensor x = Tensor::from(ends, {n});
  const std::vector<T> minus = (-x).template to_vector<T>(), sizes = abs(x).template to_vector<T>(),
                       signs = sign(x).template to_vector<T>();
  for (std::size_t i = 0; i < ends.size(); ++i) {
    CHECK(minus[i] == wrapped<T>(-Wide(ends[i])));
    CHECK(sizes[i] == wrapped<T>(ends[i] < 0 ? -Wide(ends[i]) : Wide(ends[i])));
    CHECK(signs[i] == (ends[i] > 0) - (ends[i] < 0));
  }
}

using Longs = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("Arithmetic on every pair of bytes is that of numbers modulo 256") {
  std::vector<std::uint8_t> all;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<std::uint8_t>(i));
  std::vector<std::pair<Wide, Wide>> pairs;
  for (int x = 0; x < 256; ++x)
    for (int y = 0; y < 256; ++y) pairs.emplace_back(x, y);
  check_all<std::uint8_t>(Tensor::from(all, {256, 1}), Tensor::from(all, {256}), pairs);
  check_ends<std::uint8_t>();
}

TEST_CASE("Integers wrap around at their ends, and a division by zero gives zero") {
  check_ends<std::int32_t>();
  check_ends<std::int64_t>();
}

TEST_CASE("A number beside integers is one of them, on either side") {
  const Tensor x = Tensor::from({-7, 7, 0});
  using Ints = std::vector<std::int32_t>;
  CHECK(floor_divide(20, x).to_vector<std::int32_t>() == Ints{-3, 2, 0});
  CHECK(maximum(x, -1).to_vector<std::int32_t>() == Ints{-1, 7, 0});
  Tensor y = cast(x, DType::i64);
  y *= 0x1p40;
  CHECK(y.item<std::int64_t>({1}) == std::int64_t{7} << 40);
}

TEST_CASE(
    "the gradient of a remainder is the quotient that it leaves, also where a / b is rounded") {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const Tensor a = Tensor::full({4}, 1, dtype);
    const Tensor b = cast(Tensor::from({0.1, 0.2, 1.0 / 3, -0.1}), dtype).with_grad();
    const auto quotient = cast(-floor_divide(a, b.detach()), DType::f64).to_vector<double>();
    const auto gradient = [&](const Tensor& y) {
      return cast(gradients(sum(y), {b})[0], DType::f64).to_vector<double>();
    };
    CHECK(gradient(remainder(a, b)) == quotient);
    CHECK(gradient(remainder(1, b)) == quotient);
  }
}

TEST_CASE("floor_divide of floats is what remainder leaves, at zeros and infinities as in NumPy") {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor a = Tensor::from({7.0, -7.0, 7.0, 1.0, -1.0, 0.0, -0.0, 1.0, -1.0, 0.6}),
               b = Tensor::from({2.0, 2.0, -2.0, 0.0, 0.0, 5.0, 5.0, inf, inf, 0.2});
  const std::vector<double> expected = {3, -4, -4, inf, -inf, 0, -0.0, 0, -1, 2};
  const std::vector<double> values = floor_divide(a, b).to_vector<double>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    INFO("element " << i);
    CHECK(values[i] == expected[i]);
    CHECK(std::signbit(values[i]) == std::signbit(expected[i]));
  }
  CHECK(std::isnan(floor_divide(Tensor::from({inf}), 2).item<double>()));
  CHECK(std::isnan(floor_divide(Tensor::from({0.0}), 0).item<double>()));
}

TEST_CASE("Integers refuse what they have no answer to, in the name of what was called") {
  const Tensor x = Tensor::zeros({2}, DType::i32), flags = Tensor::zeros({2}, DType::boolean);
  EBB_REFUSES(x / x, ShapeError,
              "[divide] divides f32, f64, f16 or bf16 (cast() converts, floor_divide() divides "
              "integers); inputs are i32[2], i32[2]");
  EBB_REFUSES(x + 2.5, ShapeError, "[add] i32 does not have the number 2.5; the input is i32[2]");
  EBB_REFUSES(cast(x, DType::u8) - 256, ShapeError, "[subtract] u8 does not have the number 256");
  EBB_REFUSES(-1 * cast(x, DType::u8), ShapeError, "[multiply] u8 does not have the number -1");
  EBB_REFUSES(floor_divide(x, 0), ShapeError, "[floor_divide] divides integers by 0");
  EBB_REFUSES(remainder(x, 0), ShapeError, "[remainder] divides integers by 0");
  EBB_REFUSES(x + cast(x, DType::i64), ShapeError, "[add] takes inputs of one dtype");
  EBB_REFUSES(flags + flags, ShapeError, "[add] takes numbers, not bool (cast() converts)");
  EBB_REFUSES(-flags, ShapeError, "[negate] takes numbers, not bool");
  EBB_REFUSES(sqrt(x), ShapeError, "[sqrt] takes f32, f64, f16 or bf16");
}

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

}  // namespace ebb::tests
