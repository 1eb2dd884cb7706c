#include "ebb/core/ops/arithmetic.h"

#include <cmath>

#include "ebb/core/base/error.h"
#include "ebb/core/kernels/functors/arithmetic.h"
#include "ebb/core/ops/pointwise_rules.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/core/tensor/tensor_impl.h"

namespace ebb {

#define EBB_FAMILY "ebb/core/kernels/functors/arithmetic.inc"
#include "ebb/core/ops/define_pointwise.inc"

Tensor add(const ListOf<Tensor>& tensors, CallSite site) {
  if (tensors.empty()) detail::refuse("add", "takes at least one tensor", site);
  const Tensors held(tensors.begin(), tensors.end());
  Tensor all = detail::tensor_of(add_op.tensors, {held[0], site});
  for (std::size_t i = 1; i < held.size(); ++i) all = add({std::move(all), site}, {held[i], site});
  return all;
}

namespace {
void require_rebindable(const Tensor& x, const char* op, const char* updates, const char* makes,
                        CallSite site) {
  const detail::TapeMode& mode = detail::tape_mode();
  if (!mode.no_grad || mode.tracing || !x.defined()) return;
  if (const Node* node = x.impl()->node.get(); !node || node->op != &leaf_op) return;
  detail::refuse(op,
                 std::string("under NoGrad leaves this parameter, or leaf, as it is and gives its "
                             "name to another tensor:\n") +
                     updates + " changes the parameter, " + makes + " makes another tensor",
                 site);
}
}  // namespace

Tensor& operator+=(Tensor& x, const Operand& y) {
  require_rebindable(x, "+=", "add_assign(t, y)", "t = t + y", y.site());
  return x = add({x, y.site()}, y);
}
Tensor& operator-=(Tensor& x, const Operand& y) {
  require_rebindable(x, "-=", "add_assign(t, -y)", "t = t - y", y.site());
  return x = subtract({x, y.site()}, y);
}
Tensor& operator*=(Tensor& x, const Operand& y) {
  require_rebindable(x, "*=", "assign(t, t * y)", "t = t * y", y.site());
  return x = multiply({x, y.site()}, y);
}
Tensor& operator/=(Tensor& x, const Operand& y) {
  require_rebindable(x, "/=", "assign(t, t / y)", "t = t / y", y.site());
  return x = divide({x, y.site()}, y);
}

using detail::binary, detail::binary_number, detail::first_dy, detail::for_both, detail::from_x,
    detail::from_y, detail::Gradient, detail::number, detail::unary, detail::unary_number;

// A quotient of integers would be no integer.
static void infer_division(Inference& inference) {
  detail::infer_numbers(inference);
  if (!is_floating(inference.inputs[0].dtype))
    inference.fail(
        "divides f32, f64, f16 or bf16 (cast() converts, floor_divide() divides integers)");
}

// x op n, and n op x where that is the same, are x for this n, bit for bit.
template <int n>
static constexpr BinaryOpDef with_neutral(BinaryOpDef ops, bool on_both_sides = false) {
  const auto is_neutral = [](const MemoryQuery& query) {
    const double number = query.attribute<NumberOperand>().value;
    return number == n && !std::signbit(number);  // x - -0 is 0 for -0
  };
  ops.number_right.is_identity = is_neutral;
  if (on_both_sides) ops.number_left.is_identity = is_neutral;
  return ops;
}

static constexpr detail::GradientRule kPassesOn = {.gradient = detail::passes_on};
static constexpr detail::GradientRule kTimesNumber = {
    .gradient = [](Gradient g) -> Tensors { return {g.take_dy() * number(g)}; }};

constinit const BinaryOpDef add_op =
    binary_number<functors::Add>("add", {.tensors = {.gradient = [](Gradient g) -> Tensors {
                                           const auto same = [](Operand dy) { return dy; };
                                           return for_both(g, same, same);
                                         }},
                                         .number_right = kPassesOn,
                                         .number_left = kPassesOn});

constinit const BinaryOpDef subtract_op = with_neutral<0>(binary_number<functors::Subtract>(
    "subtract",
    {.tensors = {.gradient = [](Gradient g) -> Tensors {
       return {g.wants(0) ? sum_like(first_dy(g), g.x(0)) : Tensor(),
               g.wants(1) ? -sum_like(g.take_dy(), g.x(1)) : Tensor()};
     }},
     .number_right = kPassesOn,
     .number_left = {.gradient = [](Gradient g) -> Tensors { return {-g.take_dy()}; }}}));

// A mask is cast to the dtype of the other operand.
static std::optional<DType> masked_dtype(DType a, DType b) {
  if (a == DType::boolean) return b;
  if (b == DType::boolean) return a;
  return {};
}

// Each factor's gradient reads the other factor.
constinit const BinaryOpDef multiply_op =
    with_neutral<1>(binary_number<functors::Multiply>(
                        "multiply",
                        {.tensors = {.gradient = [](Gradient g) -> Tensors {
                                       return for_both(
                                           g, [&](Operand dy) { return dy * g.take_x(1); },
                                           [&](Operand dy) { return dy * g.take_x(0); });
                                     },
                                     .keeps_input = detail::other_factor},
                         .number_right = kTimesNumber,
                         .number_left = kTimesNumber},
                        detail::infer_numbers, masked_dtype),
                    true);

constinit const BinaryOpDef divide_op = with_neutral<1>(binary<functors::Divide>(
    "divide",
    {.tensors = {.gradient = [](Gradient g) -> Tensors {
                   Tensor quotient = g.take_dy() / g.take_x(1), da, db;
                   if (g.wants(0)) da = sum_like(quotient, g.x(0));
                   if (g.wants(1)) db = -sum_like(std::move(quotient) * g.take_y(), g.x(1));
                   return {da, db};
                 },
                 .keeps = input(1),
                 .keeps_output = [](std::size_t, const IndexSet& wants) { return wants.has(1); }},
     .number_right = {.gradient = [](Gradient g) -> Tensors { return {g.take_dy() / number(g)}; }},
     .number_left = {.gradient = [](Gradient g) -> Tensors {
                       return {g.take_dy() * (-number(g) / g.x(0)) / g.x(0)};
                     },
                     .keeps = input(0)}},
    infer_division, infer_division));

constinit const OpDef negate_op = unary_number<functors::Negate>(
    "negate", {.gradient = [](Gradient g) -> Tensors { return {-g.take_dy()}; }});

constinit const OpDef square_op =
    unary<functors::Square>("square", from_x([](Operand dy, Operand x) { return dy * 2 * x; }));
constinit const OpDef sqrt_op =
    unary<functors::Sqrt>("sqrt", from_y([](Operand dy, Operand y) { return dy * 0.5 / y; }));

}  // namespace ebb
