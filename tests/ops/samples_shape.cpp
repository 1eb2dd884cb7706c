#include "ebb/core/kernels/slice.h"
#include "ebb/core/ops/shape.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

Array reshaped(Array x, const Shape& shape) {
  x.shape = shape;
  return x;
}

std::int64_t size(const Shape& shape, int begin, int end) {
  std::int64_t n = 1;
  for (int axis = begin; axis < end; ++axis) n *= shape[axis];
  return n;
}

// Indices that a slice takes along its axis, in order.
std::vector<std::int64_t> indices(const Shape& shape, const SliceAttributes& slice) {
  const std::int64_t size = shape[static_cast<int>(slice.axis)];
  std::int64_t end = slice.end < 0 ? slice.end + size : slice.end;
  if (slice.end == kEnd) end = slice.step < 0 ? -1 : size;
  std::vector<std::int64_t> found;
  for (std::int64_t i = slice.begin < 0 ? slice.begin + size : slice.begin;
       slice.step < 0 ? i > end : i < end; i += slice.step)
    found.push_back(i);
  return found;
}

Shape sliced_shape(Shape shape, const SliceAttributes& slice) {
  shape.set(static_cast<int>(slice.axis), static_cast<std::int64_t>(indices(shape, slice).size()));
  return shape;
}

std::vector<std::int64_t> sliced(const Shape& shape, const SliceAttributes& slice) {
  const std::vector<std::int64_t> along = indices(shape, slice);
  std::vector<std::int64_t> places;
  for_each_index(sliced_shape(shape, slice), [&](Index index) {
    std::int64_t& i = index[static_cast<std::size_t>(slice.axis)];
    i = along[static_cast<std::size_t>(i)];
    places.push_back(position(shape, index));
  });
  return places;
}

// Flat positions of the elements that select picks: those of a slice of one index.
std::vector<std::int64_t> selected(const Shape& shape, const SelectAttributes& select) {
  const std::int64_t size = shape[static_cast<int>(select.axis)];
  const std::int64_t index = select.index < 0 ? select.index + size : select.index;
  return sliced(shape, {index, index + 1, select.axis});
}

Shape without_axis(const Shape& shape, std::int64_t axis) {
  Shape left;
  for (int i = 0; i < shape.rank(); ++i)
    if (i != axis) left.push_back(shape[i]);
  return left;
}

Array picked(const Array& x, const std::vector<std::int64_t>& places, const Shape& shape) {
  Array out(shape);
  for (std::size_t i = 0; i < places.size(); ++i) out.values[i] = x[places[i]];
  return out;
}

Array placed(const Array& part, const std::vector<std::int64_t>& places, const Shape& shape) {
  Array out(shape);
  for (std::size_t i = 0; i < places.size(); ++i) out[places[i]] = part.values[i];
  return out;
}

}  // namespace

