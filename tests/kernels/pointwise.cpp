#include "ebb/core/kernels/pointwise.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "ebb/core/kernels/functors/families.h"
#include "ebb/tests/kernels/fixture.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

// Every function of one number that is listed. What they compute, tests/ops looks at.
struct Unary {
  const char* name;
  Kernel kernel;
};

const Unary unaries[] = {
#define EBB_UNARY(name, Functor) {#name, cpu::map<functors::Functor>},
#define EBB_BINARY(name, Functor)
#define EBB_PAIR(name, Functor)
#include "ebb/core/kernels/functors/families.inc"
};

struct Binary {
  const char* name;
  Kernel kernel;
  double (*formula)(double, double);
};

const Binary binaries[] = {
    {"add", cpu::zip<functors::Add>, [](double a, double b) { return a + b; }},
    {"subtract", cpu::zip<functors::Subtract>, [](double a, double b) { return a - b; }},
    {"multiply", cpu::zip<functors::Multiply>, [](double a, double b) { return a * b; }},
    {"divide", cpu::zip<functors::Divide>, [](double a, double b) { return a / b; }},
    {"maximum", cpu::zip<functors::Maximum>, [](double a, double b) { return std::max(a, b); }},
    {"remainder", cpu::zip<functors::Remainder>,
     [](double a, double b) { return a - b * std::floor(a / b); }},
};

// A shape that broadcasts to `shape`: axes set to 1, leading ones left out.
Shape narrower(Dice& dice, const Shape& shape) {
  Shape narrow;
  const auto drop = static_cast<int>(dice.integer(0, 3) == 0 ? dice.integer(0, shape.rank()) : 0);
  for (int axis = drop; axis < shape.rank(); ++axis)
    narrow.push_back(dice.integer(0, 2) == 0 ? 1 : shape[axis]);
  return narrow;
}

std::int64_t broadcast_index(std::int64_t index, const Shape& from, const Shape& to) {
  std::int64_t at = 0, step = 1;
  for (int back = 1; back <= to.rank(); ++back) {
    const std::int64_t i = index % to[-back];
    index /= to[-back];
    if (back > from.rank()) continue;
    at += from[-back] == 1 ? 0 : i * step;
    step *= from[-back];
  }
  return at;
}

}  // namespace

