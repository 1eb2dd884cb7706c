#include "ebb/core/ops/scan.h"

#include <utility>

#include "ebb/core/kernels/scan.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/comparison.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/order.h"
#include "ebb/core/ops/rounding.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/core/ops/where.h"

namespace ebb {
namespace {

using Gradient = const GradientContext&;

void infer_scan(Inference& inference) {
  const DType dtype = inference.inputs[0].dtype;
  inference.require(is_floating(dtype) || dtype == DType::i32 || dtype == DType::i64,
                    "takes f32, f64, f16, bf16, i32 or i64 (cast() converts)");
  const auto axis = inference.attribute<ScanAttributes>().axis;
  if (axis < 0 || axis >= inference.inputs[0].shape.rank())
    inference.fail("there is no axis " + std::to_string(axis));
  detail::output_like_first(inference);
}

Tensor scan(const OpDef& op, const Operand& x, int axis, const CumsumOptions& options,
            bool product) {
  return detail::apply_to(op, x,
                          ScanAttributes{.axis = detail::axis_of(op, axis, x),
                                         .exclusive = options.exclusive,
                                         .reverse = options.reverse,
                                         .product = product});
}

// What dy is for x, y being its running products: for each element the sum of dy times the product
// of the others, over the products that it is in. Up to the first zero of a row that is dy y, added
// up from the end, by x; for the zero itself and what follows it, y is made with 1 in its place.
// After it all is 0, which `zero`, the zero itself, stands for: its gradient is what is multiplied
// with it. So too with the second one. `finite` is there since 0 times infinity is none.
Tensor cumprod_gradient(const Tensor& x, const Tensor& dy, const ScanAttributes& how) {
  const CumsumOptions along{.exclusive = how.exclusive != 0, .reverse = how.reverse != 0},
      back{.exclusive = along.exclusive, .reverse = !along.reverse},
      through{.exclusive = false, .reverse = along.reverse};
  const auto total = [&](Tensor of) {
    return cumsum(dy * cumprod(std::move(of), how.axis, along), how.axis, back);
  };
  const auto finite = [](Tensor of) {
    const Tensor overflows = isinf(of);
    return masked_fill(std::move(of), overflows, 0);
  };
  const Tensor is_zero = x == 0, zeros = cumsum(cast(is_zero, DType::i32), how.axis, through);
  const Tensor is_first = logical_and(is_zero, zeros == 1),
               is_second = logical_and(is_zero, zeros == 2);
  Tensor without_first = where(is_first, 1, x);
  Tensor zero = cumsum(where(is_first, x, 0), how.axis, through);
  Tensor after_first = total(without_first);
  Tensor of_zero = finite(total(where(is_second, 1, std::move(without_first))));
  of_zero = where(is_second, zero * std::move(of_zero), 0);
  of_zero = where(is_first, after_first, std::move(of_zero));
  Tensor of_other = std::move(zero) * finite(std::move(after_first));
  of_other = where(zeros == 1, std::move(of_other), 0);
  of_other = where(zeros == 0, total(x), std::move(of_other));
  of_other = std::move(of_other) / where(is_zero, 1, x);
  return where(is_zero, std::move(of_zero), std::move(of_other));
}

}  // namespace

Tensor cumsum(const Operand& x, int axis, const CumsumOptions& options) {
  return scan(cumsum_op, x, axis, options, false);
}
Tensor cumprod(const Operand& x, int axis, const CumprodOptions& options) {
  return scan(cumprod_op, x, axis, options, true);
}

constinit const OpDef cumsum_op{.name = "cumsum",
                                .infer = infer_scan,
                                .gradient = [](Gradient g) -> Tensors {
                                  ScanAttributes how = g.attribute<ScanAttributes>();
                                  how.reverse = how.reverse == 0;
                                  return {apply_one(cumsum_op, {g.take_dy()}, how, g.site())};
                                },
                                .takes_over = bit(0),
                                .cpu = {cpu::scan},
                                .cuda = {cuda::scan}};

// Of 16 bits the gradient is computed in float.
constinit const OpDef cumprod_op{
    .name = "cumprod",
    .infer = infer_scan,
    .gradient = [](Gradient g) -> Tensors {
      const DType dtype = g.x(0).dtype();
      const auto& how = g.attribute<ScanAttributes>();
      if (!is_half(dtype)) return {cumprod_gradient(g.take_x(0), g.take_dy(), how)};
      return {
          cast(cumprod_gradient(cast(g.take_x(0), DType::f32), cast(g.take_dy(), DType::f32), how),
               dtype)};
    },
    .keeps = input(0),
    .takes_over = bit(0),
    .cpu = {cpu::scan},
    .cuda = {cuda::scan}};

}  // namespace ebb
