#include "ebb/core/ops/index.h"

#include "ebb/core/kernels/in_float.h"
#include "ebb/core/kernels/index.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/core/tensor/index_check.h"

namespace ebb {
namespace {

using Gradient = const GradientContext&;

struct OneHotAttributes {
  std::int64_t classes = 0;
  std::int64_t dtype = 0;
};

IndexAttributes along(const OpDef& op, const Operand& x, int axis, const IndexOptions& options) {
  return {.axis = detail::axis_of(op, axis, x),
          .check_labels = options.check_labels,
          .function = detail::called() ? detail::called() : op.name};
}

// The range of the indices, input 1, that choose along an axis of this input.
template <std::size_t kChosenFrom>
IndexRange indices_into(const KernelContext& context) {
  const auto& attributes = context.attribute<IndexAttributes>();
  return {.size = context.inputs[kChosenFrom].spec.shape.dim(static_cast<int>(attributes.axis)),
          .one_per_row = attributes.one_per_row != 0,
          .check_labels = attributes.check_labels != 0,
          .function = attributes.function};
}

void require_indices(const Inference& inference, std::size_t i) {
  const DType dtype = inference.inputs[i].dtype;
  inference.require(dtype == DType::i32 || dtype == DType::i64, "indices must be i32 or i64");
}

// The axis of x that indices choose along.
int axis_of(const Inference& inference, const Shape& x) {
  return detail::require_axis(inference, x, inference.attribute<IndexAttributes>().axis);
}

// The shapes of parts of x by indices, input 1. index_select: x's with the indices' axes in place
// of the axis that they choose along.
Shape selected(const Inference& inference, const Shape& x) {
  const int axis = axis_of(inference, x);
  return detail::replace_axes(inference, x, axis, axis + 1, inference.inputs[1].shape);
}
// gather: the indices', which has x's sizes except along the axis; open sizes are taken from x.
Shape gathered(const Inference& inference, const Shape& x) {
  const Shape& indices = inference.inputs[1].shape;
  const int axis = axis_of(inference, x);
  Shape like = x;
  if (indices.rank() == x.rank()) like.set(axis, indices.dim(axis));
  if (!detail::may_equal(like, indices))
    inference.fail("indices must have the shape of x but for axis " + std::to_string(axis));
  return detail::merge(indices, like);
}
using PartsOf = Shape(const Inference&, const Shape& x);

template <PartsOf parts_of>
void infer_parts(Inference& inference) {
  require_indices(inference, 1);
  const Spec& x = inference.inputs[0];
  inference.output(x.dtype, parts_of(inference, x.shape));
}

// The shape rule of values, input kValues, that are added to parts of input kTo, of which only the
// shape counts.
template <PartsOf parts_of, std::size_t kTo, std::size_t kValues>
void infer_added(Inference& inference) {
  require_indices(inference, 1);
  const Spec &to = inference.inputs[kTo], &added = inference.inputs[kValues];
  if (!is_floating(inference.inputs[0].dtype)) inference.fail(detail::kTakesFloating);
  inference.require(added.dtype == to.dtype, "takes inputs of one dtype (cast() converts)");
  inference.require(detail::may_equal(added.shape, parts_of(inference, to.shape)),
                    parts_of == gathered ? "updates must have the shape of the indices"
                    : kTo == 0           ? "the values have not the shape of the parts"
                                         : "the first shape is not that of the parts");
  inference.output(to.dtype, to.shape);
}

constexpr OpDef index_add_function{.name = "index_add", .infer = infer_added<selected, 0, 2>};
constexpr OpDef scatter_add_function{.name = "scatter_add", .infer = infer_added<gathered, 0, 2>};

void infer_pick(Inference& inference) {
  const Spec &x = inference.inputs[0], &indices = inference.inputs[1];
  require_indices(inference, 1);
  inference.require(x.shape.rank() >= 1, "takes a tensor of at least one axis");
  inference.require(detail::may_equal(detail::without_last(x.shape), indices.shape),
                    "there must be one index for each row of the last axis");
}
constexpr OpDef pick_function{.name = "pick", .infer = infer_pick};

void infer_one_hot(Inference& inference) {
  require_indices(inference, 0);
  const auto& attributes = inference.attribute<OneHotAttributes>();
  const Shape& indices = inference.inputs[0].shape;
  const auto dtype = static_cast<DType>(attributes.dtype);
  inference.require(attributes.classes >= 0, "takes a number of classes from 0");
  inference.require(is_floating(dtype), "gives f32, f64, f16 or bf16 (cast() converts)");
  inference.require(indices.rank() < kMaxRank, "the indices have too many axes");
  Shape out = indices;
  out.push_back(attributes.classes);
  inference.output(dtype, out);
}

// The gradient of values added at indices. On a GPU a value at an index out of range is dropped, so
// its gradient is 0, not NaN.
template <const OpDef& op>
Tensors gradient_of_added(Gradient g) {
  IndexAttributes attributes = g.attribute<IndexAttributes>();
  attributes.zero_outside = 1;
  return {apply_one(op, {g.dy(), g.x(1)}, attributes, g.site()), {}, {}};
}

// x with values added to its parts, which `function` checks and `backward` places.
Tensor add_parts(const OpDef& function, const OpDef& backward, const IndexAttributes& attributes,
                 const Operand& x, const Operand& indices, const Operand& values) {
  const detail::CalledScope called = detail::check(function, {x, indices, values}, attributes);
  const Input like(x.tensor());
  return add(x, {apply_one(backward, {values, indices, like}, attributes, x.site()), x.site()});
}

}  // namespace

Tensor index_select(const Operand& x, const Operand& indices, int axis,
                    const IndexOptions& options) {
  return detail::apply_to(index_select_op, {x, indices}, along(index_select_op, x, axis, options));
}

Tensor embedding(const Operand& table, const Operand& indices, const IndexOptions& options) {
  const detail::CalledScope called("embedding");
  const Tensor& rows = detail::tensor_of(index_select_op, table);
  if (rows.rank() != 2) detail::fail(index_select_op, "takes a table [rows, features]", table);
  return index_select(table, indices, 0, options);
}

Tensor index_add(const Operand& x, const Operand& indices, const Operand& values, int axis,
                 const IndexOptions& options) {
  return add_parts(index_add_function, index_select_backward_op,
                   along(index_add_function, x, axis, options), x, indices, values);
}

Tensor gather(const Operand& x, int axis, const Operand& indices, const IndexOptions& options) {
  return detail::apply_to(gather_op, {x, indices}, along(gather_op, x, axis, options));
}

Tensor pick(const Operand& x, const Operand& indices, const IndexOptions& options) {
  const detail::CalledScope called = detail::check(pick_function, {x, indices});
  const CallSite site = x.site();
  IndexAttributes attributes = along(gather_op, x, -1, options);
  attributes.one_per_row = 1;
  const Tensor column = unsqueeze({indices.take(), site}, -1);
  return squeeze({apply_one(gather_op, {x, column}, attributes, site), site}, -1);
}

Tensor scatter_add(const Operand& x, int axis, const Operand& indices, const Operand& updates,
                   const IndexOptions& options) {
  return add_parts(scatter_add_function, gather_backward_op,
                   along(scatter_add_function, x, axis, options), x, indices, updates);
}

Tensor one_hot(const Operand& indices, std::int64_t classes, DType dtype) {
  return detail::apply_to(one_hot_op, indices,
                          OneHotAttributes{classes, static_cast<std::int64_t>(dtype)});
}

constinit const OpDef index_select_op{
    .name = "index_select",
    .infer = infer_parts<selected>,
    .gradient = detail::gradient_by<index_select_backward_op, 1, 0>,
    .keeps = input(1),
    .indices = indices_into<0>,
    .selects = true,
    .cpu = {cpu::index_select},
    .cuda = {cuda::index_select}};

constinit const OpDef index_select_backward_op{
    .name = "index_select_backward",
    .infer = infer_added<selected, 2, 0>,
    .gradient = gradient_of_added<index_select_op>,
    .keeps = input(1),
    .shape_only = bit(2),
    .indices = indices_into<2>,
    .cpu = cpu::in_float<cpu::index_select_backward, nullptr, cpu::is_input<2>>,
    .cuda = {cuda::index_select_backward, cuda::index_select_backward_memory}};

constinit const OpDef gather_op{.name = "gather",
                                .infer = infer_parts<gathered>,
                                .gradient = detail::gradient_by<gather_backward_op, 1, 0>,
                                .keeps = input(1),
                                .indices = indices_into<0>,
                                .selects = true,
                                .cpu = {cpu::gather},
                                .cuda = {cuda::gather}};

constinit const OpDef gather_backward_op{
    .name = "gather_backward",
    .infer = infer_added<gathered, 2, 0>,
    .gradient = gradient_of_added<gather_op>,
    .keeps = input(1),
    .shape_only = bit(2),
    .indices = indices_into<2>,
    .cpu = cpu::in_float<cpu::gather_backward, nullptr, cpu::is_input<2>>,
    .cuda = {cuda::gather_backward}};

constinit const OpDef one_hot_op{
    .name = "one_hot", .infer = infer_one_hot, .cpu = {cpu::one_hot}, .cuda = {cuda::one_hot}};

}  // namespace ebb
