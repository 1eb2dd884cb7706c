#include "ebb/core/kernels/layout.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

std::size_t axis_of(const Application& a) {
  return static_cast<std::size_t>(a.attribute<ConcatAttributes>().axis);
}
std::int64_t along(const Application& a, const Array& part) {
  return part.shape[static_cast<int>(axis_of(a))];
}
// Index in the whole of an element of a part that starts at `before` along the axis.
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

void layout_family(std::vector<Sample>& samples, References& references, DType) {
  const auto permuted = [&](const char* how, const Shape& shape, const Axes& axes) {
    samples.push_back(moving_sample(permute_op, how, {{shape}}, EBB_CALL(permute(in[0], axes))));
  };
  permuted("a matrix", {kOpen, 5}, {1, 0});
  permuted("whole tiles and parts", {40, 35}, {1, 0});
  permuted("the batch inside", {kOpen, 2, 3}, {1, 2, 0});
  permuted("the batch further inside", {kOpen, 2, 3}, {1, 0, -1});
  permuted("all axes backwards", {2, kOpen, 3, 1, 4}, {4, 3, 2, 1, 0});
  permuted("axes of size 1", {1, kOpen, 1}, {2, 1, 0});
  permuted("nothing", {4, 0, 3}, {2, 0, 1});
  samples.push_back(
      moving_sample(permute_op, "the last two", {{{3, kOpen, 20}}}, EBB_CALL(transpose(in[0]))));
  samples.push_back(moving_sample(permute_op, "the outer two", {{{3, kOpen, 2}}},
                                  EBB_CALL(transpose(in[0], 1, 0))));

  const auto joined = [&](const char* how, std::vector<SampleInput> inputs, int axis) {
    samples.push_back(moving_sample(concat_op, how, std::move(inputs), EBB_CALL(concat(in, axis))));
  };
  joined("batches", {{{kOpen, 3}}, {{2, 3}}, {{kOpen, 3}}}, 0);
  joined("features", {{{kOpen, 3}}, {{kOpen, 1}}, {{kOpen, 4}}}, -1);
  joined("a middle axis", {{{kOpen, 2, 3}}, {{kOpen, 1, 3}}}, 1);
  joined("with nothing between", {{{2, 2}}, {{2, 0}}, {{2, 3}}}, 1);
  joined("one alone", {{{kOpen, 2}}}, 0);
  samples.back().any_shape = true;
  joined("nothing", {{{0, 2}}, {{0, 3}}}, 1);
  samples.push_back(
      moving_sample(concat_op, "stacked", {{{kOpen, 3}}, {{kOpen, 3}}}, EBB_CALL(stack(in, -1))));
  samples.push_back(moving_sample(concat_op, "many", {{{kOpen, 1}}, {{kOpen, 2}}},
                                  [](const Tensors& in) -> Tensors {
                                    Tensors all;
                                    for (int i = 0; i < 70; ++i)
                                      all.push_back(in[static_cast<std::size_t>(i % 2)]);
                                    return {concat(all, 1)};
                                  }));
  const auto parts = [&](const char* how, std::vector<SampleInput> inputs, std::int64_t axis,
                         std::vector<int> read) {
    Sample sample = moving_sample(concat_backward_op, how, std::move(inputs), nullptr);
    sample.call = [axis, read](const Tensors& in) {
      InlineVector<Input, 8> all(in.begin(), in.end());
      Tensors results =
          apply(concat_backward_op, {all.data(), all.size()}, ConcatAttributes{axis}, {});
      Tensors wanted;
      for (const int i : read) wanted.push_back(results[static_cast<std::size_t>(i)]);
      return wanted;
    };
    samples.push_back(std::move(sample));
  };
  parts("features", {{{kOpen, 8}}, {{kOpen, 3}}, {{kOpen, 1}}, {{kOpen, 4}}}, 1, {0, 1, 2});
  parts("some of the batches", {{{8, 2}}, {{2, 2}}, {{1, 2}}, {{5, 2}}}, 0, {1});
  parts("of a middle axis", {{{2, 5, kOpen}}, {{2, 1, kOpen}}, {{2, 4, kOpen}}}, 1, {1, 0});

  const auto padded = [&](const char* how, const Shape& shape,
                          const InlineVector<Padding, kMaxRank>& axes, double value) {
    samples.push_back(moving_sample(pad_op, how, {{shape}}, EBB_CALL(pad(in[0], axes, value))));
  };
  padded("rows", {kOpen, 3}, {{2, 1}, {0, 0}}, 0);
  padded("columns", {kOpen, 3}, {{0, 0}, {0, 2}}, -1.5);
  padded("images", {2, kOpen, 3}, {{0, 0}, {1, 2}, {1, 0}}, 0.25);
  padded("a middle axis of 1", {2, 1, kOpen}, {{0, 0}, {1, 1}, {0, 0}}, 1);
  padded("all of five axes", {2, 1, kOpen, 2, 3}, {{1, 0}, {0, 1}, {1, 1}, {0, 2}, {2, 0}}, 3);
  padded("by nothing", {kOpen, 2}, {{0, 0}, {0, 0}}, 7);
  padded("nothing", {0, 2}, {{1, 2}, {0, 1}}, 4);

  const auto broadcast = [&](const char* how, const Shape& shape, const Shape& to) {
    samples.push_back(
        moving_sample(broadcast_to_op, how, {{shape}}, EBB_CALL(broadcast_to(in[0], to))));
    samples.back().any_shape = true;
  };
  broadcast("a row", {3}, {4, 3});
  broadcast("a column", {kOpen, 1}, {-1, 5});
  broadcast("a middle axis", {2, 1, kOpen}, {3, 2, 2, -1});
  broadcast("a scalar", {}, {2, 3});
  broadcast("to nothing", {1, 2}, {0, 2});
  broadcast("what has the shape", {kOpen, 2}, {-1, 2});
  samples.push_back(
      moving_sample(broadcast_to_op, "tiled", {{{kOpen, 3}}}, EBB_CALL(tile(in[0], 2, 1))));
  samples.push_back(
      moving_sample(broadcast_to_op, "repeated", {{{kOpen, 3}}}, EBB_CALL(repeat(in[0], 2))));

  references.add(permute_op, [](const Application& a) {
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
  references.add(concat_op, [](const Application& a) {
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
  references.add(concat_backward_op, [](const Application& a) {
    Arrays parts;
    std::int64_t before = 0;
    for (std::size_t i = 1; i < a.inputs.size(); ++i) {
      Array part(a[i].shape);
      for_each_index(part.shape, [&](const Index& index) {
        part[position(part.shape, index)] = a[0][position(a[0].shape, shifted(a, index, before))];
      });
      before += along(a, part);
      parts.push_back(part);
    }
    return parts;
  });
  references.add(pad_op, [](const Application& a) {
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
  references.add(broadcast_to_op, [](const Application& a) {
    Array out(a.outputs[0].shape);
    for_each_index(out.shape, [&](const Index& index) {
      out[position(out.shape, index)] = a[0][position(a[0].shape, index)];
    });
    return out;
  });
}

}  // namespace ebb::tests
