#include <limits>

#include "ebb/core/kernels/index.h"
#include "ebb/core/ops/index.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

// Calls body(position in x, position in the parts) for each element of the parts that an index in
// range chooses.
template <class Body>
void for_each_chosen(const Shape& x, const Array& indices, const Shape& parts, std::int64_t along,
                     const Body& body) {
  const auto axis = static_cast<std::size_t>(along);
  const auto axes = static_cast<std::size_t>(indices.shape.rank());
  for_each_index(parts, [&](const Index& part) {
    const Index chosen(part.begin() + along, part.begin() + along + indices.shape.rank());
    const auto index = static_cast<std::int64_t>(indices[position(indices.shape, chosen)]);
    if (index < 0 || index >= x[static_cast<int>(along)]) return;
    Index from(part.begin(), part.begin() + along);
    from.push_back(index);
    from.insert(from.end(), part.begin() + static_cast<std::ptrdiff_t>(axis + axes), part.end());
    body(position(x, from), position(parts, part));
  });
}

// Calls body(position in x, position in the indices) for each index in range.
template <class Body>
void for_each_gathered(const Shape& x, const Array& indices, std::int64_t along, const Body& body) {
  std::int64_t next = 0;
  for_each_index(indices.shape, [&](const Index& index) {
    Index from = index;
    const auto at = static_cast<std::int64_t>(indices[next++]);
    from[static_cast<std::size_t>(along)] = at;
    if (at >= 0 && at < x[static_cast<int>(along)]) body(position(x, from), next - 1);
  });
}

}  // namespace

void index_family(std::vector<Sample>& samples, References& references, DType) {
  using enum Values;
  const auto add = [&](const char* how, std::vector<SampleInput> inputs, int axis) {
    samples.push_back(moving_sample(index_select_op, how, std::move(inputs),
                                    EBB_CALL(index_select(in[0], in[1], axis)), true));
  };
  add("rows", {{{5, 3}}, {{kOpen}, labels}}, 0);
  add("a middle axis", {{{2, 5, 3}}, {{kOpen}, long_labels}}, 1);
  add("the last axis of a batch", {{{kOpen, 6}}, {{4}, labels}}, -1);
  add("by a matrix", {{{5, 2}}, {{kOpen, 3}, long_labels}}, 0);
  add("by one number", {{{6, 2}}, {{}, labels}}, 0);

  const auto backward = [&](const char* how, std::vector<SampleInput> inputs, std::int64_t axis) {
    samples.push_back(sample_of(index_select_backward_op, how, std::move(inputs),
                                applying(index_select_backward_op, IndexAttributes{axis})));
  };
  backward("rows", {{{kOpen, 3}}, {{kOpen}, labels}, {{6, 3}}}, 0);
  backward("a middle axis", {{{2, kOpen, 3}}, {{kOpen}, long_labels}, {{2, 5, 3}}}, 1);
  backward("one axis", {{{kOpen}}, {{kOpen}, long_labels}, {{7}}}, 0);
  backward("in parts", {{{600, 1}}, {{600}, labels}, {{6, 1}}}, 0);
  backward("of a batch", {{{kOpen, 4}}, {{4}, labels}, {{kOpen, 6}}}, 1);

  const auto gathered = [&](const char* how, std::vector<SampleInput> inputs, int axis) {
    samples.push_back(
        moving_sample(gather_op, how, std::move(inputs), EBB_CALL(gather(in[0], axis, in[1]))));
  };
  gathered("rows", {{{kOpen, 6}}, {{kOpen, 3}, labels}}, -1);
  gathered("the first axis", {{{5, 2}}, {{kOpen, 2}, long_labels}}, 0);
  gathered("a middle axis", {{{2, 5, kOpen}}, {{2, 3, kOpen}, long_labels}}, 1);
  const auto scattered = [&](const char* how, std::vector<SampleInput> inputs, std::int64_t axis) {
    samples.push_back(sample_of(gather_backward_op, how, std::move(inputs),
                                applying(gather_backward_op, IndexAttributes{axis})));
  };
  scattered("rows", {{{kOpen, 4}}, {{kOpen, 4}, labels}, {{kOpen, 6}}}, 1);
  scattered("the first axis", {{{kOpen, 2}}, {{kOpen, 2}, long_labels}, {{5, 2}}}, 0);
  scattered("a middle axis", {{{2, 7, kOpen}}, {{2, 7, kOpen}, labels}, {{2, 5, kOpen}}}, 1);

  for (const Values kind : {labels, long_labels})
    samples.push_back(of_any_shape(one_hot_op, kind == labels ? "a batch" : "i64",
                                   {{{kOpen}, kind}}, EBB_CALL(one_hot(in[0], 4)), kNoGradient));

  references.add(index_select_op, [](const Application& a) -> Arrays {
    Array out(a.outputs[0].shape);
    for_each_chosen(a[0].shape, a[1], out.shape, a.attribute<IndexAttributes>().axis,
                    [&](std::int64_t x, std::int64_t part) { out[part] = a[0][x]; });
    return {out};
  });
  references.add(index_select_backward_op, [](const Application& a) -> Arrays {
    Array out(a[2].shape);
    for_each_chosen(out.shape, a[1], a[0].shape, a.attribute<IndexAttributes>().axis,
                    [&](std::int64_t x, std::int64_t part) { out[x] += a[0][part]; });
    return {out};
  });
  references.add(gather_op, [](const Application& a) -> Arrays {
    Array out(a[1].shape);
    if (is_floating(a.outputs[0].dtype))
      for (double& value : out.values) value = std::numeric_limits<double>::quiet_NaN();
    for_each_gathered(a[0].shape, a[1], a.attribute<IndexAttributes>().axis,
                      [&](std::int64_t x, std::int64_t to) { out[to] = a[0][x]; });
    return {out};
  });
  references.add(gather_backward_op, [](const Application& a) -> Arrays {
    Array out(a[2].shape);
    for_each_gathered(out.shape, a[1], a.attribute<IndexAttributes>().axis,
                      [&](std::int64_t x, std::int64_t from) { out[x] += a[0][from]; });
    return {out};
  });
  references.add(one_hot_op, [](const Application& a) -> Arrays {
    Array out(a.outputs[0].shape);
    const std::int64_t classes = out.shape[-1];
    for (std::int64_t i = 0; i < out.elements(); ++i)
      out[i] = a[0][i / classes] == static_cast<double>(i % classes) ? 1 : 0;
    return {out};
  });
}

}  // namespace ebb::tests
