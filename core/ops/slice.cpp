#include "ebb/core/kernels/slice.h"

#include <algorithm>

#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

using Gradient = const GradientContext&;

void infer_slice(Inference& inference) {
  const auto& attributes = inference.attribute<SliceAttributes>();
  const Spec& x = inference.inputs[0];
  inference.require(x.shape.rank() >= 1, "takes a tensor of at least one axis");
  Shape out = x.shape;
  if (x.shape.dim(0) != kOpen) {
    const std::int64_t begin = attributes.first(x.shape.dim(0));
    const std::int64_t end = attributes.last(x.shape.dim(0));
    if (begin < 0 || begin > end || end > x.shape.dim(0))
      inference.fail("rows " + std::to_string(attributes.begin) + " to " +
                     (attributes.end == kEnd ? "the end" : std::to_string(attributes.end)) +
                     " are out of range");
    out.set(0, end - begin);
  } else if (attributes.end != kEnd && (attributes.begin < 0) == (attributes.end < 0)) {
    out.set(0, std::max<std::int64_t>(attributes.end - attributes.begin, 0));
  }
  inference.output(x.dtype, out);
}

std::size_t slice_offset(const MemoryQuery& query) {
  const Spec& x = query.inputs[0];
  const std::int64_t rows = x.shape.dim(0);
  if (rows == 0) return 0;
  return static_cast<std::size_t>(query.attribute<SliceAttributes>().first(rows)) *
         (x.bytes() / static_cast<std::size_t>(rows));
}

void infer_select(Inference& inference) {
  const auto& attributes = inference.attribute<SelectAttributes>();
  const Spec& x = inference.inputs[0];
  const int axis = static_cast<int>(attributes.axis);
  if (axis < 0 || axis >= x.shape.rank())
    inference.fail("there is no axis " + std::to_string(axis));
  const std::int64_t size = x.shape.dim(axis);
  if (size != kOpen && (attributes.index < -size || attributes.index >= size))
    inference.fail("there is no index " + std::to_string(attributes.index) + " along axis " +
                   std::to_string(axis));
  Shape out;
  for (int i = 0; i < x.shape.rank(); ++i)
    if (i != axis) out.push_back(x.shape.dim(i));
  inference.output(x.dtype, out);
}

// The gradient of an operator that leaves elements out: dy at their places, zeros elsewhere.
template <void (*Forward)(Inference&)>
void infer_placing(Inference& inference) {
  Specs parts;
  Inference forward{inference.op, inference.inputs.subspan(1), inference.attributes, inference.site,
                    parts};
  Forward(forward);
  const Spec& dy = inference.inputs[0];
  inference.require(detail::may_equal(dy.shape, parts[0].shape),
                    "the first shape is not that of the part");
  inference.output(dy.dtype, inference.inputs[1].shape);
}

}  // namespace

Tensor slice(const Operand& x, std::int64_t begin, std::int64_t end) {
  return detail::apply_to(slice_op, x, SliceAttributes{begin, end});
}

Tensor select(const Operand& x, int axis, std::int64_t index) {
  const int rank = detail::tensor_of(select_op, x).rank();
  return detail::apply_to(select_op, x, SelectAttributes{axis < 0 ? axis + rank : axis, index});
}

Tensor Tensor::operator[](IndexAt i) const { return select({*this, i.site}, 0, i.index); }

Tensor last_step(const Operand& x) {
  const Tensor& tensor = detail::tensor_of(select_op, x);
  if (tensor.rank() != 3)
    detail::fail(select_op, "last_step takes [batch, time, feature]", tensor, x.site());
  return select(x, 1, -1);
}

Tensor size(const Operand& x, int axis) {
  const Tensor& tensor = detail::tensor_of(size_op, x);
  const int rank = tensor.rank();
  if (axis < -rank || axis >= rank)
    detail::fail(size_op, "there is no axis " + std::to_string(axis), tensor, x.site());
  return detail::apply_to(size_op, x, SizeAttributes{axis < 0 ? axis + rank : axis});
}

Tensor rows(const Operand& x) { return size(x, 0); }

constinit const OpDef slice_op{
    .name = "slice",
    .infer = infer_slice,
    .gradient = [](Gradient g) -> Tensors {
      const Tensor x = g.x(0);
      return {apply_one(slice_backward_op, {g.dy(), x}, g.node().attributes, g.site())};
    },
    .view = slice_offset,
    .is_identity = detail::keeps_shape};

constinit const OpDef slice_backward_op{
    .name = "slice_backward",
    .infer = infer_placing<infer_slice>,
    .gradient = [](Gradient g) -> Tensors {
      return {apply_one(slice_op, {g.dy()}, g.node().attributes, g.site()), {}};
    },
    .shape_only = bit(1),
    .is_identity = detail::keeps_shape,
    .cpu = {cpu::slice_backward},
    .cuda = {cuda::slice_backward}};

constinit const OpDef select_op{
    .name = "select",
    .infer = infer_select,
    .gradient = [](Gradient g) -> Tensors {
      const Tensor x = g.x(0);
      return {apply_one(select_backward_op, {g.dy(), x}, g.node().attributes, g.site())};
    },
    .cpu = {cpu::select},
    .cuda = {cuda::select}};

constinit const OpDef select_backward_op{
    .name = "select_backward",
    .infer = infer_placing<infer_select>,
    .gradient = [](Gradient g) -> Tensors {
      return {apply_one(select_op, {g.dy()}, g.node().attributes, g.site()), {}};
    },
    .shape_only = bit(1),
    .cpu = {cpu::select_backward},
    .cuda = {cuda::select_backward}};

constinit const OpDef size_op{.name = "size",
                              .infer =
                                  [](Inference& inference) {
                                    const auto axis = inference.attribute<SizeAttributes>().axis;
                                    if (axis < 0 || axis >= inference.inputs[0].shape.rank())
                                      inference.fail("there is no axis " + std::to_string(axis));
                                    inference.output(DType::i64, {});
                                  },
                              .shape_only = bit(0),
                              .cpu = {cpu::size},
                              .cuda = {cuda::size}};

}  // namespace ebb
