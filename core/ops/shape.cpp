#include "ebb/core/ops/shape.h"

#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

using Gradient = const GradientContext&;

constexpr const char* kUnflatten =
    ", and unflatten(x, axis, sizes) keeps the other axes, open ones too";

// The shape asked for, with its -1, if any, worked out from the number of elements. Where that is
// open, sizes are compared when shapes are fed.
Shape filled(const Inference& inference, Shape to, std::int64_t elements) {
  int inferred = -1;  // the axis that is -1
  for (int i = 0; i < to.rank(); ++i) {
    if (to.dim(i) != -1) continue;
    if (inferred >= 0)
      inference.fail(std::string("takes -1 for one dimension only") +
                     (elements == kOpen ? kUnflatten : ""));
    inferred = i;
  }
  if (!to.is_countable()) inference.fail(detail::too_large(to));
  std::int64_t others = 1;
  for (int i = 0; i < to.rank(); ++i)
    if (i != inferred) others *= to.dim(i);
  if (others == 0 && elements != 0)
    inference.fail("does not fit the shape " + to.to_string() +
                   ", in which 0 is a size, as in NumPy: -1 is what is left" + kUnflatten);
  if (elements == kOpen) return to;
  if (inferred >= 0 && others == 0)
    inference.fail("cannot tell the -1 of " + to.to_string() + ", which has a size of 0");
  if (inferred >= 0 ? elements % others != 0 : elements != others)
    inference.fail("does not fit the shape " + to.to_string());
  if (inferred >= 0) to.set(inferred, elements / others);
  return to;
}

void infer_view(Inference& inference) {
  const auto& view = inference.attribute<detail::ViewAttributes>();
  const int begin = static_cast<int>(view.begin), end = static_cast<int>(view.end);
  const Spec& x = inference.inputs[0];
  inference.require(begin <= end, "takes a tensor of at least one axis");
  inference.require(end <= x.shape.rank(), "takes a tensor of more axes");
  inference.require(begin < end || x.shape.rank() < kMaxRank, "leaves no room for one more axis");
  const Shape sizes = filled(inference, view.sizes.shape(), detail::product(x.shape, begin, end));
  inference.output(x.dtype, detail::replace_axes(inference, x.shape, begin, end, sizes));
}

void infer_reshape_like(Inference& inference) {
  const Shape& from = inference.inputs[0].shape;
  const Shape& to = inference.inputs[1].shape;
  inference.require(
      detail::may_equal(detail::product(from, 0, from.rank()), detail::product(to, 0, to.rank())),
      "the shapes have different numbers of elements");
  inference.output(inference.inputs[0].dtype, to);
}

void infer_squeeze(Inference& inference) {
  const Spec& x = inference.inputs[0];
  const std::uint64_t axes = inference.attribute<detail::SqueezeAttributes>().axes;
  Shape out;
  for (int i = 0; i < x.shape.rank(); ++i) {
    if ((axes >> i & 1) == 0)
      out.push_back(x.shape.dim(i));
    else if (!detail::may_equal(x.shape.dim(i), 1))
      inference.fail("axis " + std::to_string(i) + " is not of size 1");
  }
  inference.output(x.dtype, out);
}

// The view begins where the memory does.
std::size_t at_start(const MemoryQuery&) { return 0; }

Tensors reshape_gradient(Gradient g) { return {detail::reshape_like(g.dy(), g.x(0))}; }

constexpr OpDef view_op(const char* name, void (*infer)(Inference&) = infer_view) {
  return {.name = name,
          .infer = infer,
          .gradient = reshape_gradient,
          .view = at_start,
          .is_identity = detail::keeps_shape};
}

Tensor view(const OpDef& op, const Operand& x, int begin, int end, const Shape& sizes) {
  return detail::apply_to(op, x, detail::ViewAttributes{begin, end, detail::AskedShape(sizes)});
}

int rank_of(const OpDef& op, const Operand& x) { return detail::tensor_of(op, x).rank(); }

}  // namespace

Tensor reshape(const Operand& x, const Shape& shape) {
  return view(reshape_op, x, 0, rank_of(reshape_op, x), shape);
}

Tensor reshape(const Operand& x, std::initializer_list<std::int64_t> shape) {
  return reshape(x, detail::shape_of("reshape", shape, x.site()));
}

Tensor unflatten(const Operand& x, int axis, const Shape& sizes) {
  axis = detail::axis_of(unflatten_op, axis, x);
  return view(unflatten_op, x, axis, axis + 1, sizes);
}

Tensor flatten(const Operand& x) { return view(flatten_op, x, 1, rank_of(flatten_op, x), {-1}); }

Tensor unsqueeze(const Operand& x, int axis) {
  const Tensor& tensor = detail::tensor_of(unsqueeze_op, x);
  const int rank = tensor.rank();
  if (axis < -rank - 1 || axis > rank)
    detail::fail(unsqueeze_op, "cannot put an axis at " + std::to_string(axis), x);
  const int place = axis < 0 ? axis + rank + 1 : axis;
  return view(unsqueeze_op, x, place, place, {1});
}

Tensor squeeze(const Operand& x, const AxisList& axes) {
  detail::SqueezeAttributes attributes;
  for (const int axis : detail::axes_of(squeeze_op, axes, x))
    attributes.axes |= std::uint64_t{1} << axis;
  return detail::apply_to(squeeze_op, x, attributes);
}

Tensor detail::as_matrix(const Operand& x) {
  return view(as_matrix_op, x, 0, rank_of(as_matrix_op, x) - 1, {-1});
}

Tensor detail::merge_axes(const Operand& x, int axis) {
  return view(merge_axes_op, x, axis, axis + 2, {-1});
}

Tensor detail::reshape_like(const Operand& x, const Operand& like) {
  return apply_to(reshape_like_op, {x, like});
}

constinit const OpDef reshape_op = view_op("reshape");
constinit const OpDef unflatten_op = view_op("unflatten");
constinit const OpDef flatten_op = view_op("flatten");
constinit const OpDef as_matrix_op = view_op("as_matrix");
constinit const OpDef merge_axes_op = view_op("merge_axes");
constinit const OpDef unsqueeze_op = view_op("unsqueeze");
constinit const OpDef squeeze_op = view_op("squeeze", infer_squeeze);

constinit const OpDef reshape_like_op{.name = "reshape_like",
                                      .infer = infer_reshape_like,
                                      .gradient = detail::gradient_by<reshape_like_op, 0>,
                                      .shape_only = bit(1),
                                      .view = at_start,
                                      .is_identity = detail::keeps_shape};

}  // namespace ebb
