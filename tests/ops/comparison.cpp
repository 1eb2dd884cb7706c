// Comparisons and logic in corner cases: NaN, numbers that a dtype cannot represent, mixed dtypes.
#include "ebb/core/ops/comparison.h"

#include <concepts>
#include <limits>
#include <optional>

#include "ebb/core/base/error.h"
#include "ebb/core/base/half.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/extremes.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/infinity.h"
#include "ebb/tests/line.h"
#include "ebb/tests/ops/refuses.h"

namespace ebb::tests {
namespace {

using Flags = std::vector<std::uint8_t>;
using Doubles = std::vector<double>;

Flags flags(const Tensor& x) {
  REQUIRE(x.dtype() == DType::boolean);
  return x.to_vector<std::uint8_t>();
}

// A function of two tensors.
struct OfTwo {
  const char* name;
  Tensor (*call)(const Operand&, const Operand&);
};
constexpr OfTwo kOfTwo[] = {
    {"equal", equal},     {"not_equal", not_equal},   {"less", less},
    {"greater", greater}, {"less_equal", less_equal}, {"greater_equal", greater_equal},
    {"add", add},         {"subtract", subtract},     {"multiply", multiply},
    {"divide", divide},   {"maximum", maximum}};

// Dtype of the result for two different dtypes; none where the function refuses them.
std::optional<DType> given(const OfTwo& function, DType a, DType b) {
  if (function.call == multiply && a == DType::boolean) return b;
  if (function.call == multiply && b == DType::boolean) return a;
  const bool compares = &function < std::begin(kOfTwo) + 6;
  if (compares && !is_floating(a) && !is_floating(b)) return DType::boolean;
  return {};
}

// Checks comparisons of each value with `number`, on either side.
template <class T>
void check_beside(const std::vector<T>& values, double number) {
  const Tensor x = Tensor::from(values, {static_cast<std::int64_t>(values.size())});
  const auto expected = [&](auto holds) {
    Flags all;
    for (const T value : values)
      all.push_back(holds(static_cast<long double>(value), static_cast<long double>(number)));
    return all;
  };
  INFO(name(dtype_of<T>) << " beside " << number);
  CHECK(flags(x == number) == expected([](auto a, auto b) { return a == b; }));
  CHECK(flags(x != number) == expected([](auto a, auto b) { return a != b; }));
  CHECK(flags(x < number) == expected([](auto a, auto b) { return a < b; }));
  CHECK(flags(x <= number) == expected([](auto a, auto b) { return a <= b; }));
  CHECK(flags(x > number) == expected([](auto a, auto b) { return a > b; }));
  CHECK(flags(x >= number) == expected([](auto a, auto b) { return a >= b; }));
  CHECK(flags(number == x) == expected([](auto a, auto b) { return b == a; }));
  CHECK(flags(number < x) == expected([](auto a, auto b) { return b < a; }));
  CHECK(flags(number <= x) == expected([](auto a, auto b) { return b <= a; }));
  CHECK(flags(number > x) == expected([](auto a, auto b) { return b > a; }));
  CHECK(flags(number >= x) == expected([](auto a, auto b) { return b >= a; }));
}

template <class T>
std::vector<T> corners() {
  using Limits = std::numeric_limits<T>;
  return {Limits::min(), Limits::min() + 1, 0, 1, 2, 3, Limits::max() - 1, Limits::max()};
}

}  // namespace

TEST_CASE("Two tensors that are compared are no condition of an if", "[host]") {
  STATIC_REQUIRE(std::same_as<decltype(Tensor() == Tensor()), Tensor>);
  STATIC_REQUIRE_FALSE(std::convertible_to<Tensor, bool>);
  STATIC_REQUIRE_FALSE(std::constructible_from<bool, Tensor>);
}

TEST_CASE("As a number, NaN is unequal to all; it and infinities are told from other values") {
  const Tensor a = Tensor::from({kNaN, kNaN, 1.f, kInfinity, -0.f});
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    INFO(name(dtype));
    const Tensor x = cast(a, dtype);
    CHECK(flags(x == kNaN) == Flags{0, 0, 0, 0, 0});
    CHECK(flags(kNaN != x) == Flags{1, 1, 1, 1, 1});
    CHECK(flags(isnan(x)) == Flags{1, 1, 0, 0, 0});
    CHECK(flags(isinf(-x)) == Flags{0, 0, 0, 1, 0});
    CHECK(flags(isfinite(x)) == Flags{0, 0, 1, 0, 1});
  }
}

