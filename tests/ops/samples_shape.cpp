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
  samples.push_back(
      moving_sample(reshape_like_op, "a matrix", {{{kOpen, 6}}, {{kOpen, 2, 3}}},
                    [](const Tensors& in) { return detail::reshape_like(in[0], in[1]); }));
  samples.push_back(moving_sample(
      as_matrix_op, "sequences", {{{2, kOpen, 3}}},
      [](const Tensors& in) { return detail::as_matrix(in[0]); }, true));
  samples.push_back(moving_sample(
      flatten_op, "images", {{{kOpen, 2, 3}}}, [](const Tensors& in) { return flatten(in[0]); },
      true));
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
  samples.push_back(moving_sample(
      slice_backward_op, "the end", {{{2, 3}}, {{5, 3}}},
      [](const Tensors& in) { return backward(slice_backward_op, in, SliceAttributes{-2}); }));
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
