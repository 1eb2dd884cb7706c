#include "ebb/core/kernels/slice.h"

#include <algorithm>
#include <vector>

#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

using Gradient = const GradientContext&;

// "rows 1 to 3", "1 to the end of axis 2 in steps of -1".
std::string name_of(const SliceAttributes& slice) {
  std::string text = slice.axis == 0 ? "rows " : "";
  text += std::to_string(slice.begin) + " to ";
  text += slice.end == kEnd ? "the end" : std::to_string(slice.end);
  if (slice.axis != 0) text += " of axis " + std::to_string(slice.axis);
  if (slice.step != 1) text += " in steps of " + std::to_string(slice.step);
  return text;
}

Shape sliced(const Inference& inference, const Shape& x) {
  const auto& slice = inference.attribute<SliceAttributes>();
  const int axis = detail::require_axis(inference, x, slice.axis);
  Shape out = x;
  if (const std::int64_t size = x.dim(axis); size != kOpen) {
    const std::int64_t first = slice.first(size), last = slice.last(size);
    // Backwards, -1 is the end, as `size` is forwards.
    const std::int64_t least = slice.step > 0 ? 0 : -1, most = slice.step > 0 ? size : size - 1;
    if (std::min(first, last) < least || std::max(first, last) > most ||
        (slice.step > 0 ? first > last : first < last))
      inference.fail(name_of(slice) + " are out of range");
    out.set(axis, slice.count(first, last));
  } else {
    // The size is known where both bounds count from the same side. kEnd is 0 from the end, or
    // backwards -1 from the front.
    const bool whole = slice.end == kEnd, forwards = slice.step > 0;
    if (slice.begin < -kMaxElements) inference.fail(name_of(slice) + " are out of range");
    const std::int64_t end = !whole ? slice.end : forwards ? 0 : -1;
    if ((slice.begin < 0) == (whole ? forwards : end < 0))
      out.set(axis, slice.count(slice.begin, end));
  }
  return out;
}

// A contiguous slice is a view.
const OpDef& slice_of(const SliceAttributes& slice) {
  return slice.axis == 0 && slice.step == 1 ? slice_op : strided_slice_op;
}

bool takes_all(const MemoryQuery& query) {
  return query.attribute<SliceAttributes>().step > 0 && detail::keeps_shape(query);
}

std::size_t slice_offset(const MemoryQuery& query) {
  const Spec& x = query.inputs[0];
  const std::int64_t rows = x.shape.dim(0);
  if (rows == 0) return 0;
  return static_cast<std::size_t>(query.attribute<SliceAttributes>().first(rows)) *
         (x.bytes() / static_cast<std::size_t>(rows));
}

Shape selected(const Inference& inference, const Shape& x) {
  const auto& attributes = inference.attribute<SelectAttributes>();
  const int axis = detail::require_axis(inference, x, attributes.axis);
  const std::int64_t size = x.dim(axis);
  if (size != kOpen && (attributes.index < -size || attributes.index >= size))
    inference.fail("there is no index " + std::to_string(attributes.index) + " along axis " +
                   std::to_string(axis));
  return detail::replace_axes(inference, x, axis, axis + 1, {});
}

using PartOf = Shape(const Inference&, const Shape& x);

// The shape rule of an operator that takes a part of x.
template <PartOf part_of>
void infer_part(Inference& inference) {
  const Spec& x = inference.inputs[0];
  inference.output(x.dtype, part_of(inference, x.shape));
}

// The shape rule of its gradient: dy at the places of the part, zeros elsewhere.
template <PartOf part_of>
void infer_placing(Inference& inference) {
  const Spec& dy = inference.inputs[0];
  const Shape& x = inference.inputs[1].shape;
  inference.require(detail::may_equal(dy.shape, part_of(inference, x)),
                    "the first shape is not that of the part");
  inference.output(dy.dtype, x);
}

}  // namespace

Tensor slice(const Operand& x, std::int64_t begin, std::int64_t end, const SliceOptions& options) {
  const SliceAttributes attributes{begin, end, detail::axis_of(slice_op, options.axis, x),
                                   options.step};
  if (options.step == 0 || options.step < -kMaxElements)
    detail::fail(slice_op, "takes no step of " + std::to_string(options.step), x);
  return detail::apply_to(slice_of(attributes), x, attributes);
}

