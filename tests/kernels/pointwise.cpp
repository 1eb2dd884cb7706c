#include "ebb/core/kernels/pointwise.h"

#include <cmath>

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
