#include "ebb/core/ops/shape.h"

#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

using Gradient = const GradientContext&;

// The product of the sizes of axes [begin, end): 0 where a size is 0, else kOpen where one is open.
std::int64_t product(const Shape& shape, int begin, int end) {
  std::int64_t result = 1;
  bool is_open = false;
  for (int i = begin; i < end; ++i) {
    if (shape.dim(i) == 0) return 0;
    if (shape.dim(i) == kOpen)
      is_open = true;
    else
      result *= shape.dim(i);
  }
  return is_open ? kOpen : result;
}

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

void infer_reshape(Inference& inference) {
  const Spec& x = inference.inputs[0];
  const Shape to = inference.attribute<detail::AskedShape>().shape();
  inference.output(x.dtype, filled(inference, to, product(x.shape, 0, x.shape.rank())));
}

struct UnflattenAttributes {
  std::int64_t axis = 0;
  detail::AskedShape sizes;
};

void infer_unflatten(Inference& inference) {
  const Shape& from = inference.inputs[0].shape;
  const auto& asked = inference.attribute<UnflattenAttributes>();
  const auto axis = static_cast<int>(asked.axis);
  inference.require(axis < from.rank(), "takes a tensor of more axes");
  const Shape sizes = filled(inference, asked.sizes.shape(), from.dim(axis));
  inference.output(inference.inputs[0].dtype, detail::replace_axis(inference, from, axis, sizes));
}

void infer_reshape_like(Inference& inference) {
  const Shape& from = inference.inputs[0].shape;
  const Shape& to = inference.inputs[1].shape;
  inference.require(detail::may_equal(product(from, 0, from.rank()), product(to, 0, to.rank())),
                    "the shapes have different numbers of elements");
  inference.output(inference.inputs[0].dtype, to);
}

void infer_flatten(Inference& inference) {
  const Spec& x = inference.inputs[0];
  inference.require(x.shape.rank() >= 1, "takes a tensor of at least one axis");
  inference.output(x.dtype, {x.shape.dim(0), product(x.shape, 1, x.shape.rank())});
}

void infer_as_matrix(Inference& inference) {
  const Spec& x = inference.inputs[0];
  inference.require(x.shape.rank() >= 1, "takes a tensor of at least one axis");
  inference.output(x.dtype, {product(x.shape, 0, x.shape.rank() - 1), x.shape.dim(-1)});
}

// Merges this axis and the next.
struct MergeAttributes {
  std::int64_t axis = 0;
};

void infer_merge_axes(Inference& inference) {
  const auto axis = static_cast<int>(inference.attribute<MergeAttributes>().axis);
  const Spec& x = inference.inputs[0];
  inference.require(axis + 1 < x.shape.rank(), "takes a tensor of more axes");
  Shape out;
  for (int i = 0; i < x.shape.rank(); ++i)
    if (i != axis + 1) out.push_back(i == axis ? product(x.shape, i, i + 2) : x.shape.dim(i));
  inference.output(x.dtype, out);
}

// Bit i is axis i of the shape with these axes, each of size 1.
struct UnitAxes {
  std::uint64_t axes = 0;
};

void infer_unsqueeze(Inference& inference) {
  const Spec& x = inference.inputs[0];
  const std::uint64_t axes = inference.attribute<UnitAxes>().axes;
  inference.require(x.shape.rank() < kMaxRank, "leaves no room for one more axis");
  Shape out;
  for (int i = 0, from = 0; i <= x.shape.rank(); ++i)
    out.push_back((axes >> i & 1) != 0 ? 1 : x.shape.dim(from++));
  inference.output(x.dtype, out);
}

void infer_squeeze(Inference& inference) {
  const Spec& x = inference.inputs[0];
  const std::uint64_t axes = inference.attribute<UnitAxes>().axes;
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

constexpr OpDef view_op(const char* name, void (*infer)(Inference&),
                        bool (*is_identity)(const MemoryQuery&) = detail::keeps_shape) {
  return {.name = name,
          .infer = infer,
          .gradient = reshape_gradient,
          .view = at_start,
          .is_identity = is_identity};
}

}  // namespace

Tensor reshape(const Operand& x, const Shape& shape) {
  return detail::apply_to(reshape_op, x, detail::AskedShape(shape));
}

Tensor reshape(const Operand& x, std::initializer_list<std::int64_t> shape) {
  return reshape(x, detail::shape_of("reshape", shape, x.site()));
}

Tensor unflatten(const Operand& x, int axis, const Shape& sizes) {
  return detail::apply_to(
      unflatten_op, x,
      UnflattenAttributes{detail::axis_of(unflatten_op, axis, x), detail::AskedShape(sizes)});
}

Tensor flatten(const Operand& x) { return detail::apply_to(flatten_op, x); }

Tensor unsqueeze(const Operand& x, int axis) {
  const Tensor& tensor = detail::tensor_of(unsqueeze_op, x);
  const int rank = tensor.rank();
  if (axis < -rank - 1 || axis > rank)
    detail::fail(unsqueeze_op, "cannot put an axis at " + std::to_string(axis), tensor, x.site());
  return detail::apply_to(unsqueeze_op, x,
                          UnitAxes{std::uint64_t{1} << (axis < 0 ? axis + rank + 1 : axis)});
}

Tensor squeeze(const Operand& x, const AxisList& axes) {
  UnitAxes attributes;
  for (const int axis : detail::axes_of(squeeze_op, axes, x))
    attributes.axes |= std::uint64_t{1} << axis;
  return detail::apply_to(squeeze_op, x, attributes);
}

Tensor detail::as_matrix(const Operand& x) { return apply_to(as_matrix_op, x); }

Tensor detail::merge_axes(const Operand& x, int axis) {
  return apply_to(merge_axes_op, x, MergeAttributes{axis});
}

Tensor detail::reshape_like(const Operand& x, const Operand& like) {
  tensor_of(reshape_like_op, x);
  tensor_of(reshape_like_op, like);
  return apply_one(reshape_like_op, {x, like}, {}, x.site());
}

constinit const OpDef reshape_op = view_op("reshape", infer_reshape);
constinit const OpDef unflatten_op = view_op("unflatten", infer_unflatten);
constinit const OpDef flatten_op = view_op("flatten", infer_flatten);
constinit const OpDef as_matrix_op = view_op("as_matrix", infer_as_matrix);
constinit const OpDef merge_axes_op = view_op("merge_axes", infer_merge_axes, nullptr);
constinit const OpDef unsqueeze_op = view_op("unsqueeze", infer_unsqueeze, nullptr);
constinit const OpDef squeeze_op = view_op("squeeze", infer_squeeze);

constinit const OpDef reshape_like_op{.name = "reshape_like",
                                      .infer = infer_reshape_like,
                                      .gradient = [](Gradient g) -> Tensors {
                                        return {detail::reshape_like(g.dy(), g.x(0)), {}};
                                      },
                                      .shape_only = bit(1),
                                      .view = at_start,
                                      .is_identity = detail::keeps_shape};

}  // namespace ebb
