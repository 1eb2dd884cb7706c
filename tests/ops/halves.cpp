// f16 and bf16: storage, arithmetic, rounding.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ebb/core/base/error.h"
#include "ebb/core/base/half.h"
#include "ebb/core/kernels/convert.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/parameters/initializer.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/ops/refuses.h"

namespace ebb::tests {
namespace {

using Floats = std::vector<float>;
constexpr DType kHalves[] = {DType::f16, DType::bf16};

Tensor of(const Floats& values, DType dtype) {
  return cast(Tensor::from(values, {static_cast<std::int64_t>(values.size())}), dtype);
}
Floats floats(const Tensor& x) { return x.to_vector<float>(); }

// Converts a double that float represents. Builds denormals from their bits, since compute threads
// flush them to zero.
float exactly(double x) {
  if (x == 0 || !(std::abs(x) < 0x1p-126)) return static_cast<float>(x);
  const auto bits = static_cast<std::uint32_t>(std::abs(x) * 0x1p149);
  return std::bit_cast<float>(bits | (x < 0 ? 0x80000000u : 0));
}

// Decodes sign, exponent and fraction as the formats define them.
double value_of(std::uint16_t bits, int fraction_bits) {
  const int exponent_bits = 15 - fraction_bits;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1)
    return fraction ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  const double significand = exponent ? (1 << fraction_bits) + fraction : fraction;
  return sign * std::ldexp(significand, std::max(exponent, 1) - bias - fraction_bits);
}

bool same(float a, float b) {
  return std::isnan(a) ? std::isnan(b)
                       : std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

template <class Half>
void check_all_values(int fraction_bits) {
  std::vector<Half> all;
  for (int bits = 0; bits < 0x10000; ++bits)
    all.push_back(Half::of_bits(static_cast<std::uint16_t>(bits)));
  const Tensor stored = Tensor::from(all, {0x10000});
  const Tensor widened = cast(stored, DType::f32);
  const Floats values = widened.to_vector<float>();
  const std::vector<Half> back = cast(widened, dtype_of<Half>).template to_vector<Half>();
  int wrong = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const float expected = exactly(value_of(all[i].bits, fraction_bits));
    wrong += !same(values[i], expected);
    wrong += std::isnan(expected) ? !std::isnan(static_cast<float>(back[i]))
                                  : back[i].bits != all[i].bits;
  }
  CHECK(wrong == 0);

  // Around the midpoint of two neighbours: the midpoint rounds to even, the floats beside it to the
  // nearer neighbour.
  Floats between;
  std::vector<std::uint16_t> expected;
  for (std::uint32_t bits = 0; bits + 1 < 0x8000; ++bits) {
    const double low = value_of(static_cast<std::uint16_t>(bits), fraction_bits),
                 high = value_of(static_cast<std::uint16_t>(bits + 1), fraction_bits);
    if (!std::isfinite(high)) break;
    const float halfway = exactly((low + high) / 2);
    const auto up = static_cast<std::uint16_t>(bits + 1), down = static_cast<std::uint16_t>(bits);
    for (const int step : {-1, 0, 1}) {
      between.push_back(std::bit_cast<float>(std::bit_cast<std::uint32_t>(halfway) +
                                             static_cast<unsigned>(step)));
      expected.push_back(step < 0 ? down : step > 0 ? up : (bits & 1) != 0 ? up : down);
    }
  }
  const std::vector<Half> rounded =
      cast(Tensor::from(between, {static_cast<std::int64_t>(between.size())}), dtype_of<Half>)
          .template to_vector<Half>();
  wrong = 0;
  for (std::size_t i = 0; i < rounded.size(); ++i) wrong += rounded[i].bits != expected[i];
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("All numbers of 16 bits are converted to float and back, and floats to the nearest") {
  SECTION("f16") { check_all_values<Float16>(10); }
  SECTION("bf16") { check_all_values<BFloat16>(7); }
}

TEST_CASE("Numbers of 16 bits are cast to and from every dtype") {
  for (const DType half : kHalves) {
    const Tensor x = of({-1.5f, 0, 2.75f, 200}, half);
    CHECK(cast(x, DType::f64).to_vector<double>() == std::vector<double>{-1.5, 0, 2.75, 200});
    CHECK(cast(x, DType::i32).to_vector<std::int32_t>() ==
          std::vector<std::int32_t>{-1, 0, 2, 200});
    CHECK(cast(x, DType::i64).to_vector<std::int64_t>() ==
          std::vector<std::int64_t>{-1, 0, 2, 200});
    CHECK(cast(x, DType::u8).to_vector<std::uint8_t>() == std::vector<std::uint8_t>{0, 0, 2, 200});
    CHECK(cast(x, DType::boolean).to_vector<std::uint8_t>() ==
          std::vector<std::uint8_t>{1, 0, 1, 1});
    for (const DType from :
         {DType::f64, DType::i32, DType::i64, DType::u8, DType::f16, DType::bf16})
      CHECK(floats(cast(cast(of({0, 3, 200}, half), from), half)) == Floats{0, 3, 200});
    CHECK(floats(cast(cast(x, DType::boolean), half)) == Floats{1, 0, 1, 1});
  }
}

TEST_CASE("A number beside 16 bits is a float, and so is what becomes of it before the result") {
  for (const DType half : kHalves) {
    Floats values, times, product;
    for (int i = 1; i < 300; ++i) values.push_back(static_cast<float>(i) / 16);
    const Tensor x = of(values, half);
    values = floats(x);
    for (const float value : values) times.push_back(value * 0.1f);
    CHECK(floats(x * 0.1) == floats(of(times, half)));
    CHECK(floats(0.1 * x) == floats(of(times, half)));
    CHECK(floats(x * 0.1) != floats(x * of({0.1f}, half)));
    for (const float value : values) product.push_back(value * value);
    CHECK(floats(square(x)) == floats(of(product, half)));
  }
}

TEST_CASE("Sums of 16 bits are float sums, rounded at the end") {
  // A running sum in bf16 would stop at 256, in f16 at 2048.
  for (const DType half : kHalves) {
    const Tensor ones = Tensor::full({1, 8000}, 1, half);
    CHECK(floats(sum(ones)) == Floats{8000});
    CHECK(floats(sum(ones, {.axes = {1}})) == Floats{8000});
    CHECK(floats(sum_like(ones, Tensor::zeros({1, 1}, half))) == Floats{8000});
    CHECK(floats(mean(ones * 3)) == Floats{3});
    CHECK(floats(matmul(ones, ones, {.transpose_b = true})) == Floats{8000});
    CHECK(floats(dense(ones, reshape(ones, {8000, 1}))) == Floats{8000});
  }
  CHECK(floats(sum(Tensor::full({70'000}, 1, DType::f16)))[0] ==
        std::numeric_limits<float>::infinity());
  CHECK(floats(mean(Tensor::full({70'000}, 1, DType::f16))) == Floats{1});  // the sum exceeds f16
}

TEST_CASE("At the ends of their range numbers of 16 bits overflow, vanish and stay NaN") {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor large = of({300, -300, 65504, 255}, DType::f16);
  CHECK(floats(large * 300) == Floats{inf, -inf, inf, inf});
  CHECK(floats(large + large) == Floats{600, -600, inf, 510});
  CHECK(floats(large * large / large) == Floats{inf, -inf, inf, 255});  // each rounded on its own
  CHECK(floats(of({300}, DType::bf16) * 300) == floats(of({90000}, DType::bf16)));
  // Denormals of f16 count as any number: float represents them as normal numbers.
  const Tensor least = of({0x1p-24f, 0x1p-15f, -0x1p-24f}, DType::f16);
  CHECK(floats(least) == Floats{0x1p-24f, 0x1p-15f, -0x1p-24f});
  CHECK(floats(least * 3) == Floats{0x1.8p-23f, 0x1.8p-14f, -0x1.8p-23f});
  CHECK(floats(least * 0.5) == Floats{0, 0x1p-16f, 0});
  for (const DType half : kHalves) {
    const Floats undefined = floats(sqrt(of({-1, 4}, half)));
    CHECK(std::isnan(undefined[0]));
    CHECK(undefined[1] == 2);
    CHECK(std::isnan(floats(sum(sqrt(of({-1, 4}, half))))[0]));
  }
}

TEST_CASE("Uniform draws of 16 bits are those of float, rounded, between bounds of their dtype") {
  struct Bounds {
    double low, high;
  };
  for (const DType half : kHalves)
    for (const auto& [low, high] :
         {Bounds{0, 1}, Bounds{-1, 1}, Bounds{-3, -1.5}, Bounds{-0.1, 0.1}, Bounds{1, 1.009},
          Bounds{-1, 0}, Bounds{0.99, 1}, Bounds{1, 60'000}}) {
      INFO(name(half) << " in [" << low << ", " << high << ")");
      constexpr std::int64_t kCount = 200'000;
      const auto in_half = [&](double bound) { return floats(Tensor::full({}, bound, half))[0]; };
      const float first = in_half(low), end = in_half(high);
      REQUIRE(first < end);
      set_seed(Seed{5});
      const Floats drawn = floats(uniform({kCount}, {.low = low, .high = high, .dtype = half}));
      set_seed(Seed{5});
      const Floats exact =
          uniform({kCount}, {.low = static_cast<double>(first), .high = static_cast<double>(end)})
              .to_vector<float>();
      const Floats nearest = floats(of(exact, half));
      int outside = 0, other = 0;
      for (std::size_t i = 0; i < drawn.size(); ++i) {
        outside += !(drawn[i] < end && drawn[i] >= first);
        other += drawn[i] != nearest[i] && nearest[i] < end;
      }
      CHECK(outside == 0);
      CHECK(other == 0);
    }
  const auto draw = [](double low, double high, DType dtype) {
    return uniform_like(Tensor::zeros({2}, dtype), low, high);
  };
  EBB_REFUSES(draw(0.999, 1, DType::bf16), Error,
              "[uniform_like] takes bounds that differ in bf16, where 0.999000 and 1.000000 both "
              "are 1.000000");
  EBB_REFUSES(uniform({2}, {.low = 1, .high = 1 + 1e-9}), Error, "bounds that differ in f32");
  EBB_REFUSES(draw(1, 70'000, DType::f16), Error, "which are too far apart for f16");
  EBB_REFUSES(uniform({2}, {.low = -3e38, .high = 3e38}), Error, "too far apart for f32");
  CHECK(floats(draw(3, 3, DType::f16)) == Floats{3, 3});
}

TEST_CASE("Initial values of 16 bits are those of double, rounded, below their bound") {
  constexpr std::int64_t kCount = 50'000;
  std::vector<double> exact(kCount);
  std::vector<BFloat16> drawn(kCount);
  for (const Initializer& initializer :
       {initializers::uniform(-2, 4), initializers::normal(1, 2), initializers::lstm_bias(0.25)}) {
    detail::draw_initial_values(initializer, {3}, "w", {DType::f64, {kCount}}, exact.data());
    detail::draw_initial_values(initializer, {3}, "w", {DType::bf16, {kCount}}, drawn.data());
    int other = 0, beyond = 0;
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      const auto nearest = convert<BFloat16>(exact[i]);
      const bool raised = i >= kCount / 4 && i < kCount / 2;
      const double end = initializer.b + (raised ? initializer.second_quarter : 0);
      const bool has_end = initializer.kind == Initializer::uniform;
      beyond += has_end && convert<double>(drawn[i]) >= end;
      other += drawn[i].bits != nearest.bits && !(has_end && convert<double>(nearest) >= end);
    }
    CHECK(other == 0);
    CHECK(beyond == 0);
  }
}

}  // namespace ebb::tests
