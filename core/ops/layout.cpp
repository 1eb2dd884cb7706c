#include "ebb/core/ops/layout.h"

#include <algorithm>
#include <limits>

#include "ebb/core/base/error.h"
#include "ebb/core/kernels/layout.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

using Gradient = const GradientContext&;
using ManyInputs = InlineVector<Input, 8>;

void infer_permute(Inference& inference) {
  const auto& order = inference.attribute<PermuteAttributes>();
  const Spec& x = inference.inputs[0];
  if (order.rank != x.shape.rank())
    inference.fail("is given an order of " + std::to_string(order.rank) + " axes");
  Shape out;
  for (int i = 0; i < order.rank; ++i) out.push_back(x.shape.dim(order.axes[i]));
  inference.output(x.dtype, out);
}

// Whether only axes of size 1 change places, and the shape stays.
bool moves_nothing(const MemoryQuery& query) {
  const auto& order = query.attribute<PermuteAttributes>();
  int last = -1;
  for (int i = 0; i < order.rank; ++i) {
    if (query.outputs[0].shape.dim(i) == 1) continue;
    if (order.axes[i] < last) return false;
    last = order.axes[i];
  }
  return detail::keeps_shape(query);
}

PermuteAttributes inverse(const PermuteAttributes& order) {
  PermuteAttributes back{.rank = order.rank};
  for (std::int32_t i = 0; i < order.rank; ++i) back.axes[order.axes[i]] = i;
  return back;
}

// The dtype and shape of tensors joined along an axis. Throws where they do not fit.
Spec joined(const Inference& inference, std::span<const Spec> parts) {
  Spec all = parts[0];
  const int axis =
      detail::require_axis(inference, all.shape, inference.attribute<ConcatAttributes>().axis);
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
  Tensors read{g.dy()};
  for (int i = 0; i < g.inputs(); ++i) read.push_back(g.x(i));
  const ManyInputs inputs(read.begin(), read.end());
  return detail::apply_gradient(concat_backward_op, g.inputs(), inputs, g.node().attributes, g);
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

void infer_broadcast_to(Inference& inference) {
  const Shape& from = inference.inputs[0].shape;
  Shape to = inference.attribute<detail::AskedShape>().shape();
  const auto fail = [&] { inference.fail("does not broadcast to the shape " + to.to_string()); };
  if (from.rank() > to.rank()) fail();
  for (int back = 1; back <= to.rank(); ++back) {
    const bool is_new = back > from.rank();
    const std::int64_t size = is_new ? 1 : from.dim(-back);
    if (is_new && to.dim(-back) == -1) fail();
    if (size != 1 && !detail::may_equal(size, to.dim(-back))) fail();
    if (to.dim(-back) == -1) to.set(-back, size);
  }
  inference.output(inference.inputs[0].dtype, to);
}

// x repeated `times` times along an axis, element by element (`behind`) or as a whole: a new axis
// of that size behind or before this one, merged with it.
Tensor repeated(const char* function, const Operand& x, std::int64_t times, int axis, bool behind) {
  const detail::CalledScope called(function);
  axis = detail::axis_of(broadcast_to_op, axis, x);
  if (times < 0)
    detail::fail(broadcast_to_op, "takes no tensor " + std::to_string(times) + " times", x);
  const CallSite site = x.site();
  const int place = behind ? axis + 1 : axis;
  const Tensor wider = unsqueeze(x, place);
  Shape shape;
  for (int i = 0; i < wider.rank(); ++i) shape.push_back(i == place ? times : -1);
  return detail::merge_axes({broadcast_to({wider, site}, shape), site}, axis);
}

void infer_pad(Inference& inference) {
  const auto& attributes = inference.attribute<PadAttributes>();
  const Spec& x = inference.inputs[0];
  inference.require(attributes.rank == static_cast<std::uint64_t>(x.shape.rank()),
                    "takes a padding for each axis");
  Shape out = x.shape;
  for (int i = 0; i < out.rank(); ++i)
    if (out.dim(i) != kOpen)
      out.set(i, out.dim(i) + attributes.before[i] + std::int64_t{attributes.after[i]});
  inference.output(x.dtype, out);
}

Tensors pad_gradient(Gradient g) {
  const auto& attributes = g.attribute<PadAttributes>();
  Tensor dx = g.dy();
  for (std::size_t i = 0; i < attributes.rank; ++i) {
    const std::int64_t before = attributes.before[i], after = attributes.after[i];
    if (before + after > 0)
      dx = slice({dx, g.site()}, before, after > 0 ? -after : kEnd, {.axis = static_cast<int>(i)});
  }
  return {dx};
}

}  // namespace

Tensor permute(const Operand& x, const Axes& axes) {
  const Axes order = detail::axes_of(permute_op, axes, x);
  PermuteAttributes attributes{.rank = static_cast<std::int32_t>(order.size())};
  std::ranges::copy(order, attributes.axes);
  if (order.size() == static_cast<std::size_t>(x.tensor().rank()) && std::ranges::is_sorted(order))
    return x.take();
  return detail::apply_to(permute_op, x, attributes);
}

