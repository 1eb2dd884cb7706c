#include "ebb/core/kernels/slice.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

template <class A>
Tensor backward(const OpDef& op, const Tensors& in, const A& attributes) {
  return apply_one(op, {in[0], in[1]}, attributes, {});
}

}  // namespace

void add_shape_samples(std::vector<Sample>& samples) {
  samples.push_back(moving_sample(
      reshape_op, "with a -1", {{{kOpen, 2, 3}}},
      [](const Tensors& in) {
        return reshape(in[0], {-1, 6});
      },
      true));
  samples.push_back(moving_sample(reshape_op, "known", {{{2, 3}}}, [](const Tensors& in) {
    return reshape(in[0], {3, 1, 2});
  }));
  samples.push_back(moving_sample(reshape_op, "to a scalar", {{{1, 1}}},
                                  [](const Tensors& in) { return reshape(in[0], {}); }));
  samples.push_back(moving_sample(
      unflatten_op, "between open axes", {{{kOpen, 6, kOpen}}},
      [](const Tensors& in) {
        return unflatten(in[0], -2, {2, -1});
      },
      true));
  samples.push_back(
      moving_sample(reshape_like_op, "a matrix", {{{kOpen, 6}}, {{kOpen, 2, 3}}},
                    [](const Tensors& in) { return detail::reshape_like(in[0], in[1]); }));
  samples.push_back(moving_sample(
      as_matrix_op, "sequences", {{{2, kOpen, 3}}},
      [](const Tensors& in) { return detail::as_matrix(in[0]); }, true));
  samples.push_back(moving_sample(
      flatten_op, "images", {{{kOpen, 2, 3}}}, [](const Tensors& in) { return flatten(in[0]); },
      true));
  samples.push_back(moving_sample(
      merge_axes_op, "the last", {{{2, kOpen, 3}}},
      [](const Tensors& in) { return detail::merge_axes(in[0], 1); }, true));
  for (const int axis : {0, 1, -1})
    samples.push_back(moving_sample(
        unsqueeze_op,
        axis < 0   ? "behind"
        : axis > 0 ? "in the middle"
                   : "in front",
        {{{kOpen, 3}}}, [axis](const Tensors& in) { return unsqueeze(in[0], axis); }, true));
  samples.push_back(
      moving_sample(squeeze_op, "two axes", {{{1, kOpen, 1, 2}}}, [](const Tensors& in) {
        return squeeze(in[0], {0, -2});
      }));
  samples.push_back(moving_sample(
      slice_op, "from the front", {{{5, 3}}}, [](const Tensors& in) { return slice(in[0], 1, 4); },
      true));
  samples.push_back(moving_sample(
      slice_op, "to the end", {{{kOpen, 3}}}, [](const Tensors& in) { return slice(in[0], 0); },
      true));
  samples.push_back(moving_sample(
      slice_op, "nothing", {{{4}}}, [](const Tensors& in) { return slice(in[0], 2, 2); }, true));
  const auto strided = [&](const char* how, const Shape& shape, std::int64_t begin,
                           std::int64_t end, const SliceOptions& options) {
    samples.push_back(moving_sample(
        strided_slice_op, how, {{shape}},
        [=](const Tensors& in) { return slice(in[0], begin, end, options); }, true));
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
  samples.push_back(moving_sample(
      strided_slice_op, "flipped", {{{2, kOpen, 3}}},
      [](const Tensors& in) {
        return flip(in[0], {1, -1});
      },
      true));
  samples.push_back(moving_sample(
      strided_slice_op, "split", {{{kOpen, 6}}},
      [](const Tensors& in) {
        return split(in[0], {1, -1, 2}, 1)[1];
      },
      true));
  const auto placing = [&](const char* how, const Shape& part, const Shape& whole,
                           const SliceAttributes& attributes) {
    samples.push_back(moving_sample(
        slice_backward_op, how, {{part}, {whole}},
        [=](const Tensors& in) { return backward(slice_backward_op, in, attributes); }));
  };
  placing("the end", {2, 3}, {5, 3}, {-2});
  placing("the middle", {2, kOpen}, {5, kOpen}, {1, 3});
  placing("of a middle axis", {kOpen, 2, 3}, {kOpen, 4, 3}, {1, 3, 1});
  placing("backwards in steps", {kOpen, 3}, {kOpen, 7}, {6, 0, 1, -2});
  placing("nothing", {2, 0}, {2, 3}, {1, 1, 1});
  samples.push_back(moving_sample(
      select_op, "the first row", {{{3, 2}}}, [](const Tensors& in) { return select(in[0], 0, 0); },
      true));
  samples.push_back(moving_sample(
      select_op, "a middle axis", {{{kOpen, 3, 2}}},
      [](const Tensors& in) { return select(in[0], -2, -2); }, true));
  samples.push_back(moving_sample(
      select_op, "the last axis", {{{kOpen, 3}}},
      [](const Tensors& in) { return select(in[0], 1, 2); }, true));
  samples.push_back(moving_sample(
      select_op, "the last step", {{{kOpen, 3, 2}}},
      [](const Tensors& in) { return last_step(in[0]); }, true));
  samples.push_back(moving_sample(
      select_backward_op, "a middle axis", {{{kOpen, 2}}, {{kOpen, 3, 2}}}, [](const Tensors& in) {
        return backward(select_backward_op, in, SelectAttributes{1, -1});
      }));
  for (const int axis : {0, -1}) {
    samples.push_back(moving_sample(
        size_op, axis ? "of the last axis" : "of a batch", {{{kOpen, 2}}},
        [axis](const Tensors& in) { return size(in[0], axis); }, true));
    samples.back().order = 0;
  }
}

}  // namespace ebb::tests
