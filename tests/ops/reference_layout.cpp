#include "ebb/core/kernels/layout.h"

#include "ebb/core/ops/layout.h"
#include "ebb/tests/ops/reference.h"

namespace ebb::tests {

namespace {

std::size_t axis_of(const Application& a) {
  return static_cast<std::size_t>(a.attribute<ConcatAttributes>().axis);
}
std::int64_t along(const Application& a, const Array& part) {
  return part.shape[static_cast<int>(axis_of(a))];
}
// Where an element of a part that so much lies before is in the whole.
Index shifted(const Application& a, Index index, std::int64_t before) {
  index[axis_of(a)] += before;
  return index;
}
Shape whole(const Application& a) {
  Shape shape = a[0].shape;
  std::int64_t size = 0;
  for (const Array& part : a.inputs) size += along(a, part);
  shape.set(static_cast<int>(axis_of(a)), size);
  return shape;
}

}  // namespace

void add_layout_references(std::vector<Reference>& references) {
  const auto add = [&](const OpDef& op, Array (*compute)(const Application&)) {
    references.push_back({&op, [compute](const Application& a) -> Arrays { return {compute(a)}; }});
  };
  add(permute_op, [](const Application& a) {
    const Array& x = a[0];
    const auto& order = a.attribute<PermuteAttributes>();
    const auto axis_of_x = [&](int axis) { return order.axes[axis]; };
    Shape shape = x.shape;
    for (int i = 0; i < shape.rank(); ++i) shape.set(i, x.shape[axis_of_x(i)]);
    Array out(shape);
    for_each_index(shape, [&](const Index& index) {
      Index from(index.size());
      for (std::size_t i = 0; i < index.size(); ++i)
        from[static_cast<std::size_t>(axis_of_x(static_cast<int>(i)))] = index[i];
      out[position(shape, index)] = x[position(x.shape, from)];
    });
    return out;
  });
  add(concat_op, [](const Application& a) {
    Array out(whole(a));
    std::int64_t before = 0;
    for (const Array& part : a.inputs) {
      for_each_index(part.shape, [&](const Index& index) {
        out[position(out.shape, shifted(a, index, before))] = part[position(part.shape, index)];
      });
      before += along(a, part);
    }
    return out;
  });
  references.push_back({&concat_backward_op, [](const Application& a) {
                          Arrays parts;
                          std::int64_t before = 0;
                          for (std::size_t i = 1; i < a.inputs.size(); ++i) {
                            Array part(a[i].shape);
                            for_each_index(part.shape, [&](const Index& index) {
                              part[position(part.shape, index)] =
                                  a[0][position(a[0].shape, shifted(a, index, before))];
                            });
                            before += along(a, part);
                            parts.push_back(part);
                          }
                          return parts;
                        }});
  add(pad_op, [](const Application& a) {
    const Array& x = a[0];
    const auto& attributes = a.attribute<PadAttributes>();
    Shape shape = x.shape;
    for (int i = 0; i < shape.rank(); ++i)
      shape.set(i, attributes.before[i] + x.shape[i] + attributes.after[i]);
    Array out(shape);
    for_each_index(shape, [&](const Index& index) {
      Index from = index;
      bool inside = true;
      for (std::size_t i = 0; i < index.size(); ++i) {
        from[i] -= attributes.before[i];
        inside = inside && from[i] >= 0 && from[i] < x.shape[static_cast<int>(i)];
      }
      out[position(shape, index)] = inside ? x[position(x.shape, from)] : attributes.value;
    });
    return out;
  });
  add(broadcast_to_op, [](const Application& a) {
    Array out(a.outputs[0].shape);
    for_each_index(out.shape, [&](const Index& index) {
      out[position(out.shape, index)] = a[0][position(a[0].shape, index)];
    });
    return out;
  });
}

}  // namespace ebb::tests
