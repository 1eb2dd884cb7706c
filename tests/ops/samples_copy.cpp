#include <cmath>
#include <utility>

#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/fill.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

Arrays same(const Application& a) { return {a[0]}; }

double converted(double x, DType to) {
  if (is_floating(to)) return x;
  return to == DType::boolean ? (x != 0 ? 1 : 0) : std::trunc(x);
}

Arrays converted_to_output(const Application& a) {
  const DType to = a.outputs[0].dtype;
  return {map(a[0], [=](double x) { return converted(x, to); })};
}

}  // namespace

void copy_family(std::vector<Sample>& samples, References&, DType) {
  const auto add = [&](const OpDef& op, const char* how, int order,
                       std::function<Tensors(const Tensors&)> call,
                       std::function<Arrays(const Application&)> reference) {
    samples.push_back(moving_sample(op, how, {{{kOpen, 3}}}, std::move(call), true));
    samples.back().order = order;
    samples.back().reference = std::move(reference);
  };
  add(fill_like_op, "", kNoGradient, EBB_CALL(fill_like(in[0], 7)),
      [](const Application& a) -> Arrays {
        const double n = a.attribute<FillAttributes>().value;
        return {map(a[0], [=](double) { return n; })};
      });
  add(copy_op, "", 2, EBB_CALL(copy(in[0])), same);
  // No operator in eager mode: only the handle changes.
  add(detach_op, "", kNoGradient, EBB_CALL(in[0].detach()), same);
  add(cast_op, "to i32", kNoGradient, EBB_CALL(cast(in[0], DType::i32)), converted_to_output);
  // The gradient is too coarse for differences; tests/ops/values.cpp checks it.
  add(cast_op, "between f32 and f64", kNoGradient,
      EBB_CALL(cast(in[0], in[0].dtype() == DType::f32 ? DType::f64 : DType::f32)),
      converted_to_output);
  add(cast_op, "to 16 bits", kNoGradient,
      EBB_CALL(cast(in[0], in[0].dtype() == DType::bf16 ? DType::f16 : DType::bf16)),
      converted_to_output);
}

}  // namespace ebb::tests