Tensors split(const Operand& x, const ListOf<std::int64_t>& sizes, int axis) {
  const detail::CalledScope called("split");
  const Tensor tensor = detail::tensor_of(slice_op, x);
  axis = detail::axis_of(slice_op, axis, x);
  const auto fail = [&](const std::string& text) {
    std::string list;
    for (const std::int64_t size : sizes) list += (list.empty() ? "" : ", ") + std::to_string(size);
    detail::fail(slice_op,
                 "cannot cut axis " + std::to_string(axis) + " into {" + list + "}" + text, x);
  };
  const std::int64_t whole = tensor.shape().dim(axis);
  std::int64_t known = 0, open = 0;
  for (const std::int64_t size : sizes) {
    if (size < -1 || size > kMaxElements) fail("");
    (size == -1 ? open : known) += size == -1 ? 1 : size;
  }
  if (open > 1) fail(": -1 is for one size only");
  if (whole == kOpen && open == 0) fail(": of an open axis one size is -1");
  if (whole != kOpen && (open > 0 ? known > whole : known != whole)) fail("");
  Tensors parts;
  std::int64_t at = 0;  // from the front; after the -1 from the end
  for (const std::int64_t size : sizes) {
    const std::int64_t begin = at;
    at = size == -1 ? at - known : at + size;
    const bool to_the_end = at == 0 && (size == -1 || begin < 0);
    parts.push_back(slice({tensor, x.site()}, begin, to_the_end ? kEnd : at, {.axis = axis}));
  }
  return parts;
}

Tensors chunk(const Operand& x, int parts, int axis) {
  const detail::CalledScope called("chunk");
  const Tensor tensor = detail::tensor_of(slice_op, x);
  axis = detail::axis_of(slice_op, axis, x);
  const std::int64_t size = tensor.shape().dim(axis);
  if (parts < 1 || size == kOpen || size % parts != 0)
    detail::fail(slice_op,
                 "cannot cut axis " + std::to_string(axis) + " into " + std::to_string(parts) +
                     " parts of one size",
                 x);
  return split({tensor, x.site()},
               std::vector<std::int64_t>(static_cast<std::size_t>(parts), size / parts), axis);
}

Tensor flip(const Operand& x, const AxisList& axes) {
  const detail::CalledScope called("flip");
  Axes all = detail::axes_of(strided_slice_op, axes, x);
  if (axes.empty())
    for (int i = 0; i < x.tensor().rank(); ++i) all.push_back(i);
  const CallSite site = x.site();
  Tensor flipped = x.take();
  for (const int axis : all)
    flipped = slice({std::move(flipped), site}, -1, kEnd, {.axis = axis, .step = -1});
  return flipped;
}

Tensor select(const Operand& x, int axis, std::int64_t index) {
  return detail::apply_to(select_op, x,
                          SelectAttributes{detail::axis_of(select_op, axis, x), index});
}

Tensor Tensor::operator[](IndexAt i) const { return select({*this, i.site}, 0, i.index); }

Tensor last_step(const Operand& x) {
  const detail::CalledScope called("last_step");
  const Tensor& tensor = detail::tensor_of(select_op, x);
  if (tensor.rank() != 3) detail::fail(select_op, "takes x [batch, time, feature]", x);
  return select(x, 1, -1);
}

Tensor size(const Operand& x, int axis) {
  return detail::apply_to(size_op, x, SizeAttributes{detail::axis_of(size_op, axis, x)});
}

Tensor rows(const Operand& x) {
  const detail::CalledScope called("rows");
  return size(x, 0);
}

constinit const OpDef slice_op{.name = "slice",
                               .infer = infer_part<sliced>,
                               .gradient = detail::gradient_by<slice_backward_op, 0>,
                               .view = slice_offset,
                               .is_identity = detail::keeps_shape};

constinit const OpDef strided_slice_op{.name = "slice",
                                       .infer = infer_part<sliced>,
                                       .gradient = detail::gradient_by<slice_backward_op, 0>,
                                       .selects = true,
                                       .is_identity = takes_all,
                                       .cpu = {cpu::strided_slice},
                                       .cuda = {cuda::strided_slice}};

constinit const OpDef slice_backward_op{
    .name = "slice_backward",
    .infer = infer_placing<sliced>,
    .gradient = [](Gradient g) -> Tensors {
      const auto& slice = g.attribute<SliceAttributes>();
      return {apply_one(slice_of(slice), {g.dy()}, slice, g.site()), {}};
    },
    .shape_only = bit(1),
    .is_identity = takes_all,
    .cpu = {cpu::slice_backward},
    .cuda = {cuda::slice_backward}};

constinit const OpDef select_op{.name = "select",
                                .infer = infer_part<selected>,
                                .gradient = detail::gradient_by<select_backward_op, 0>,
                                .selects = true,
                                .cpu = {cpu::select},
                                .cuda = {cuda::select}};

constinit const OpDef select_backward_op{.name = "select_backward",
                                         .infer = infer_placing<selected>,
                                         .gradient = detail::gradient_by<select_op>,
                                         .shape_only = bit(1),
                                         .cpu = {cpu::select_backward},
                                         .cuda = {cuda::select_backward}};

constinit const OpDef size_op{.name = "size",
                              .infer =
                                  [](Inference& inference) {
                                    detail::require_axis(
                                        inference, inference.inputs[0].shape,
                                        inference.attribute<SizeAttributes>().axis);
                                    inference.output(DType::i64, {});
                                  },
                              .shape_only = bit(0),
                              .cpu = {cpu::size},
                              .cuda = {cuda::size}};

}  // namespace ebb
