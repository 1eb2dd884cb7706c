#include "ebb/core/ops/random.h"

#include <cmath>
#include <cstring>
#include <numbers>

#include "ebb/core/kernels/philox.h"
#include "ebb/core/kernels/random.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/tests/bytes.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/kernels/threads.h"

namespace ebb::tests {
namespace {

constexpr std::int64_t kKey = 5, kCounter = -7;

Tensor drawn(const OpDef& op, DType dtype, std::int64_t n, double a, double b) {
  return apply_one(op, {Tensor::from({kKey, kCounter})},
                   detail::creation_attributes(a, b, {n}, dtype), {});
}
std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }

std::uint32_t word(std::int64_t i) {
  return Philox::word(kKey, static_cast<std::uint64_t>(kCounter), static_cast<std::uint64_t>(i));
}

// Cosine of 2 pi t, or sine if `second`, for t = numerator / 2^24, computed without rounding the
// angle.
long double on_circle(std::uint32_t numerator, bool second) {
  constexpr std::uint32_t kQuarter = 1u << 22;
  const std::uint32_t quarter = (numerator + kQuarter / 2) / kQuarter;
  const long double angle =
      2 * std::numbers::pi_v<long double> *
      (static_cast<long double>(numerator) - static_cast<long double>(quarter * kQuarter)) *
      0x1p-24L;
  switch ((quarter + (second ? 3 : 0)) % 4) {  // sin(x) = cos(x - pi / 2)
    case 0:
      return std::cos(angle);
    case 1:
      return -std::sin(angle);
    case 2:
      return -std::cos(angle);
    default:
      return std::sin(angle);
  }
}

}  // namespace

// Known answers from Random123's kat_vectors, philox4x32 10.
TEST_CASE("Philox gives the published words") {
  CHECK(Philox::draw(0, 0, 0) == Philox::Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(Philox::draw(~0ull, ~0ull, ~0ull) ==
        Philox::Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(Philox::draw(0x299f31d0a4093822ull, 0x0370734413198a2eull, 0x85a308d3243f6a88ull) ==
        Philox::Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("normal is Box's and Muller's of its words, within 4 ulp, and f32 is f64 rounded") {
  const std::int64_t n = 200'001;
  const std::vector<double> z = values(drawn(normal_op, DType::f64, n, 0, 1));
  double worst = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t first = word(i / 2 * 2) >> 8, second = word(i / 2 * 2 + 1) >> 8;
    const long double u = 1 - static_cast<long double>(first) * 0x1p-24L;
    const long double exact = std::sqrt(-2 * std::log(u)) * on_circle(second, i % 2 == 1);
    const double place = std::ldexp(1.0, std::ilogb(static_cast<double>(exact)) - 52);
    const double got = z[static_cast<std::size_t>(i)];
    if (exact == 0)
      CHECK(got == 0);
    else
      worst = std::max(worst, static_cast<double>(std::abs(got - exact)) / place);
  }
  INFO(worst << " ulp");
  CHECK(worst <= 4);
  const Tensor rounded = cast(drawn(normal_op, DType::f64, n, 2, 3), DType::f32);
  CHECK((bytes_of(drawn(normal_op, DType::f32, n, 2, 3)) == bytes_of(rounded)));
}

TEST_CASE("The first elements of a draw do not depend on how many follow, nor on threads") {
  for (const OpDef* op : {&uniform_op, &normal_op, &bernoulli_op})
    for (const DType dtype : {DType::f32, DType::f64}) {
      const auto all = bytes_of(drawn(*op, dtype, 70'001, 0.5, 2));
      for (const std::int64_t n : {1, 2, 3, 5, 15, 16, 17, 127, 128, 129, 1000, 32'769, 70'001})
        for (const int threads : {1, 2, 5}) {
          const Threads here(threads);
          const auto some = bytes_of(drawn(*op, dtype, n, 0.5, 2));
          CHECK(std::memcmp(some.data(), all.data(), some.size()) == 0);
        }
    }
}

TEST_CASE("uniform never returns its upper end, though its arithmetic would round to it") {
  const auto check = [](DType dtype, double low, double high) {
    std::int64_t at_low = 0;
    bool inside = true;
    for (const double v : values(drawn(uniform_op, dtype, 50'000, low, high))) {
      inside = inside && v >= low && v < high;
      at_low += v == low;
    }
    CHECK(inside);
    return at_low;
  };
  // The dtype has no number between the ends, so half of the words would round up to the open end.
  CHECK(check(DType::f32, 0x1p24, 0x1p24 + 2) == 50'000);
  CHECK(check(DType::f64, 0x1p53, 0x1p53 + 2) == 50'000);
  check(DType::f32, 1, 1 + 0x1p-22);
  check(DType::f32, -0x1p-20, 1);
  check(DType::f32, 1e8, 1e8 + 64);
  check(DType::f64, 1, 1 + 0x1p-50);
}

TEST_CASE(
    "A probability that is a word's number leaves that word out, and the next larger takes it") {
  const Tensor ones = Tensor::full({40}, 1), draw = Tensor::from({kKey, kCounter});
  for (std::int64_t i = 0; i < 40; ++i) {
    const auto here = static_cast<double>(unit_interval(word(i)));
    const double above = std::nextafter(here, 2.0);
    const auto at_i = [&](const Tensor& x) { return x.item<float>({i}); };
    CHECK(at_i(drawn(bernoulli_op, DType::f32, 40, here, 0)) == 0);
    CHECK(at_i(drawn(bernoulli_op, DType::f32, 40, above, 0)) == 1);
    const auto dropped = [&](double probability) {
      return at_i(apply_one(dropout_op, {ones, draw}, RandomAttributes{.a = probability}, {})) == 0;
    };
    CHECK_FALSE(dropped(here));
    CHECK(dropped(above));
  }
  for (const double p : {0., 1.})
    CHECK(values(drawn(bernoulli_op, DType::f64, 10'000, p, 0)) == std::vector<double>(10'000, p));
}

}  // namespace ebb::tests
