#include "ebb/core/kernels/slice.h"

#include "ebb/core/ops/shape.h"
#include "ebb/tests/ops/reference.h"

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

// The flat places in an array of `shape` of what select or slice picks from it, in order.
std::vector<std::int64_t> selected(const Shape& shape, const SelectAttributes& attributes) {
  const std::int64_t along = shape[static_cast<int>(attributes.axis)];
  const std::int64_t wanted = attributes.index < 0 ? attributes.index + along : attributes.index;
  std::vector<std::int64_t> places;
  for_each_index(shape, [&](const Index& index) {
    if (index[static_cast<std::size_t>(attributes.axis)] == wanted)
      places.push_back(position(shape, index));
  });
  return places;
}

// The indices that a slice takes along its axis, in order.
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

void add_shape_references(std::vector<Reference>& references) {
  const auto add = [&](const OpDef& op, Array (*compute)(const Application&)) {
    references.push_back({&op, [compute](const Application& a) -> Arrays { return {compute(a)}; }});
  };
  add(reshape_op, [](const Application& a) { return reshaped(a[0], a.outputs[0].shape); });
  add(reshape_like_op, [](const Application& a) { return reshaped(a[0], a[1].shape); });
  add(flatten_op, [](const Application& a) {
    const Shape& x = a[0].shape;
    return reshaped(a[0], {x[0], size(x, 1, x.rank())});
  });
  add(as_matrix_op, [](const Application& a) {
    const Shape& x = a[0].shape;
    return reshaped(a[0], {size(x, 0, x.rank() - 1), x[-1]});
  });
  for (const OpDef* op : {&unflatten_op, &merge_axes_op, &unsqueeze_op, &squeeze_op})
    add(*op, [](const Application& a) { return reshaped(a[0], a.outputs[0].shape); });
  for (const OpDef* op : {&slice_op, &strided_slice_op})
    add(*op, [](const Application& a) {
      const auto& slice = a.attribute<SliceAttributes>();
      return picked(a[0], sliced(a[0].shape, slice), sliced_shape(a[0].shape, slice));
    });
  add(slice_backward_op, [](const Application& a) {
    return placed(a[0], sliced(a[1].shape, a.attribute<SliceAttributes>()), a[1].shape);
  });
  add(select_op, [](const Application& a) {
    const auto& attributes = a.attribute<SelectAttributes>();
    return picked(a[0], selected(a[0].shape, attributes),
                  without_axis(a[0].shape, attributes.axis));
  });
  add(select_backward_op, [](const Application& a) {
    return placed(a[0], selected(a[1].shape, a.attribute<SelectAttributes>()), a[1].shape);
  });
  add(size_op, [](const Application& a) {
    Array out{Shape{}};
    const auto axis = static_cast<std::size_t>(a.attribute<SizeAttributes>().axis);
    out[0] = static_cast<double>(a[0].shape.dims()[axis]);
    return out;
  });
}

}  // namespace ebb::tests
