#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/ops/loss.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {

void add_loss_samples(std::vector<Sample>& samples) {
  const auto softmax_of = [](const Tensors& in) -> Tensors { return {softmax(in[0])}; };
  samples.push_back({.op = &softmax_op,
                     .name = "softmax",
                     .inputs = {{{kOpen, 5}}},
                     .call = softmax_of,
                     .any_shape = true});
  samples.push_back({.op = &softmax_op,
                     .name = "softmax of sequences",
                     .inputs = {{{2, kOpen, 3}}},
                     .call = softmax_of,
                     .any_shape = true});
  for (const Values labels : {Values::labels, Values::long_labels}) {
    const std::string kind = labels == Values::labels ? "" : ", i64 labels";
    samples.push_back({.op = &softmax_cross_entropy_op,
                       .name = "softmax_cross_entropy" + kind,
                       .inputs = {{{kOpen, 5}}, {{kOpen}, labels}},
                       .call = [](const Tensors& in) -> Tensors {
                         return {softmax_cross_entropy(in[0], in[1])};
                       }});
    samples.push_back({.op = &softmax_cross_entropy_backward_op,
                       .name = "softmax_cross_entropy_backward" + kind,
                       .inputs = {{{kOpen, 5}}, {{kOpen}, labels}, {{}}},
                       .call = [](const Tensors& in) {
                         const Input inputs[] = {in[0], in[1], in[2]};
                         return apply(softmax_cross_entropy_backward_op, inputs, {}, {});
                       }});
  }
  samples.push_back({.op = &difference_op,
                     .name = "the difference of mse",
                     .inputs = {{{kOpen, 3}}, {{kOpen, 3}}},
                     .call = [](const Tensors& in) -> Tensors {
                       return {apply_one(difference_op, {in[0], in[1]}, NumberOperand{}, {})};
                     },
                     .any_shape = true});
}

}  // namespace ebb::tests
