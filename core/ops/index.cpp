#include "ebb/core/ops/index.h"

#include "ebb/core/kernels/index.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/index_range.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

using Gradient = const GradientContext&;

struct OneHotAttributes {
  std::int64_t classes = 0;
  std::int64_t dtype = 0;
};

void require_indices(const Inference& inference, std::size_t i) {
  const DType dtype = inference.inputs[i].dtype;
  inference.require(dtype == DType::i32 || dtype == DType::i64, "indices must be i32 or i64");
}

// The shape of x with the indices' axes in place of the axis that they choose along.
Shape selected(const Inference& inference, const Shape& x, const Shape& indices) {
  const auto axis = static_cast<int>(inference.attribute<IndexAttributes>().axis);
  if (axis < 0 || axis >= x.rank()) inference.fail("there is no axis " + std::to_string(axis));
  if (x.rank() - 1 + indices.rank() > kMaxRank)
    inference.fail("the result would have more than " + std::to_string(kMaxRank) + " axes");
  Shape out;
  for (int i = 0; i < axis; ++i) out.push_back(x.dim(i));
  for (int i = 0; i < indices.rank(); ++i) out.push_back(indices.dim(i));
  for (int i = axis + 1; i < x.rank(); ++i) out.push_back(x.dim(i));
  return out;
}

void infer_index_select(Inference& inference) {
  require_indices(inference, 1);
  const Spec& x = inference.inputs[0];
  inference.output(x.dtype, selected(inference, x.shape, inference.inputs[1].shape));
}

// Inputs: values to add, indices, and x, of which only the shape counts.
void infer_index_select_backward(Inference& inference) {
  require_indices(inference, 1);
  const Spec &dy = inference.inputs[0], &x = inference.inputs[2];
  if (!is_floating(dy.dtype)) inference.fail(detail::kTakesFloating);
  inference.require(x.dtype == dy.dtype, "takes inputs of one dtype (cast() converts)");
  inference.require(
      detail::may_equal(dy.shape, selected(inference, x.shape, inference.inputs[1].shape)),
      "the first shape is not that of the parts");
  inference.output(x.dtype, x.shape);
}

// The rule of index_add(x, indices, values).
void infer_index_add(Inference& inference) {
  require_indices(inference, 1);
  const Spec &x = inference.inputs[0], &values = inference.inputs[2];
  if (!is_floating(x.dtype)) inference.fail(detail::kTakesFloating);
  inference.require(values.dtype == x.dtype, "takes inputs of one dtype (cast() converts)");
  inference.require(
      detail::may_equal(values.shape, selected(inference, x.shape, inference.inputs[1].shape)),
      "the values have not the shape of the parts");
}
constexpr OpDef index_add_function{.name = "index_add", .infer = infer_index_add};

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

// The axis counted from the front; one out of range is left to the shape rule.
IndexAttributes along(const Tensor& x, int axis, const IndexOptions& options) {
  const int front = axis < 0 && axis >= -x.rank() ? axis + x.rank() : axis;
  return detail::index_attributes(index_select_op, front, options);
}

}  // namespace

Tensor index_select(const Operand& x, const Operand& indices, int axis,
                    const IndexOptions& options) {
  detail::tensor_of(index_select_op, indices);
  const IndexAttributes attributes = along(detail::tensor_of(index_select_op, x), axis, options);
  return apply_one(index_select_op, {x, indices}, attributes, x.site());
}

Tensor embedding(const Operand& table, const Operand& indices, const IndexOptions& options) {
  const detail::CalledScope called("embedding");
  const Tensor& rows = detail::tensor_of(index_select_op, table);
  if (rows.rank() != 2)
    detail::fail(index_select_op, "takes a table [rows, features]", rows, table.site());
  return index_select(table, indices, 0, options);
}

Tensor index_add(const Operand& x, const Operand& indices, const Operand& values, int axis,
                 const IndexOptions& options) {
  const detail::CalledScope called("index_add");
  const IndexAttributes attributes = along(detail::tensor_of(index_add_function, x), axis, options);
  const Operand* const operands[] = {&x, &indices, &values};
  detail::check(index_add_function, operands, attributes, x.site());
  const Input like(x.tensor());
  return add(x, {apply_one(index_select_backward_op, {values, indices, like}, attributes, x.site()),
                 x.site()});
}

Tensor one_hot(const Operand& indices, std::int64_t classes, DType dtype) {
  return detail::apply_to(one_hot_op, indices,
                          OneHotAttributes{classes, static_cast<std::int64_t>(dtype)});
}

constinit const OpDef index_select_op{
    .name = "index_select",
    .infer = infer_index_select,
    .gradient = [](Gradient g) -> Tensors {
      if (!is_floating(g.x(0).dtype())) return {{}, {}};
      const Tensor x = g.x(0);
      return {
          apply_one(index_select_backward_op, {g.dy(), g.x(1), x}, g.node().attributes, g.site()),
          {}};
    },
    .keeps = input(1),
    .indices = detail::indices_into<0>,
    .selects = true,
    .cpu = {cpu::index_select},
    .cuda = {cuda::index_select}};

constinit const OpDef index_select_backward_op{
    .name = "index_select_backward",
    .infer = infer_index_select_backward,
    .gradient = [](Gradient g) -> Tensors {
      return {apply_one(index_select_op, {g.dy(), g.x(1)}, detail::of_what_is_added(g), g.site()),
              {},
              {}};
    },
    .keeps = input(1),
    .shape_only = bit(2),
    .indices = detail::indices_into<2>,
    .cpu = {cpu::index_select_backward, cpu::index_select_backward_memory},
    .cuda = {cuda::index_select_backward}};

constinit const OpDef one_hot_op{
    .name = "one_hot", .infer = infer_one_hot, .cpu = {cpu::one_hot}, .cuda = {cuda::one_hot}};

}  // namespace ebb
