#include "ebb/core/kernels/random.h"

#include <cmath>
#include <cstring>
#include <numbers>

#include "ebb/core/kernels/philox.h"
#include "ebb/tests/kernels/fixture.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

Values draw(std::int64_t key, std::int64_t counter) {
  Values v({DType::i64, {2}});
  v.as<std::int64_t>()[0] = key;
  v.as<std::int64_t>()[1] = counter;
  return v;
}

Values drawn(Kernel kernel, DType type, std::int64_t n, double a, double b, std::int64_t key = 5,
             std::int64_t counter = -7) {
  Call call{.kernel = kernel,
            .attributes = RandomAttributes{a, b},
            .inputs = {draw(key, counter)},
            .outputs = {{type, {n}}}};
  return call.run()[0];
}

// The cosine or sine (`second`) of 2 pi t for t = numerator / 2^24, without a rounded angle.
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

// Known answers of Random123, kat_vectors, philox4x32 10.
TEST_CASE("Philox gives the published words") {
  CHECK(Philox::draw(0, 0, 0) == Philox::Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(Philox::draw(~0ull, ~0ull, ~0ull) ==
        Philox::Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(Philox::draw(0x299f31d0a4093822ull, 0x0370734413198a2eull, 0x85a308d3243f6a88ull) ==
        Philox::Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("uniform, bernoulli and dropout take the word of each element, wherever a piece begins") {
  for (DType type : {DType::f32, DType::f64})
    for (std::int64_t n : {0, 1, 3, 4, 63, 65, 1000, 70'001}) {
      const auto unit = [](std::int64_t i) {
        return static_cast<double>(unit_interval(
            Philox::word(5, static_cast<std::uint64_t>(-7), static_cast<std::uint64_t>(i))));
      };
      const Values uniform = drawn(cpu::uniform, type, n, 0, 1);
      const Values ones = drawn(cpu::bernoulli, type, n, 0.3, 0);
      Dice dice(1);
      Call call{.kernel = cpu::dropout,
                .attributes = RandomAttributes{.a = 0.3},
                .inputs = {dice.tensor(type, {n}), draw(5, -7)},
                .outputs = {{type, {n}}}};
      const auto dropped = call.run();
      bool right = true;
      for (std::int64_t i = 0; i < n; ++i) {
        right = right && uniform.at(i) == unit(i) && ones.at(i) == (unit(i) < 0.3);
        const double expected = unit(i) >= 0.3 ? call.inputs[0].at(i) / 0.7 : 0;
        right = right && std::abs(dropped[0].at(i) - expected) < 1e-6;
      }
      CHECK(right);
    }
}

TEST_CASE("uniform stays below its upper end and has the moments it should") {
  const Values x = drawn(cpu::uniform, DType::f32, 200'000, 3, 5);
  double mean = 0, low = 10, high = 0;
  for (double v : x.list()) {
    mean += v / 200'000;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  CHECK(low >= 3);
  CHECK(high < 5);
  CHECK(std::abs(mean - 4) < 0.01);
}

TEST_CASE("normal has the moments it should, and f32 is f64 rounded") {
  const Values x = drawn(cpu::normal, DType::f64, 200'001, 2, 3),
               y = drawn(cpu::normal, DType::f32, 200'001, 2, 3);
  double mean = 0, square = 0, fourth = 0;
  bool rounded = true;
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const double z = (x.at(i) - 2) / 3;
    mean += z / 200'001;
    square += z * z / 200'001;
    fourth += z * z * z * z / 200'001;
    rounded = rounded && static_cast<double>(static_cast<float>(x.at(i))) == y.at(i);
  }
  CHECK(std::abs(mean) < 0.01);
  CHECK(std::abs(square - 1) < 0.02);
  CHECK(std::abs(fourth - 3) < 0.1);
  CHECK(rounded);
}

TEST_CASE("normal is Box's and Muller's of its words, within 4 ulp") {
  const std::int64_t n = 200'000;
  const Values z = drawn(cpu::normal, DType::f64, n, 0, 1);
  double worst = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto word = [&](std::int64_t index) {
      return Philox::word(5, static_cast<std::uint64_t>(-7), static_cast<std::uint64_t>(index)) >>
             8;
    };
    const std::uint32_t first = word(i / 2 * 2), second = word(i / 2 * 2 + 1);
    const long double u = 1 - static_cast<long double>(first) * 0x1p-24L;
    const long double exact = std::sqrt(-2 * std::log(u)) * on_circle(second, i % 2 == 1);
    const double place = std::ldexp(1.0, std::ilogb(static_cast<double>(exact)) - 52);
    if (exact == 0)
      CHECK(z.at(i) == 0);
    else
      worst = std::max(worst, static_cast<double>(std::abs(z.at(i) - exact)) / place);
  }
  INFO(worst << " ulp");
  CHECK(worst <= 4);
}

TEST_CASE("Neighbouring normals differ") {
  for (DType type : {DType::f32, DType::f64}) {
    const Values x = drawn(cpu::normal, type, 100'000, 0, 1);
    std::int64_t equal = 0;
    for (std::int64_t i = 1; i < x.elements(); ++i) equal += x.at(i) == x.at(i - 1);
    CHECK(equal <= 1);  // f32 has few enough numbers that two may meet
  }
}

TEST_CASE("The first elements of a draw do not depend on how many follow, nor on threads") {
  for (Kernel kernel : {cpu::uniform, cpu::normal, cpu::bernoulli})
    for (DType type : {DType::f32, DType::f64}) {
      Values all = drawn(kernel, type, 70'001, 0.5, 2);
      for (std::int64_t n : {1, 2, 3, 5, 15, 16, 17, 127, 128, 129, 1000, 32'769}) {
        Values some = drawn(kernel, type, n, 0.5, 2);
        CHECK(std::memcmp(some.data(), all.data(), some.bytes()) == 0);
      }
      check_threads_agree({.kernel = kernel,
                           .attributes = RandomAttributes{0.5, 2},
                           .inputs = {draw(5, -7)},
                           .outputs = {{type, {70'001}}}});
    }
}

TEST_CASE("uniform never returns its upper end, though its arithmetic would round to it") {
  const auto check = [](DType type, double low, double high) {
    const Values x = drawn(cpu::uniform, type, 50'000, low, high);
    std::int64_t at_low = 0;
    bool inside = true;
    for (double v : x.list()) {
      inside = inside && v >= low && v < high;
      at_low += v == low;
    }
    CHECK(inside);
    return at_low;
  };
  // No number lies between the ends: half of the words would round up.
  CHECK(check(DType::f32, 0x1p24, 0x1p24 + 2) == 50'000);
  CHECK(check(DType::f64, 0x1p53, 0x1p53 + 2) == 50'000);
  check(DType::f32, 1, 1 + 0x1p-22);
  check(DType::f32, -0x1p-20, 1);
  check(DType::f32, 1e8, 1e8 + 64);
  check(DType::f64, 1, 1 + 0x1p-50);
}

TEST_CASE(
    "A probability that is a word's number leaves that word out, and the next larger takes it") {
  const auto word = [](std::int64_t i) {
    return static_cast<double>(unit_interval(
        Philox::word(5, static_cast<std::uint64_t>(-7), static_cast<std::uint64_t>(i))));
  };
  for (std::int64_t i = 0; i < 40; ++i) {
    const double here = word(i), above = std::nextafter(here, 2.0);
    CHECK(drawn(cpu::bernoulli, DType::f32, 40, here, 0).at(i) == 0);
    CHECK(drawn(cpu::bernoulli, DType::f32, 40, above, 0).at(i) == 1);
    const auto dropped = [&](double probability) {
      Call call{.kernel = cpu::dropout,
                .attributes = RandomAttributes{.a = probability},
                .inputs = {values(DType::f32, {40}, [](std::int64_t) { return 1; }), draw(5, -7)},
                .outputs = {{DType::f32, {40}}}};
      return call.run()[0].at(i) == 0;
    };
    CHECK_FALSE(dropped(here));
    CHECK(dropped(above));
  }
  for (double x : drawn(cpu::bernoulli, DType::f64, 10'000, 0, 0).list()) REQUIRE(x == 0);
  for (double x : drawn(cpu::bernoulli, DType::f64, 10'000, 1, 0).list()) REQUIRE(x == 1);
}

TEST_CASE("Different counters, and different keys, give different draws") {
  const Values x = drawn(cpu::uniform, DType::f32, 64, 0, 1, 1, 1);
  CHECK_FALSE(x.same_bits(drawn(cpu::uniform, DType::f32, 64, 0, 1, 1, 2)));
  CHECK_FALSE(x.same_bits(drawn(cpu::uniform, DType::f32, 64, 0, 1, 2, 1)));
  CHECK(x.same_bits(drawn(cpu::uniform, DType::f32, 64, 0, 1, 1, 1)));
}

TEST_CASE("Dropping everything leaves zeros, dropping nothing leaves all") {
  Dice dice(2);
  for (double probability : {0.0, 1.0}) {
    Call call{.kernel = cpu::dropout,
              .attributes = RandomAttributes{.a = probability},
              .inputs = {dice.tensor(DType::f32, {100}), draw(1, 1)},
              .outputs = {{DType::f32, {100}}}};
    const auto out = call.run();
    for (std::int64_t i = 0; i < 100; ++i)
      CHECK(out[0].at(i) == (probability == 0 ? call.inputs[0].at(i) : 0));
  }
}
