#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/attention.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

// The mask, if there is one, is the last input; one of labels counts where they are not 0.
Tensor run(const Tensors& in, bool causal) {
  AttentionOptions options{.causal = causal};
  if (in.size() == 4)
    options.mask = is_floating(in[3].dtype()) ? in[3] : cast(in[3], DType::boolean);
  return scaled_dot_product_attention(in[0], in[1], in[2], options);
}

}  // namespace

void add_attention_samples(std::vector<Sample>& samples, DType dtype) {
  const auto add = [&](const char* how, std::vector<SampleInput> inputs, bool causal) {
    samples.push_back({.op = &attention_op,
                       .name = std::string("attention, ") + how,
                       .inputs = inputs,
                       .call = [causal](const Tensors& in) -> Tensors { return {run(in, causal)}; },
                       .any_shape = true,
                       .largest_batch = 100});
    samples.push_back({.op = &attention_backward_op,
                       .name = std::string("attention_backward, ") + how,
                       .inputs = std::move(inputs),
                       .call =
                           [causal](const Tensors& in) {
                             Tensors values = in, wanted;
                             for (std::size_t i = 0; i < 3; ++i) {
                               if (!values[i].is_symbolic()) values[i] = values[i].with_grad();
                               wanted.push_back(values[i]);
                             }
                             return gradients(sum(square(run(values, causal))), wanted);
                           },
                       .order = 0,
                       .any_dtype = true,
                       .any_shape = true,
                       .largest_batch = 100});
  };
  add("one head", {{{kOpen, 3, 4}}, {{kOpen, 5, 4}}, {{kOpen, 5, 2}}}, false);
  add("causal", {{{2, kOpen, 3}}, {{2, kOpen, 3}}, {{2, kOpen, 4}}}, true);
  add("a bool mask",
      {{{kOpen, 2, 3, 2}},
       {{kOpen, 2, 4, 2}},
       {{kOpen, 2, 4, 2}},
       {{kOpen, 1, 1, 4}, Values::labels}},
      false);
  if (!is_half(dtype))
    add("a mask that is added, causal",
        {{{kOpen, 2, 3, 2}}, {{kOpen, 2, 4, 2}}, {{kOpen, 2, 4, 2}}, {{2, 3, 1}}}, true);
  samples.push_back({.op = &causal_bias_op,
                     .name = "causal_bias",
                     .inputs = {{{kOpen, 2, 4}}},
                     .call = [](const Tensors& in) -> Tensors {
                       return {apply_one(causal_bias_op, {in[0]}, {}, {})};
                     },
                     .order = 0,
                     .any_shape = true});
}

}  // namespace ebb::tests