TEST_CASE("Beside integers a number is compared as it is, whether they have it or not") {
  const double inf = std::numeric_limits<double>::infinity();
  for (const double number : {0.0,
                              2.0,
                              2.5,
                              -0.5,
                              -1.0,
                              255.0,
                              254.5,
                              255.5,
                              256.0,
                              2147483647.0,
                              2147483647.5,
                              2147483648.0,
                              -2147483648.0,
                              -2147483649.0,
                              0x1p62,
                              0x1p63,
                              -0x1p63,
                              -0x1.0000000000001p63,
                              1e300,
                              -1e300,
                              inf,
                              -inf,
                              std::numeric_limits<double>::quiet_NaN()}) {
    check_beside(corners<std::uint8_t>(), number);
    check_beside(corners<std::int32_t>(), number);
    check_beside(corners<std::int64_t>(), number);
  }
  const Tensor bools = cast(Tensor::from({0, 1}), DType::boolean);
  CHECK(flags(bools == true) == Flags{0, 1});
  CHECK(flags(bools < 0.5) == Flags{1, 0});
  CHECK(flags(bools <= bools) == Flags{1, 1});
}

TEST_CASE("Beside floating tensors a number has their dtype: what is filled with it equals it") {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    INFO(name(dtype));
    const Tensor x = Tensor::full({2}, 0.1, dtype);
    CHECK(flags(x == 0.1) == Flags{1, 1});
    CHECK(flags(0.1 < x) == Flags{0, 0});
    CHECK(flags(x >= 0.1) == Flags{1, 1});
  }
}

TEST_CASE("i64 beyond what a double has are compared as they are") {
  const std::int64_t large = (std::int64_t{1} << 53) + 1;
  const Tensor a = Tensor::from({large, large, -large}),
               b = Tensor::from({large - 1, large, -large + 1});
  CHECK(flags(a == b) == Flags{0, 1, 0});
  CHECK(flags(a < b) == Flags{0, 0, 1});
}

TEST_CASE("Logic on bool, with the precedence of C++: comparisons first") {
  const Tensor x = Tensor::from({-1.f, 0.f, 0.5f, 1.f, 2.f});
  CHECK(flags((x > 0) & (x < 1)) == Flags{0, 0, 1, 0, 0});
  CHECK(flags((x < 0) | (x > 1)) == Flags{1, 0, 0, 0, 1});
  CHECK(flags((x >= 0) ^ (x >= 1)) == Flags{0, 1, 1, 0, 0});
  CHECK(flags(!(x == 0)) == Flags{1, 0, 1, 1, 1});
  // True is stored as the single bit 1, so that flags can be compared and counted.
  CHECK(flags((!!(x == 0)) == (x == 0)) == Flags{1, 1, 1, 1, 1});
}

TEST_CASE("Comparisons and logic refuse what they cannot take, in words and by line") {
  const Tensor x = Tensor::zeros({2, 3});
  EBB_REFUSES(
      x < cast(x, DType::i32), ShapeError,
      "[less] takes inputs of one dtype (cast() converts); inputs are f32[2, 3], i32[2, 3]");
  EBB_REFUSES(x == Tensor::zeros({2}), ShapeError, "[equal] shapes do not broadcast");
  EBB_REFUSES(x & x, ShapeError, "[logical_and] takes bool (a comparison gives it: x != 0)");
  EBB_REFUSES(!x, ShapeError, "[logical_not] takes bool");
  EBB_REFUSES((x > 0) | true, Error, "[logical_or] takes a tensor here, not a number");
  EBB_REFUSES(isnan(cast(x, DType::i32)), ShapeError, "[isnan] takes f32, f64, f16 or bf16");
  EBB_REFUSES(Operand(1) >= Operand(2), Error, "[greater_equal] takes at least one tensor");
}

