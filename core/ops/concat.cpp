#include "ebb/core/base/error.h"
#include "ebb/core/kernels/layout.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

using Gradient = const GradientContext&;
using ManyInputs = InlineVector<Input, 8>;

// The dtype and shape of tensors joined along an axis. Throws where they do not fit.
Spec joined(const Inference& inference, std::span<const Spec> parts) {
  const auto axis = static_cast<int>(inference.attribute<ConcatAttributes>().axis);
  Spec all = parts[0];
  if (axis < 0 || axis >= all.shape.rank())
    inference.fail("there is no axis " + std::to_string(axis));
  std::int64_t size = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Shape part = parts[i].shape;
    const std::int64_t along = part.rank() == all.shape.rank() ? part.dim(axis) : 0;
    size = size == kOpen || along == kOpen ? kOpen : size + along;
    if (part.rank() == all.shape.rank()) part.set(axis, all.shape.dim(axis));
    if (parts[i].dtype != all.dtype || !detail::may_equal(part, all.shape))
      inference.fail("takes tensors of one dtype, and of one shape but for axis " +
                     std::to_string(axis) + "; input " + std::to_string(i) + " differs");
    all.shape = detail::merge(all.shape, part);
  }
  all.shape.set(axis, size);
  return all;
}

void infer_concat(Inference& inference) {
  const Spec all = joined(inference, inference.inputs);
  inference.output(all.dtype, all.shape);
}

// The parts, of which only the shapes are read, are inputs 1 and on.
void infer_concat_backward(Inference& inference) {
  const Spec all = joined(inference, inference.inputs.subspan(1));
  const Spec& dy = inference.inputs[0];
  inference.require(dy.dtype == all.dtype && detail::may_equal(dy.shape, all.shape),
                    "the first shape is not that of all parts together");
  for (const Spec& part : inference.inputs.subspan(1)) inference.output(part.dtype, part.shape);
}

Tensors concat_gradient(Gradient g) {
  const auto parts = static_cast<std::size_t>(g.inputs());
  Tensors shapes;
  ManyInputs inputs{g.dy()};
  IndexSet unwanted;
  for (int i = 0; i < g.inputs(); ++i) shapes.push_back(g.x(i));
  for (std::size_t i = 0; i < parts; ++i) {
    inputs.push_back(shapes[i]);
    if (!g.wants(static_cast<int>(i))) unwanted.insert(i);
  }
  Tensors all = apply(concat_backward_op, {inputs.data(), inputs.size()}, g.node().attributes,
                      g.site(), unwanted);
  for (std::size_t i = 0; i < parts; ++i)
    if (unwanted.has(i)) all[i] = {};
  return all;
}

// The part gradients joined, with zeros in place of those that nobody read.
Tensors concat_backward_gradient(Gradient g) {
  const int parts = g.inputs() - 1;
  Tensor zero;  // on the device of a gradient: of parts only shapes are there
  for (int i = 0; i < parts && !zero.defined(); ++i)
    if (g.dy(i).defined()) zero = sum(fill_like(g.dy(i), 0));
  Tensors d_parts, result(static_cast<std::size_t>(g.inputs()));
  for (int i = 0; i < parts; ++i)
    d_parts.push_back(g.dy(i).defined() ? g.dy(i) : expand_as(zero, g.x(i + 1)));
  result[0] = concat(d_parts, static_cast<int>(g.attribute<ConcatAttributes>().axis), g.site());
  return result;
}

}  // namespace

Tensor concat(std::span<const Tensor> tensors, int axis, CallSite site) {
  if (tensors.empty())
    throw Error(detail::message(concat_op.name, "takes at least one tensor", site));
  axis = detail::axis_of(concat_op, axis, {tensors[0], site});
  const ManyInputs inputs(tensors.begin(), tensors.end());
  return std::move(
      apply(concat_op, {inputs.data(), inputs.size()}, ConcatAttributes{axis}, site)[0]);
}

Tensor stack(std::span<const Tensor> tensors, int axis, CallSite site) {
  const detail::CalledScope called("stack");
  InlineVector<Tensor, 8> rows;
  for (const Tensor& tensor : tensors) {
    rows.push_back(unsqueeze({tensor, site}, axis));
    if (tensor.dtype() != tensors[0].dtype() ||
        !detail::may_equal(tensor.shape(), tensors[0].shape()))
      throw ShapeError(detail::message(
          "stack",
          "takes tensors of one shape and dtype; input " + std::to_string(rows.size() - 1) +
              " is " + Spec{tensor.dtype(), tensor.shape()}.to_string() + ", the first " +
              Spec{tensors[0].dtype(), tensors[0].shape()}.to_string(),
          site));
  }
  if (rows.empty()) throw Error(detail::message("stack", "takes at least one tensor", site));
  return concat(rows, axis, site);
}

// Two slices, one after the other.
Tensor roll(const Operand& x, std::int64_t shift, int axis) {
  const detail::CalledScope called("roll");
  const CallSite site = x.site();
  axis = detail::axis_of(concat_op, axis, x);
  const std::int64_t size = x.tensor().shape().dim(axis);
  if (size != kOpen) shift = size == 0 ? 0 : shift % size;
  if (shift == 0) return x.take();
  const Tensor whole = x.take();
  const Tensor last = slice({whole, site}, -shift, kEnd, {.axis = axis}),
               first = slice({whole, site}, 0, -shift, {.axis = axis});
  return concat({last, first}, axis, site);
}

constinit const OpDef concat_op{.name = "concat",
                                .infer = infer_concat,
                                .gradient = concat_gradient,
                                .selects = true,
                                .is_identity = detail::keeps_shape,
                                .cpu = {cpu::concat},
                                .cuda = {cuda::concat}};

constinit const OpDef concat_backward_op{.name = "concat_backward",
                                         .infer = infer_concat_backward,
                                         .gradient = concat_backward_gradient,
                                         .shape_only = from(1),
                                         .skippable_outputs = kAll,
                                         .cpu = {cpu::concat_backward},
                                         .cuda = {cuda::concat_backward}};

}  // namespace ebb