Tensor transpose(const Operand& x, int a, int b) {
  const detail::CalledScope called("transpose");
  a = detail::axis_of(permute_op, a, x);
  b = detail::axis_of(permute_op, b, x);
  Axes axes;
  for (int i = 0; i < x.tensor().rank(); ++i) axes.push_back(i == a ? b : i == b ? a : i);
  return permute(x, axes);
}

constinit const OpDef permute_op{
    .name = "permute",
    .infer = infer_permute,
    .gradient = [](Gradient g) -> Tensors {
      const auto& order = g.attribute<PermuteAttributes>();
      return {apply_one(permute_op, {g.dy()}, inverse(order), g.site())};
    },
    .selects = true,
    .is_identity = moves_nothing,
    .cpu = {cpu::permute},
    .cuda = {cuda::permute}};

Tensor concat(const ListOf<Tensor>& tensors, int axis, CallSite site) {
  if (tensors.empty()) detail::refuse(concat_op.name, "takes at least one tensor", site);
  axis = detail::axis_of(concat_op, axis, {tensors[0], site});
  const ManyInputs inputs(tensors.begin(), tensors.end());
  return apply_one(concat_op, inputs, ConcatAttributes{axis}, site);
}

Tensor stack(const ListOf<Tensor>& tensors, int axis, CallSite site) {
  const detail::CalledScope called("stack");
  InlineVector<Tensor, 8> rows;
  for (const Tensor& tensor : tensors) {
    rows.push_back(unsqueeze({tensor, site}, axis));
    if (tensor.dtype() != tensors[0].dtype() ||
        !detail::may_equal(tensor.shape(), tensors[0].shape()))
      detail::refuse<ShapeError>(
          "stack",
          "takes tensors of one shape and dtype; input " + std::to_string(rows.size() - 1) +
              " is " + Spec{tensor.dtype(), tensor.shape()}.to_string() + ", the first " +
              Spec{tensors[0].dtype(), tensors[0].shape()}.to_string(),
          site);
  }
  if (rows.empty()) detail::refuse("stack", "takes at least one tensor", site);
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
                                .is_identity = detail::keeps_shape,
                                .cpu = {cpu::concat},
                                .cuda = {cuda::concat}};

constinit const OpDef concat_backward_op{.name = "concat_backward",
                                         .infer = infer_concat_backward,
                                         .gradient = concat_backward_gradient,
                                         .shape_only = from(1),
                                         .optional_outputs = kAll,
                                         .cpu = {cpu::concat_backward},
                                         .cuda = {cuda::concat_backward}};

Tensor broadcast_to(const Operand& x, const Shape& shape) {
  if (detail::tensor_of(broadcast_to_op, x).shape() == shape && !shape.is_open()) return x.take();
  return detail::apply_to(broadcast_to_op, x, detail::AskedShape(shape));
}

Tensor broadcast_to(const Operand& x, std::initializer_list<std::int64_t> shape) {
  return broadcast_to(x, detail::shape_of("broadcast_to", shape, x.site()));
}

Tensor tile(const Operand& x, std::int64_t times, int axis) {
  return repeated("tile", x, times, axis, false);
}

Tensor repeat(const Operand& x, std::int64_t times, int axis) {
  return repeated("repeat", x, times, axis, true);
}

constinit const OpDef broadcast_to_op{
    .name = "broadcast_to",
    .infer = infer_broadcast_to,
    .gradient = [](Gradient g) -> Tensors { return {sum_like(g.dy(), g.x(0))}; },
    .selects = true,
    .is_identity = detail::keeps_shape,
    .cpu = {cpu::broadcast},
    .cuda = {cuda::broadcast}};

Tensor pad(const Operand& x, const InlineVector<Padding, kMaxRank>& axes, double value) {
  const Tensor& tensor = detail::tensor_of(pad_op, x);
  if (axes.size() != static_cast<std::size_t>(tensor.rank()))
    detail::fail(pad_op, "takes a padding for each axis, not " + std::to_string(axes.size()), x);
  PadAttributes attributes{.rank = axes.size(), .value = value};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
    const auto [before, after] = axes[i];
    if (std::min(before, after) < 0 || std::max(before, after) > kMost)
      detail::fail(
          pad_op,
          "takes no padding of {" + std::to_string(before) + ", " + std::to_string(after) + "}", x);
    attributes.before[i] = static_cast<std::uint32_t>(before);
    attributes.after[i] = static_cast<std::uint32_t>(after);
  }
  return detail::apply_to(pad_op, x, attributes);
}

constinit const OpDef pad_op{.name = "pad",
                             .infer = infer_pad,
                             .gradient = pad_gradient,
                             .is_identity = detail::keeps_shape,
                             .cpu = {cpu::pad},
                             .cuda = {cuda::pad}};

}  // namespace ebb