TEST_CASE("Integers and bool are compared, masks multiplied, and other dtypes refused together") {
  constexpr DType dtypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16,
                              DType::i32, DType::i64, DType::u8,  DType::boolean};
  const Tensor a = Tensor::from({0.0, 1.0, 1.0, 0.0}), b = Tensor::from({0.0, 1.0, 0.0, 1.0});
  for (const OfTwo& function : kOfTwo)
    for (const DType of_a : dtypes)
      for (const DType of_b : dtypes) {
        if (of_a == of_b) continue;
        INFO(function.name << " of " << name(of_a) << " and " << name(of_b));
        const Tensor x = cast(a, of_a), y = cast(b, of_b);
        Graph graph;
        const Tensor p = graph.placeholder("x", of_a, {-1}), q = graph.placeholder("y", of_b, {-1});
        const std::optional<DType> dtype = given(function, of_a, of_b);
        if (!dtype) {
          const std::string of = std::string("[") + function.name + "] ";
          EBB_REFUSES(function.call(x, y), ShapeError, of);
          EBB_REFUSES(function.call(p, q), ShapeError, of);
          continue;
        }
        const Doubles wanted = function.call(a, b).to_vector<double>();
        const Tensor z = function.call(p, q);
        CHECK(z.dtype() == *dtype);
        CHECK(function.call(x, y).dtype() == *dtype);
        CHECK(function.call(x, y).to_vector<double>() == wanted);
        CHECK(Session(graph).run(z, {{p, x}, {q, y}}).to_vector<double>() == wanted);
      }
  CHECK(all(Tensor::from({-1}) < cast(Tensor::from({255}), DType::u8)).item<bool>());
  const std::int64_t large = (std::int64_t{1} << 40) + 1;
  CHECK_FALSE(any(Tensor::from({large}) == Tensor::from({1})).item<bool>());
}

TEST_CASE("The gradient of a masked product goes to what is masked, in both modes") {
  const Tensor mask = Tensor::from({true, false, true});
  const Tensor x = Tensor::from({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}).with_grad();
  const Doubles wanted = {1, 0, 1, 1, 0, 1};
  sum(x * mask).backward();
  CHECK(x.grad().to_vector<double>() == wanted);
  Graph graph;
  const Tensor p = graph.placeholder("x", DType::f32, {-1, 3});
  const Tensor q = graph.placeholder("mask", DType::boolean, {3});
  const Tensor dp = gradients(sum(q * p), {p})[0];
  CHECK(Session(graph).run(dp, {{p, x.detach()}, {q, mask}}).to_vector<double>() == wanted);
}

TEST_CASE("The mean of bool is f32, and no other dtype is cast for a mean") {
  const Tensor flags = Tensor::from({true, false, true, true}, {2, 2});
  CHECK(mean(flags).dtype() == DType::f32);
  CHECK(mean(flags).item<float>() == 0.75);
  CHECK(mean(flags, 0).to_vector<float>() == std::vector<float>{1, 0.5});
  for (const DType dtype : {DType::i32, DType::i64, DType::u8})
    EBB_REFUSES(mean(cast(flags, dtype)), ShapeError, "[mean] takes f32, f64, f16 or bf16");
}

TEST_CASE("What is cast is refused as it was given") {
  const Tensor flags = Tensor::zeros({2}, DType::boolean), bytes = Tensor::zeros({3}, DType::u8);
  CHECK_ERROR_HERE(flags < bytes, ShapeError,
                   "[less] shapes do not broadcast; inputs are bool[2], u8[3] ");
  EBB_REFUSES(bytes * flags, ShapeError, "[multiply] shapes do not broadcast; inputs are u8[3], ");
  EBB_REFUSES(mean(flags, 1), ShapeError, "[mean] there is no axis 1; the input is bool[2] ");
}

}  // namespace ebb::tests
