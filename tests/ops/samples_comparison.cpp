#include <algorithm>
#include <cmath>
#include <string>

#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/ops/comparison.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

using Binary = Tensor (*)(const Operand&, const Operand&);
using OfTwo = double (*)(double, double);

Sample of_two(const OpDef& op, const std::string& how, Binary call, OfTwo f, const SampleInput& a,
              const SampleInput& b) {
  return {.op = &op,
          .name = std::string(op.name) + ", " + how,
          .inputs = {a, b},
          .call = EBB_CALL(call(in[0], in[1])),
          .order = 0,
          .any_dtype = true,
          .any_shape = true,
          .reference = [f](const Application& x) -> Arrays { return {zip(x[0], x[1], f)}; }};
}

// Sample with a tensor and a number, which the operator holds as a double.
Sample beside(const BinaryOpDef& op, const std::string& how, Binary call, OfTwo f,
              const SampleInput& x, double number, bool left) {
  const OpDef& of_one = left ? op.number_left : op.number_right;
  return {.op = &of_one,
          .name = std::string(of_one.name) + ", " + how + (left ? " on the right" : " on the left"),
          .inputs = {x},
          .call = EBB_CALL(left ? call(number, in[0]) : call(in[0], number)),
          .order = 0,
          .any_dtype = true,
          .any_shape = true,
          .reference = [=](const Application& a) -> Arrays {
            const double n = a.attribute<NumberOperand>().value;
            return {map(a[0], [=](double y) { return left ? f(n, y) : f(y, n); })};
          }};
}

}  // namespace

void add_comparison_samples(std::vector<Sample>& samples) {
  using enum Values;
  const auto compared = [&](const BinaryOpDef& op, Binary call, OfTwo f) {
    const auto add = [&](const char* how, const SampleInput& a, const SampleInput& b) {
      samples.push_back(of_two(op.tensors, how, call, f, a, b));
    };
    add("one shape", {{kOpen, 3}}, {{kOpen, 3}});
    samples.back().of_two = f;
    add("a row on the right", {{kOpen, 3}}, {{3}});
    add("a column on the left", {{3, 1}}, {{kOpen, 3, 4}});
    add("both broadcast", {{kOpen, 1, 4}}, {{3, 1}});
    add("a scalar on the left", {{}}, {{kOpen, 2}});
    for (const DType dtype : {DType::i32, DType::i64, DType::u8}) {
      const std::string of = std::string(", ") + name(dtype);
      add(("one shape" + of).c_str(), {{kOpen, 5}, labels, dtype}, {{kOpen, 5}, labels, dtype});
      add(("both broadcast" + of).c_str(), {{kOpen, 1, 4}, labels, dtype}, {{3, 1}, labels, dtype});
      for (const double number : {2.0, 2.5})
        for (const bool left : {false, true})
          samples.push_back(beside(op, std::to_string(number) + of, call, f,
                                   {{kOpen, 7}, labels, dtype}, number, left));
    }
    add("bool", {{kOpen, 5}, flags}, {{5}, flags});
    for (const bool left : {false, true})
      samples.push_back(beside(op, "a number", call, f, {{kOpen, 3}}, 0.5, left));
  };
  compared(equal_op, equal, [](double a, double b) { return double(a == b); });
  compared(not_equal_op, not_equal, [](double a, double b) { return double(a != b); });
  compared(less_op, less, [](double a, double b) { return double(a < b); });
  compared(less_equal_op, less_equal, [](double a, double b) { return double(a <= b); });
  compared(greater_op, greater, [](double a, double b) { return double(a > b); });
  compared(greater_equal_op, greater_equal, [](double a, double b) { return double(a >= b); });

  const auto logical = [&](const OpDef& op, Binary call, OfTwo f) {
    samples.push_back(of_two(op, "one shape", call, f, {{kOpen, 3}, flags}, {{kOpen, 3}, flags}));
    samples.push_back(
        of_two(op, "both broadcast", call, f, {{kOpen, 1, 4}, flags}, {{3, 1}, flags}));
    for (std::size_t i = samples.size() - 2; i < samples.size(); ++i) samples[i].any_dtype = false;
  };
  logical(logical_and_op, logical_and, [](double a, double b) { return a * b; });
  logical(logical_or_op, logical_or, [](double a, double b) { return std::max(a, b); });
  logical(logical_xor_op, logical_xor, [](double a, double b) { return std::abs(a - b); });

  const auto of_one = [&](const OpDef& op, Tensor (*call)(const Operand&), double (*f)(double),
                          const SampleInput& x) {
    samples.push_back(
        {.op = &op,
         .name = op.name,
         .inputs = {x},
         .call = EBB_CALL(call(in[0])),
         .order = 0,
         .any_shape = true,
         .reference = [f](const Application& a) -> Arrays { return {map(a[0], f)}; }});
  };
  of_one(logical_not_op, logical_not, [](double x) { return 1 - x; }, {{kOpen, 3}, flags});
  of_one(isnan_op, isnan, [](double x) { return double(std::isnan(x)); }, {{kOpen, 3}});
  of_one(isinf_op, isinf, [](double x) { return double(std::isinf(x)); }, {{kOpen, 3}});
  of_one(isfinite_op, isfinite, [](double x) { return double(std::isfinite(x)); }, {{kOpen, 3}});
}

}  // namespace ebb::tests