void shape_family(std::vector<Sample>& samples, References& references, DType) {
  const auto add = [&](const OpDef& op, const char* how, std::vector<SampleInput> inputs,
                       std::function<Tensors(const Tensors&)> call, bool any_shape = true) {
    samples.push_back(moving_sample(op, how, std::move(inputs), std::move(call), any_shape));
  };
  add(reshape_op, "with a -1", {{{kOpen, 2, 3}}}, EBB_CALL(reshape(in[0], {-1, 6})));
  add(reshape_op, "known", {{{2, 3}}}, EBB_CALL(reshape(in[0], {3, 1, 2})), false);
  add(reshape_op, "to a scalar", {{{1, 1}}}, EBB_CALL(reshape(in[0], {})), false);
  add(unflatten_op, "between open axes", {{{kOpen, 6, kOpen}}},
      EBB_CALL(unflatten(in[0], -2, {2, -1})));
  add(reshape_like_op, "a matrix", {{{kOpen, 6}}, {{kOpen, 2, 3}}},
      EBB_CALL(detail::reshape_like(in[0], in[1])), false);
  add(as_matrix_op, "sequences", {{{2, kOpen, 3}}}, EBB_CALL(detail::as_matrix(in[0])));
  add(flatten_op, "images", {{{kOpen, 2, 3}}}, EBB_CALL(flatten(in[0])));
  add(merge_axes_op, "the last", {{{2, kOpen, 3}}}, EBB_CALL(detail::merge_axes(in[0], 1)));
  add(unsqueeze_op, "in front", {{{kOpen, 3}}}, EBB_CALL(unsqueeze(in[0], 0)));
  add(unsqueeze_op, "in the middle", {{{kOpen, 3}}}, EBB_CALL(unsqueeze(in[0], 1)));
  add(unsqueeze_op, "behind", {{{kOpen, 3}}}, EBB_CALL(unsqueeze(in[0], -1)));
  add(squeeze_op, "two axes", {{{1, kOpen, 1, 2}}}, EBB_CALL(squeeze(in[0], {0, -2})), false);
  add(slice_op, "from the front", {{{5, 3}}}, EBB_CALL(slice(in[0], 1, 4)));
  add(slice_op, "to the end", {{{kOpen, 3}}}, EBB_CALL(slice(in[0], 0)));
  add(slice_op, "nothing", {{{4}}}, EBB_CALL(slice(in[0], 2, 2)));
  const auto strided = [&](const char* how, const Shape& shape, std::int64_t begin,
                           std::int64_t end, const SliceOptions& options) {
    add(strided_slice_op, how, {{shape}}, EBB_CALL(slice(in[0], begin, end, options)));
  };
  strided("a middle axis", {kOpen, 5, 2}, 1, -1, {.axis = 1});
  strided("the last axis", {2, kOpen, 4}, -3, 3, {.axis = -1});
  strided("every second", {kOpen, 7}, 1, kEnd, {.axis = 1, .step = 2});
  strided("every third row", {8, kOpen}, 0, 7, {.step = 3});
  strided("backwards", {kOpen, 3}, -1, kEnd, {.step = -1});
  strided("backwards in steps", {2, 7, kOpen}, 5, 0, {.axis = 1, .step = -2});
  strided("backwards from the end", {kOpen, 6}, -2, -6, {.axis = 1, .step = -1});
  strided("none of a middle axis", {kOpen, 3, 2}, 2, 2, {.axis = 1});
  strided("all of one", {kOpen, 1}, 0, kEnd, {.axis = 1});
  add(strided_slice_op, "flipped", {{{2, kOpen, 3}}}, EBB_CALL(flip(in[0], {1, -1})));
  add(strided_slice_op, "split", {{{kOpen, 6}}}, EBB_CALL(split(in[0], {1, -1, 2}, 1)[1]));
  const auto placing = [&](const char* how, const Shape& part, const Shape& whole,
                           const SliceAttributes& attributes) {
    add(slice_backward_op, how, {{part}, {whole}}, applying(slice_backward_op, attributes), false);
  };
  placing("the end", {2, 3}, {5, 3}, {-2});
  placing("the middle", {2, kOpen}, {5, kOpen}, {1, 3});
  placing("of a middle axis", {kOpen, 2, 3}, {kOpen, 4, 3}, {1, 3, 1});
  placing("backwards in steps", {kOpen, 3}, {kOpen, 7}, {6, 0, 1, -2});
  placing("nothing", {2, 0}, {2, 3}, {1, 1, 1});
  add(select_op, "the first row", {{{3, 2}}}, EBB_CALL(select(in[0], 0, 0)));
  add(select_op, "a middle axis", {{{kOpen, 3, 2}}}, EBB_CALL(select(in[0], -2, -2)));
  add(select_op, "the last axis", {{{kOpen, 3}}}, EBB_CALL(select(in[0], 1, 2)));
  add(select_op, "the last step", {{{kOpen, 3, 2}}}, EBB_CALL(last_step(in[0])));
  add(select_backward_op, "a middle axis", {{{kOpen, 2}}, {{kOpen, 3, 2}}},
      applying(select_backward_op, SelectAttributes{1, -1}), false);
  for (const int axis : {0, -1}) {
    add(size_op, axis ? "of the last axis" : "of a batch", {{{kOpen, 2}}},
        EBB_CALL(size(in[0], axis)));
    samples.back().order = 0;
  }

  references.add(reshape_op,
                 [](const Application& a) { return reshaped(a[0], a.outputs[0].shape); });
  references.add(reshape_like_op, [](const Application& a) { return reshaped(a[0], a[1].shape); });
  references.add(flatten_op, [](const Application& a) {
    const Shape& x = a[0].shape;
    return reshaped(a[0], {x[0], size(x, 1, x.rank())});
  });
  references.add(as_matrix_op, [](const Application& a) {
    const Shape& x = a[0].shape;
    return reshaped(a[0], {size(x, 0, x.rank() - 1), x[-1]});
  });
  for (const OpDef* op : {&unflatten_op, &merge_axes_op, &unsqueeze_op, &squeeze_op})
    references.add(*op, [](const Application& a) { return reshaped(a[0], a.outputs[0].shape); });
  for (const OpDef* op : {&slice_op, &strided_slice_op})
    references.add(*op, [](const Application& a) {
      const auto& slice = a.attribute<SliceAttributes>();
      return picked(a[0], sliced(a[0].shape, slice), sliced_shape(a[0].shape, slice));
    });
  references.add(slice_backward_op, [](const Application& a) {
    return placed(a[0], sliced(a[1].shape, a.attribute<SliceAttributes>()), a[1].shape);
  });
  references.add(select_op, [](const Application& a) {
    const auto& attributes = a.attribute<SelectAttributes>();
    return picked(a[0], selected(a[0].shape, attributes),
                  without_axis(a[0].shape, attributes.axis));
  });
  references.add(select_backward_op, [](const Application& a) {
    return placed(a[0], selected(a[1].shape, a.attribute<SelectAttributes>()), a[1].shape);
  });
  references.add(size_op, [](const Application& a) {
    Array out{Shape{}};
    const auto axis = static_cast<std::size_t>(a.attribute<SizeAttributes>().axis);
    out[0] = static_cast<double>(a[0].shape.dims()[axis]);
    return out;
  });
}

}  // namespace ebb::tests
