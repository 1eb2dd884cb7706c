#include "ebb/core/ops/shape_rules.h"

#include <algorithm>

#include "ebb/core/base/error.h"

namespace ebb::detail {

void fail(const OpDef& op, const std::string& text, const Operand& x) {
  const Tensor& tensor = tensor_of(op, x);
  const Spec spec{tensor.dtype(), tensor.shape()};
  const Attributes none;
  Specs outputs;
  Inference{op, {&spec, 1}, none, x.site(), outputs}.fail(text);
}

CalledScope check(const OpDef& function, const ListOf<Operand>& operands,
                  const Attributes& attributes) {
  Specs inputs, outputs;
  for (const Operand& operand : operands) {
    const Tensor& tensor = tensor_of(function, operand);
    inputs.push_back({tensor.dtype(), tensor.shape()});
  }
  Inference inference{function, inputs, attributes, operands.front().site(), outputs};
  function.infer(inference);
  return CalledScope(function.name);
}

Shape shape_of(const char* function, std::initializer_list<std::int64_t> sizes, CallSite site) {
  const CallSiteScope at(site);
  const CalledScope called(function);
  return Shape(sizes);
}

const Tensor& tensor_of(const OpDef& op, const Operand& operand) {
  if (operand.is_number()) refuse(op.name, "takes a tensor here, not a number", operand.site());
  if (!operand.tensor().defined())
    refuse(op.name, "an input is a tensor that holds nothing", operand.site());
  return operand.tensor();
}

int axis_of(const OpDef& op, int axis, const Operand& x) {
  const int rank = tensor_of(op, x).rank();
  if (axis < -rank || axis >= rank) fail(op, "there is no axis " + std::to_string(axis), x);
  return axis < 0 ? axis + rank : axis;
}

Axes axes_of(const OpDef& op, const Axes& axes, const Operand& x) {
  tensor_of(op, x);
  Axes found;
  for (const int given : axes) {
    const int axis = axis_of(op, given, x);
    if (std::find(found.begin(), found.end(), axis) != found.end())
      fail(op, "axis " + std::to_string(given) + " is given twice", x);
    found.push_back(axis);
  }
  return found;
}

Tensor apply_to(const OpDef& op, const Operand& x, const Attributes& attributes) {
  tensor_of(op, x);
  return apply_one(op, {x}, attributes, x.site());
}

Tensor apply_to(const OpDef& op, const ListOf<Operand>& operands, const Attributes& attributes) {
  InlineVector<Input, 6> inputs;
  for (const Operand& operand : operands) {
    tensor_of(op, operand);
    inputs.push_back(operand);
  }
  return apply_one(op, inputs, attributes, operands.front().site());
}

Tensors passes_on(const GradientContext& g) {
  Tensors all(static_cast<std::size_t>(g.inputs()));
  all[0] = g.dy();
  return all;
}

Tensors no_gradient(const GradientContext& g) {
  return Tensors(static_cast<std::size_t>(g.inputs()));
}

Tensors apply_gradient(const OpDef& op, int outputs, Inputs inputs, const Attributes& attributes,
                       const GradientContext& g) {
  IndexSet unwanted;
  for (int i = 0; i < outputs; ++i)
    if (i >= g.inputs() || !g.wants(i)) unwanted.insert(static_cast<std::size_t>(i));
  Tensors all = apply(op, inputs, attributes, g.site(), unwanted);
  Tensors wanted(static_cast<std::size_t>(g.inputs()));
  for (std::size_t i = 0; i < std::min(wanted.size(), all.size()); ++i)
    if (!unwanted.has(i)) wanted[i] = std::move(all[i]);
  return wanted;
}

bool may_equal(const Shape& a, const Shape& b) noexcept {
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i)
    if (!may_equal(a.dim(i), b.dim(i))) return false;
  return true;
}

Shape merge(const Shape& a, const Shape& b) noexcept {
  Shape merged = a;
  for (int i = 0; i < a.rank(); ++i)
    if (a.dim(i) == kOpen) merged.set(i, b.dim(i));
  return merged;
}

Shape without_last(const Shape& shape) {
  return Shape(shape.dims().first(static_cast<std::size_t>(shape.rank() - 1)));
}

int require_axis(const Inference& inference, const Shape& shape, std::int64_t axis) {
  if (axis < 0 || axis >= shape.rank()) inference.fail("there is no axis " + std::to_string(axis));
  return static_cast<int>(axis);
}

Shape replace_axes(const Inference& inference, const Shape& shape, int begin, int end,
                   const Shape& by) {
  if (shape.rank() - (end - begin) + by.rank() > kMaxRank)
    inference.fail("the result would have more than " + std::to_string(kMaxRank) + " axes");
  Shape out;
  for (int i = 0; i < begin; ++i) out.push_back(shape.dim(i));
  for (const std::int64_t size : by.dims()) out.push_back(size);
  for (int i = end; i < shape.rank(); ++i) out.push_back(shape.dim(i));
  return out;
}

bool broadcasts_to(const Shape& from, const Shape& to) noexcept {
  if (from.rank() > to.rank()) return false;
  for (int i = -1; i >= -from.rank(); --i)
    if (from.dim(i) != 1 && !may_equal(from.dim(i), to.dim(i))) return false;
  return true;
}

Shape broadcast(const Inference& inference, const Shape& a, const Shape& b) {
  Shape out = a.rank() >= b.rank() ? a : b;
  const Shape& small = a.rank() >= b.rank() ? b : a;
  for (int i = -1; i >= -small.rank(); --i) {
    const std::int64_t x = out.dim(i);
    const std::int64_t y = small.dim(i);
    // A size beside 1 or beside an open dimension decides, unless it is 1 itself.
    if (x == y || y == 1) continue;
    if (x == 1 || x == kOpen)
      out.set(i, y);
    else if (y != kOpen)
      inference.fail("shapes do not broadcast");
  }
  return out;
}

void require_arithmetic(const Inference& inference, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_floating(inference.inputs[i].dtype)) inference.fail(kTakesFloating);
    if (inference.inputs[i].dtype != inference.inputs[0].dtype)
      inference.fail("takes inputs of one dtype (cast() converts)");
  }
}

void require_scalar(const Inference& inference, std::size_t i, DType dtype, const char* what) {
  if (!is_scalar(inference.inputs[i], dtype))
    inference.fail(std::string(what) + " must be " + (dtype == DType::boolean ? "a " : "an ") +
                   name(dtype) + " scalar");
}

void output_like_first(Inference& inference) {
  inference.output(inference.inputs[0].dtype, inference.inputs[0].shape);
}

void same_shape(Inference& inference) {
  require_arithmetic(inference, 1);
  output_like_first(inference);
}

void infer_pointwise(Inference& inference) {
  require_arithmetic(inference);
  Shape shape = inference.inputs[0].shape;
  for (const Spec& input : inference.inputs.subspan(1))
    shape = broadcast(inference, shape, input.shape);
  inference.output(inference.inputs[0].dtype, shape);
}

bool keeps_shape(const MemoryQuery& query) {
  return query.inputs[0].shape == query.outputs[0].shape;
}

}  // namespace ebb::detail
