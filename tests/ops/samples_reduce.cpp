#include "ebb/core/kernels/reduce.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

bool reduces(const Reduction& reduction, std::size_t axis) {
  return (reduction.axes >> axis & 1) != 0;
}

// Number of elements of `large` that are summed into one.
double count(const Shape& large, const Reduction& reduction) {
  double n = 1;
  for (int axis = 0; axis < large.rank(); ++axis)
    if (reduces(reduction, static_cast<std::size_t>(axis))) n *= static_cast<double>(large[axis]);
  return n;
}

Array sum_over(const Array& x, const Reduction& reduction, bool mean) {
  Shape shape;
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    const bool reduced = reduces(reduction, static_cast<std::size_t>(axis));
    if (!reduced || reduction.keep) shape.push_back(reduced ? 1 : x.shape[axis]);
  }
  Array out(shape);
  std::int64_t next = 0;
  for_each_index(x.shape, [&](const Index& index) {
    out[position(shape, without_axes(index, reduction.axes, reduction.keep))] += x[next++];
  });
  if (mean)
    for (double& value : out.values) value /= count(x.shape, reduction);
  return out;
}

}  // namespace

void reduce_family(std::vector<Sample>& samples, References& references, DType) {
  const struct {
    const OpDef& op;
    Tensor (*call)(const Operand&, const ReduceOptions&);
  } reductions[] = {{sum_op, sum}, {mean_op, mean}};
  for (const auto& kind : reductions) {
    const auto add = [&, f = kind.call](const char* how, const Shape& shape,
                                        const ReduceOptions& options) {
      samples.push_back(of_any_shape(kind.op, how, {{shape}}, EBB_CALL(f(in[0], options))));
    };
    add("all", {kOpen, 3}, {});
    add("rows", {kOpen, 3}, {.axes = {0}});
    add("the last axis, kept", {2, kOpen, 3}, {.axes = {-1}, .keep = true});
    add("the middle axis", {kOpen, 4, 3}, {.axes = {1}});
    add("outer and inner axes", {2, kOpen, 3, 2}, {.axes = {0, 2}});
    add("a scalar", {}, {});
  }

  // sum takes every dtype. Sums of integers and bool are i64 and have no gradient.
  for (Sample& sample : samples)
    if (sample.op == &sum_op) sample.any_dtype = true;
  const auto add_every = [&](const OpDef& op, Tensor (*call)(const Operand&, const ReduceOptions&),
                             Values values, DType dtype) {
    const auto add = [&](const char* how, const Shape& shape, const ReduceOptions& options) {
      samples.push_back(of_any_shape(op, std::string(how) + ", " + name(dtype),
                                     {{shape, values, dtype}}, EBB_CALL(call(in[0], options)),
                                     kNoGradient));
      samples.back().any_dtype = &op == &sum_op;
    };
    add("all of it", {kOpen, 3}, {});
    add("its rows", {kOpen, 2}, {.axes = {0}});
    add("along rows, kept", {2, kOpen, 3}, {.axes = {-1}, .keep = true});
    add("outer and inner", {2, kOpen, 3, 2}, {.axes = {0, 2}});
    add("an axis of 1", {kOpen, 1}, {.axes = {1}});
  };
  for (const DType dtype : {DType::i32, DType::i64, DType::u8})
    add_every(sum_op, sum, Values::labels, dtype);
  add_every(sum_op, sum, Values::flags, DType::boolean);
  add_every(any_op, any, Values::flags, DType::boolean);
  add_every(all_op, all, Values::flags, DType::boolean);

  const auto add_like = [&](const char* how, const Shape& large, const Shape& small) {
    samples.push_back(
        of_any_shape(sum_like_op, how, {{large}, {small}}, EBB_CALL(sum_like(in[0], in[1]))));
    samples.push_back(moving_sample(expand_as_op, how, {{small}, {large}},
                                    EBB_CALL(expand_as(in[0], in[1])), true));
  };
  add_like("rows", {kOpen, 3}, {3});
  add_like("a column", {kOpen, 3}, {kOpen, 1});
  add_like("everything", {2, kOpen, 3}, {});
  add_like("two axes apart", {2, kOpen, 3}, {kOpen, 1});

  for (const bool mean : {false, true})
    for (const bool keep : {false, true}) {
      Shape small{3};
      if (keep) small = {1, 3};
      samples.push_back(sample_of(
          broadcast_like_op, std::string(mean ? "mean" : "sum") + (keep ? ", kept" : ""),
          {{small}, {{kOpen, 3}}},
          EBB_CALL(detail::broadcast_like(in[0], in[1], {.axes = 1, .keep = keep, .mean = mean}))));
    }

  references.add(sum_op, [](const Application& a) -> Arrays {
    return {sum_over(a[0], a.attribute<Reduction>(), false)};
  });
  references.add(mean_op, [](const Application& a) -> Arrays {
    return {sum_over(a[0], a.attribute<Reduction>(), true)};
  });
  references.add(any_op, [](const Application& a) -> Arrays {
    return {map(sum_over(a[0], a.attribute<Reduction>(), false),
                [](double count) { return double(count > 0); })};
  });
  references.add(all_op, [](const Application& a) -> Arrays {
    const auto& reduction = a.attribute<Reduction>();
    const double terms = count(a[0].shape, reduction);
    return {map(sum_over(a[0], reduction, false),
                [=](double found) { return double(found == terms); })};
  });
  references.add(sum_like_op, [](const Application& a) -> Arrays {
    Array out(a[1].shape);
    std::int64_t next = 0;
    for_each_index(a[0].shape,
                   [&](const Index& index) { out[position(out.shape, index)] += a[0][next++]; });
    return {out};
  });
  references.add(expand_as_op, [](const Application& a) -> Arrays {
    Array out(a[1].shape);
    std::int64_t next = 0;
    for_each_index(out.shape,
                   [&](const Index& index) { out[next++] = a[0][position(a[0].shape, index)]; });
    return {out};
  });
  references.add(broadcast_like_op, [](const Application& a) -> Arrays {
    const auto& reduction = a.attribute<Reduction>();
    Array out(a[1].shape);
    std::int64_t next = 0;
    for_each_index(out.shape, [&](const Index& index) {
      const Index from = without_axes(index, reduction.axes, reduction.keep);
      out[next++] =
          a[0][position(a[0].shape, from)] / (reduction.mean ? count(out.shape, reduction) : 1);
    });
    return {out};
  });
}

}  // namespace ebb::tests
