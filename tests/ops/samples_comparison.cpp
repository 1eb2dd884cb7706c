#include <algorithm>
#include <cmath>
#include <string>

#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/ops/comparison.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
void comparison_family(std::vector<Sample>& samples, References&, DType) {
  using enum Values;
  const auto compared = [&](const BinaryOpDef& op, Binary call, FunctionOfTwo f) {
    const std::size_t first = samples.size();
    const auto add = [&](const std::string& how, const SampleInput& a, const SampleInput& b) {
      samples.push_back(of_two(op.tensors, how, call, f, a, b));
      if (samples.size() > first + 1) samples.back().of_two = nullptr;
    };
    add("one shape", {{kOpen, 3}}, {{kOpen, 3}});
    add("a row on the right", {{kOpen, 3}}, {{3}});
    add("a column on the left", {{3, 1}}, {{kOpen, 3, 4}});
    add("both broadcast", {{kOpen, 1, 4}}, {{3, 1}});
    add("a scalar on the left", {{}}, {{kOpen, 2}});
    for (const DType dtype : {DType::i32, DType::i64, DType::u8}) {
      const std::string of = std::string(", ") + name(dtype);
      add("one shape" + of, {{kOpen, 5}, labels, dtype}, {{kOpen, 5}, labels, dtype});
      add("both broadcast" + of, {{kOpen, 1, 4}, labels, dtype}, {{3, 1}, labels, dtype});
      for (const double number : {2.0, 2.5})
        for (const bool left : {false, true})
          samples.push_back(beside(op, std::to_string(number) + of, call, f,
                                   {{kOpen, 7}, labels, dtype}, number, left));
    }
    add("bool", {{kOpen, 5}, flags}, {{5}, flags});
    for (const bool left : {false, true})
      samples.push_back(beside(op, "a number", call, f, {{kOpen, 3}}, 0.5, left));
    for (std::size_t i = first; i < samples.size(); ++i) {
      samples[i].order = 0;
      samples[i].any_dtype = true;
    }
  };
  compared(equal_op, equal, [](double a, double b) { return double(a == b); });
  compared(not_equal_op, not_equal, [](double a, double b) { return double(a != b); });
  compared(less_op, less, [](double a, double b) { return double(a < b); });
  compared(less_equal_op, less_equal, [](double a, double b) { return double(a <= b); });
  compared(greater_op, greater, [](double a, double b) { return double(a > b); });
  compared(greater_equal_op, greater_equal, [](double a, double b) { return double(a >= b); });

  const auto logical = [&](const OpDef& op, Binary call, FunctionOfTwo f) {
    for (const auto& [how, a, b] :
         {std::tuple{"one shape", Shape{kOpen, 3}, Shape{kOpen, 3}},
          std::tuple{"both broadcast", Shape{kOpen, 1, 4}, Shape{3, 1}}}) {
      samples.push_back(of_two(op, how, call, f, {a, flags}, {b, flags}));
      samples.back().order = 0;
      samples.back().of_two = nullptr;
    }
  };
  logical(logical_and_op, logical_and, [](double a, double b) { return a * b; });
  logical(logical_or_op, logical_or, [](double a, double b) { return std::max(a, b); });
  logical(logical_xor_op, logical_xor, [](double a, double b) { return std::abs(a - b); });

  const auto of_one = [&](const OpDef& op, Tensor (*call)(const Operand&), double (*f)(double),
                          const SampleInput& x) {
    samples.push_back(of_any_shape(op, "", {x}, EBB_CALL(call(in[0])), kNoGradient));
    samples.back().reference = [f](const Application& a) -> Arrays { return {map(a[0], f)}; };
  };
  of_one(logical_not_op, logical_not, [](double x) { return 1 - x; }, {{kOpen, 3}, flags});
  of_one(isnan_op, isnan, [](double x) { return double(std::isnan(x)); }, {{kOpen, 3}});
  of_one(isinf_op, isinf, [](double x) { return double(std::isinf(x)); }, {{kOpen, 3}});
  of_one(isfinite_op, isfinite, [](double x) { return double(std::isfinite(x)); }, {{kOpen, 3}});
}

}  // namespace ebb::tests
