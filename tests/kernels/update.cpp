#include "ebb/core/kernels/update.h"

#include "ebb/tests/kernels/fixture.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

Values flag(bool value) {
  return values(DType::boolean, {}, [&](std::int64_t) { return value; });
}

}  // namespace

TEST_CASE("Counts count, and gates open when they are reached") {
  Call up{.kernel = cpu::increment,
          .attributes = CountAttributes{.value = 3, .gated = 1},
          .inputs = {scalar(std::int64_t{4}), flag(false)}};
  up.run();
  CHECK(up.inputs[0].at(0) == 4);
  up.inputs[1] = flag(true);
  up.run();
  CHECK(up.inputs[0].at(0) == 7);
  Call add{.kernel = cpu::add_count, .inputs = {scalar(std::int64_t{4}), scalar(std::int64_t{38})}};
  add.run();
  CHECK(add.inputs[0].at(0) == 42);
  for (std::int64_t n : {41, 42, 43}) {
    Call gate{.kernel = cpu::at_least,
              .attributes = CountAttributes{.value = 42},
              .inputs = {scalar(n)},
              .outputs = {{DType::boolean, {}}}};
    CHECK(gate.run()[0].at(0) == (n >= 42));
  }
}

TEST_CASE("add_assign, assign, assign_if and clear_if change their first input as they say") {
  Dice dice(3);
  for (DType type : {DType::f32, DType::f64})
    for (std::int64_t n : {0, 1, 19, 40'000}) {
      const Values a = dice.tensor(type, {n}), b = dice.tensor(type, {n});
      const auto check = [&](Kernel kernel, std::vector<Values> inputs,
                             double (*formula)(double, double)) {
        std::vector<double> expected;
        for (std::int64_t i = 0; i < n; ++i) expected.push_back(formula(a.at(i), b.at(i)));
        Call call{.kernel = kernel, .inputs = std::move(inputs)};
        call.run();
        CHECK(distance(call.inputs[0].list(), expected) < tolerance(type));
      };
      check(cpu::add_assign, {a, b}, [](double x, double y) { return x + y; });
      check(cpu::assign, {a, b}, [](double, double y) { return y; });
      check(cpu::assign_if, {a, b, flag(true)}, [](double, double y) { return y; });
      check(cpu::assign_if, {a, b, flag(false)}, [](double x, double) { return x; });
      check(cpu::clear_if, {a, flag(true)}, [](double, double) { return 0.0; });
      check(cpu::clear_if, {a, flag(false)}, [](double x, double) { return x; });
    }
}
