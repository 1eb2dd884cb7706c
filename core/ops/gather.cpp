#include "ebb/core/kernels/index.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/index.h"
#include "ebb/core/ops/index_range.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

using Gradient = const GradientContext&;

// The shape of the indices, which has x's sizes except along the axis; open sizes are taken from x.
Shape gathered(const Inference& inference, const Shape& x, const Spec& indices) {
  inference.require(indices.dtype == DType::i32 || indices.dtype == DType::i64,
                    "indices must be i32 or i64");
  const auto axis = static_cast<int>(inference.attribute<IndexAttributes>().axis);
  if (axis < 0 || axis >= x.rank()) inference.fail("there is no axis " + std::to_string(axis));
  Shape like = x;
  if (indices.shape.rank() == x.rank()) like.set(axis, indices.shape.dim(axis));
  if (!detail::may_equal(like, indices.shape))
    inference.fail("indices must have the shape of x but for axis " + std::to_string(axis));
  return detail::merge(indices.shape, like);
}

void infer_gather(Inference& inference) {
  const Spec& x = inference.inputs[0];
  inference.output(x.dtype, gathered(inference, x.shape, inference.inputs[1]));
}

// Inputs: values to add, indices, and x, of which only the shape counts.
void infer_gather_backward(Inference& inference) {
  const Spec &dy = inference.inputs[0], &x = inference.inputs[2];
  if (!is_floating(dy.dtype)) inference.fail(detail::kTakesFloating);
  inference.require(x.dtype == dy.dtype, "takes inputs of one dtype (cast() converts)");
  inference.require(detail::may_equal(dy.shape, gathered(inference, x.shape, inference.inputs[1])),
                    "updates must have the shape of the indices");
  inference.output(x.dtype, x.shape);
}

// The rule of scatter_add(x, indices, updates).
void infer_scatter_add(Inference& inference) {
  const Spec &x = inference.inputs[0], &updates = inference.inputs[2];
  if (!is_floating(x.dtype)) inference.fail(detail::kTakesFloating);
  inference.require(updates.dtype == x.dtype, "takes inputs of one dtype (cast() converts)");
  inference.require(
      detail::may_equal(updates.shape, gathered(inference, x.shape, inference.inputs[1])),
      "updates must have the shape of the indices");
}
constexpr OpDef scatter_add_function{.name = "scatter_add", .infer = infer_scatter_add};

void infer_pick(Inference& inference) {
  const Spec &x = inference.inputs[0], &indices = inference.inputs[1];
  inference.require(indices.dtype == DType::i32 || indices.dtype == DType::i64,
                    "indices must be i32 or i64");
  inference.require(x.shape.rank() >= 1, "takes a tensor of at least one axis");
  Shape rows;
  for (int i = 0; i + 1 < x.shape.rank(); ++i) rows.push_back(x.shape.dim(i));
  inference.require(detail::may_equal(rows, indices.shape),
                    "there must be one index for each row of the last axis");
}
constexpr OpDef pick_function{.name = "pick", .infer = infer_pick};

// pick() gives each index an axis of its own.
template <std::size_t kChosenFrom>
IndexRange gather_indices(const KernelContext& context) {
  IndexRange range = detail::indices_into<kChosenFrom>(context);
  range.adds_axis = range.function == pick_function.name;
  return range;
}

}  // namespace

Tensor gather(const Operand& x, int axis, const Operand& indices, const IndexOptions& options) {
  const IndexAttributes attributes =
      detail::index_attributes(gather_op, detail::axis_of(gather_op, axis, x), options);
  detail::tensor_of(gather_op, indices);
  return apply_one(gather_op, {x, indices}, attributes, x.site());
}

Tensor pick(const Operand& x, const Operand& indices, const IndexOptions& options) {
  const detail::CalledScope called(pick_function.name);
  const Operand* const operands[] = {&x, &indices};
  detail::check(pick_function, operands, {}, x.site());
  const CallSite site = x.site();
  return squeeze({gather(x, -1, {unsqueeze({indices.take(), site}, -1), site}, options), site}, -1);
}

Tensor scatter_add(const Operand& x, int axis, const Operand& indices, const Operand& updates,
                   const IndexOptions& options) {
  const detail::CalledScope called("scatter_add");
  const IndexAttributes attributes = detail::index_attributes(
      scatter_add_function, detail::axis_of(scatter_add_function, axis, x), options);
  const Operand* const operands[] = {&x, &indices, &updates};
  detail::check(scatter_add_function, operands, attributes, x.site());
  const Input like(x.tensor());
  return add(
      x, {apply_one(gather_backward_op, {updates, indices, like}, attributes, x.site()), x.site()});
}

constinit const OpDef gather_op{
    .name = "gather",
    .infer = infer_gather,
    .gradient = [](Gradient g) -> Tensors {
      if (!is_floating(g.x(0).dtype())) return {{}, {}};
      const Tensor x = g.x(0);
      return {apply_one(gather_backward_op, {g.dy(), g.x(1), x}, g.node().attributes, g.site()),
              {}};
    },
    .keeps = input(1),
    .indices = gather_indices<0>,
    .selects = true,
    .cpu = {cpu::gather},
    .cuda = {cuda::gather}};

constinit const OpDef gather_backward_op{
    .name = "gather_backward",
    .infer = infer_gather_backward,
    .gradient = [](Gradient g) -> Tensors {
      return {
          apply_one(gather_op, {g.dy(), g.x(1)}, detail::of_what_is_added(g), g.site()), {}, {}};
    },
    .keeps = input(1),
    .shape_only = bit(2),
    .indices = gather_indices<2>,
    .cpu = {cpu::gather_backward, cpu::gather_backward_memory},
    .cuda = {cuda::gather_backward}};

}  // namespace ebb