TEST_CASE("map gives an element the same bits at every length, and in place") {
  Dice dice(1);
  for (const Unary& op : unaries)
    for (DType type : {DType::f32, DType::f64}) {
      const Values all = dice.tensor(type, {70'001}, 0.1, 5);
      Call longest{.kernel = op.kernel, .inputs = {all}, .outputs = {all.spec()}};
      auto expected = longest.run();
      for (std::int64_t n : {0, 1, 3, 4, 7, 8, 15, 16, 17, 100, 40'000, 70'001}) {
        INFO(op.name << " " << name(type) << " " << n);
        Call call{.kernel = op.kernel,
                  .inputs = {values(type, {n}, [&](std::int64_t i) { return all.at(i); })},
                  .outputs = {{type, {n}}}};
        auto out = call.run();
        CHECK(std::memcmp(out[0].data(), expected[0].data(), out[0].bytes()) == 0);
        Buffer buffer = call.inputs[0].buffer();
        REQUIRE(
            op.kernel(
                  {.inputs = {&buffer, 1}, .outputs = {&buffer, 1}, .attributes = &call.attributes})
                .ok());
        CHECK(call.inputs[0].same_bits(out[0]));
      }
    }
}

TEST_CASE("A result of map does not depend on where in memory its element lies") {
  Dice dice(2);
  for (const Unary& op : unaries)
    for (DType type : {DType::f32, DType::f64}) {
      INFO(op.name << " " << name(type));
      const Values all = dice.tensor(type, {101}, 0.1, 5);
      Call call{.kernel = op.kernel, .inputs = {all}, .outputs = {all.spec()}};
      const auto expected = call.run();
      for (std::int64_t first : {1, 2, 5, 37}) {
        const Spec spec{type, {101 - first}};
        Values in(spec, size_of(type) * static_cast<std::size_t>(first % 3)),
            out(spec, size_of(type));
        for (std::int64_t i = 0; i < in.elements(); ++i) in.set(i, all.at(first + i));
        const Buffer from = in.buffer(), to = out.buffer();
        REQUIRE(
            op.kernel({.inputs = {&from, 1}, .outputs = {&to, 1}, .attributes = &call.attributes})
                .ok());
        bool same = true;
        for (std::int64_t i = 0; i < in.elements(); ++i)
          same = same && (out.at(i) == expected[0].at(first + i) ||
                          (std::isnan(out.at(i)) && std::isnan(expected[0].at(first + i))));
        CHECK(same);
      }
    }
}

TEST_CASE("NaN goes through every function of one number, in a block or in a tail") {
  for (DType type : {DType::f32, DType::f64})
    for (const Unary& op : unaries)
      for (std::int64_t n : {1, 16, 33}) {
        INFO(op.name << " " << name(type));
        Call call{.kernel = op.kernel,
                  .inputs = {values(type, {n}, [](std::int64_t) { return std::nan(""); })},
                  .outputs = {{type, {n}}}};
        CHECK(std::isnan(call.run()[0].at(n - 1)));
      }
}

TEST_CASE("zip broadcasts as NumPy does, in place where an input has the output's shape") {
  Dice dice(3);
  for (int repeat = 0; repeat < 600; ++repeat) {
    const Binary& op = binaries[dice.integer(0, std::ssize(binaries) - 1)];
    const DType type = repeat % 2 == 0 ? DType::f32 : DType::f64;
    Shape shape;
    for (std::int64_t axes = dice.integer(0, 5); axes > 0; --axes)
      shape.push_back(dice.integer(0, 15) == 0 ? dice.integer(0, 1)
                                               : dice.integer(1, repeat % 20 == 0 ? 20 : 6));
    if (repeat % 50 == 7) shape = {300, 400};
    // Every axis of the output comes from one of the two.
    Shape narrow = narrower(dice, shape);
    const bool left = dice.integer(0, 1) == 1;
    INFO(op.name << " " << shape.to_string() << " and " << narrow.to_string()
                 << (left ? " left" : " right"));
    Values full = dice.tensor(type, shape, 0.5, 2), part = dice.tensor(type, narrow, 0.5, 2);
    if (repeat % 3 == 0) part = dice.tensor(type, narrow, -2, -0.5);
    Call call{.kernel = op.kernel,
              .attributes = NumberOperand{},
              .inputs = left ? std::vector{part, full} : std::vector{full, part},
              .outputs = {{type, shape}}};
    const auto out = call.run();
    std::vector<double> expected;
    for (std::int64_t i = 0; i < full.elements(); ++i) {
      const double a = full.at(i), b = part.at(broadcast_index(i, narrow, shape));
      expected.push_back(left ? op.formula(b, a) : op.formula(a, b));
    }
    CHECK(distance(out[0].list(), expected) < tolerance(type));
    std::vector<Buffer> in = {call.inputs[0].buffer(), call.inputs[1].buffer()};
    REQUIRE(
        op.kernel({.inputs = in, .outputs = {&in[left ? 1 : 0], 1}, .attributes = &call.attributes})
            .ok());
    CHECK(call.inputs[left ? 1 : 0].same_bits(out[0]));
  }
}

TEST_CASE("zip broadcasts both of its inputs at once") {
  Dice dice(4);
  for (const Binary& op : binaries) {
    const Shape a{3, 1, 5, 1}, b{4, 1, 6}, shape{3, 4, 5, 6};
    Call call{.kernel = op.kernel,
              .attributes = NumberOperand{},
              .inputs = {dice.tensor(DType::f64, a), dice.tensor(DType::f64, b, 1, 2)},
              .outputs = {{DType::f64, shape}}};
    const auto out = call.run();
    for (std::int64_t i = 0; i < 360; ++i)
      CHECK(out[0].at(i) == op.formula(call.inputs[0].at(broadcast_index(i, a, shape)),
                                       call.inputs[1].at(broadcast_index(i, b, shape))));
  }
}

TEST_CASE("zip takes a number on either side") {
  Dice dice(5);
  for (const Binary& op : binaries)
    for (DType type : {DType::f32, DType::f64})
      for (std::int64_t n : {0, 1, 5, 31, 50'000})
        for (auto position : {NumberOperand::left, NumberOperand::right}) {
          Call call{.kernel = op.kernel,
                    .attributes = NumberOperand{.value = 1.5, .position = position},
                    .inputs = {dice.tensor(type, {n}, 0.5, 2)},
                    .outputs = {{type, {n}}}};
          std::vector<double> expected = call.inputs[0].list();
          for (double& x : expected)
            x = position == NumberOperand::left ? op.formula(1.5, x) : op.formula(x, 1.5);
          CHECK(distance(call.run()[0].list(), expected) < tolerance(type));
        }
}

TEST_CASE("fill sets every element of every dtype") {
  for (DType type : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8})
    for (std::int64_t n : {0, 1, 17, 100'000}) {
      Call call{.kernel = cpu::fill, .attributes = FillAttributes{3}, .outputs = {{type, {n}}}};
      const std::vector<double> threes(static_cast<std::size_t>(n), 3.0);
      CHECK(call.run()[0].list() == threes);
    }
  const auto bits = [](DType type, double value) {
    Call call{.kernel = cpu::fill, .attributes = FillAttributes{value}, .outputs = {{type, {1}}}};
    auto out = call.run();
    return type == DType::boolean ? *out[0].as<std::uint8_t>() : *out[0].as<std::uint16_t>();
  };
  CHECK(bits(DType::boolean, 0.5) == 1);
  CHECK(bits(DType::boolean, 0) == 0);
  CHECK(bits(DType::bf16, 1) == 0x3F80);
  CHECK(bits(DType::bf16, 1.00390625) == 0x3F80);  // halfway, to even
  CHECK(bits(DType::bf16, 1.01171875) == 0x3F82);
  CHECK(bits(DType::f16, 1) == 0x3C00);
  CHECK(bits(DType::f16, -2) == 0xC000);
  CHECK(bits(DType::f16, 65504) == 0x7BFF);
  CHECK(bits(DType::f16, 65520) == 0x7C00);
  CHECK(bits(DType::f16, 1e9) == 0x7C00);
  CHECK(bits(DType::f16, 0x1p-24) == 0x0001);
  CHECK(bits(DType::f16, 0x1p-25) == 0x0000);
  CHECK(bits(DType::f16, 0x1.8p-25) == 0x0001);
  CHECK(bits(DType::f16, 0x1p-14) == 0x0400);
  CHECK(bits(DType::f16, 1 + 0x1p-11) == 0x3C00);
  CHECK(bits(DType::f16, 1 + 3 * 0x1p-11) == 0x3C02);
}

TEST_CASE("copy and cast keep every value that both dtypes can hold") {
  const DType types[] = {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8};
  for (DType from : types)
    for (DType to : types)
      for (std::int64_t n : {0, 1, 1000, 100'000}) {
        Call call{.kernel = from == to ? cpu::copy : cpu::cast,
                  .inputs = {values(from, {n},
                                    [](std::int64_t i) { return static_cast<double>(i % 200); })},
                  .outputs = {{to, {n}}}};
        CHECK(call.run()[0].list() == call.inputs[0].list());
      }
}

TEST_CASE("A cast of what the integer cannot hold gives the nearest one, and 0 for NaN") {
  const auto cast = [](DType to, double value) {
    Call call{.kernel = cpu::cast, .inputs = {scalar(value)}, .outputs = {{to, {}}}};
    return call.run()[0].at(0);
  };
  CHECK(cast(DType::i32, 1e20) == 2147483647.0);
  CHECK(cast(DType::i32, -1e20) == -2147483648.0);
  CHECK(cast(DType::i32, -2.9) == -2);
  CHECK(cast(DType::u8, -3) == 0);
  CHECK(cast(DType::u8, 300) == 255);
  CHECK(cast(DType::i64, std::nan("")) == 0);
  CHECK(cast(DType::boolean, 0.25) == 1);
  CHECK(cast(DType::boolean, std::nan("")) == 1);
}
