#include "ebb/core/ops/scan.h"

#include <utility>

#include "ebb/core/kernels/scan.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

using Gradient = const GradientContext&;

void infer_scan(Inference& inference) {
  const DType dtype = inference.inputs[0].dtype;
  inference.require(is_floating(dtype) || dtype == DType::i32 || dtype == DType::i64,
                    "takes f32, f64, f16, bf16, i32 or i64 (cast() converts)");
  detail::require_axis(inference, inference.inputs[0].shape,
                       inference.attribute<ScanAttributes>().axis);
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

void infer_recurrence(Inference& inference) {
  for (const Spec& input : inference.inputs)
    inference.require(
        input.dtype == DType::f64 && detail::may_equal(input.shape, inference.inputs[0].shape),
        "takes inputs of f64 and one shape");
  detail::output_like_first(inference);
}

// y_k = w_k c_k with c_0 = 0, c_k+1 = a_k c_k + b_k; without b, products from c_0 = 1. Either of b
// and w need not be defined().
Tensor recurrence(Tensor a, Tensor b, Tensor w, int axis, bool reverse) {
  const RecurrenceAttributes how{
      .axis = axis, .reverse = reverse, .has_sum = b.defined(), .has_weight = w.defined()};
  InlineVector<Input, 3> inputs{Operand(std::move(a))};
  if (how.has_sum) inputs.push_back(Operand(std::move(b)));
  if (how.has_weight) inputs.push_back(Operand(std::move(w)));
  return apply_one(recurrence_op, inputs, how, CallSite::here());
}

// With y = w c, dw = dy c. The gradient dy w of c runs backwards through the same recurrence, as t:
// the gradient of b_k is t_k, and of a_k it is t_k c_k.
Tensors recurrence_gradient(Gradient g) {
  const auto& how = g.attribute<RecurrenceAttributes>();
  const bool reverse = how.reverse != 0;
  const int last = g.inputs() - 1;
  const Tensor a = g.x(0), b = how.has_sum ? g.x(1) : Tensor();
  Tensors all(static_cast<std::size_t>(g.inputs()));
  if (how.has_weight && g.wants(last)) all.back() = recurrence(a, b, g.dy(), how.axis, reverse);
  if (!g.wants(0) && !(how.has_sum && g.wants(1))) return all;
  const Tensor t =
      recurrence(a, how.has_weight ? g.dy() * g.x(last) : g.dy(), {}, how.axis, !reverse);
  if (g.wants(0)) all[0] = recurrence(a, b, t, how.axis, reverse);
  if (how.has_sum) all[1] = t;
  return all;
}

// The gradient of x_i is the product of the elements before it, times the sum over later products
// of dy and the factors between: the sums run backwards.
Tensor cumprod_gradient(Tensor x, Tensor dy, const ScanAttributes& how) {
  const bool reverse = how.reverse != 0;
  if (how.exclusive != 0)
    dy = recurrence(x, std::move(dy), {}, how.axis, !reverse);
  else
    dy = recurrence(x, x * dy, {}, how.axis, !reverse) + std::move(dy);
  return recurrence(std::move(x), {}, std::move(dy), how.axis, reverse);
}

}  // namespace

Tensor cumsum(const Operand& x, int axis, const CumsumOptions& options) {
  return scan(cumsum_op, x, axis, options, false);
}
Tensor cumprod(const Operand& x, int axis, const CumprodOptions& options) {
  return scan(cumprod_op, x, axis, options, true);
}

Tensor detail::products_of_others(const Tensor& x, int axis) {
  return recurrence(x, {}, recurrence(x, {}, {}, axis, false), axis, true);
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
                                .cuda = {cuda::scan, cuda::scan_memory}};

// The gradient is computed in f64: the products before and after an element may each be out of
// range where their product is not.
constinit const OpDef cumprod_op{
    .name = "cumprod",
    .infer = infer_scan,
    .gradient = [](Gradient g) -> Tensors {
      const DType dtype = g.dy().dtype();
      Tensor x = cast(g.take_x(0), DType::f64), dy = cast(g.take_dy(), DType::f64);
      return {cast(cumprod_gradient(std::move(x), std::move(dy), g.attribute<ScanAttributes>()),
                   dtype)};
    },
    .keeps = input(0),
    .takes_over = bit(0),
    .cpu = {cpu::scan},
    .cuda = {cuda::scan, cuda::scan_memory}};

constinit const OpDef recurrence_op{.name = "recurrence",
                                    .infer = infer_recurrence,
                                    .gradient = recurrence_gradient,
                                    .keeps = {kAll},
                                    .takes_over = kAll,
                                    .cpu = {cpu::recurrence},
                                    .cuda = {cuda::recurrence, cuda::recurrence_memory}};

}  // namespace ebb
