#include "ebb/core/kernels/conv.h"
#include "ebb/core/ops/conv.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

struct Case {
  const char* how;
  Shape x, weights, y;
  ConvAttributes attributes = {};
};

Sample sample(const OpDef& op, const Case& of, std::vector<SampleInput> inputs) {
  return {.op = &op,
          .name = std::string(op.name) + ", " + of.how,
          .inputs = std::move(inputs),
          .call = [&op, attributes = of.attributes](const Tensors& in) {
            const InlineVector<Input, 3> given(in.begin(), in.end());
            return apply(op, {given.data(), given.size()}, attributes, {});
          }};
}

// Of the transpose: x is [n, in, h, w] and the weights [in, out / groups, kh, kw].
void add_transposes(std::vector<Sample>& samples, DType dtype) {
  const std::vector<Case> all = {
      {"", {kOpen, 3, 3, 2}, {3, 2, 2, 2}, {}},
      {"strides, paddings and dilations",
       {kOpen, 2, 2, 4},
       {2, 2, 2, 3},
       {},
       {.stride = {3, 1}, .padding = {1, 2}, .dilation = {2, 2}, .output_padding = {2, 0}}},
      {"groups",
       {kOpen, 4, 2, 2},
       {4, 1, 3, 3},
       {},
       {.stride = {2, 2}, .padding = {1, 1}, .groups = 2, .output_padding = {0, 1}}},
      {"of single pixels", {kOpen, 4, 2, 3}, {4, 3, 1, 1}, {}},
  };
  for (const Case& of : all) {
    if (is_half(dtype) && &of == &all[1]) continue;
    Case biased = of;
    biased.attributes.bias = 1;
    const SampleInput bias{{of.weights.dim(1) * of.attributes.groups}};
    samples.push_back(sample(conv_transpose2d_op, of, {{of.x}, {of.weights}}));
    samples.push_back(sample(conv_transpose2d_op, biased, {{of.x}, {of.weights}, bias}));
    samples.back().name += ", with bias";
  }
  samples.push_back({.op = &conv_transpose2d_op,
                     .name = "conv_transpose1d",
                     .inputs = {{{kOpen, 2, 3}}, {{2, 3, 2}}, {{3}}},
                     .call = [](const Tensors& in) -> Tensors {
                       return {conv_transpose1d(in[0], in[1], in[2], {.stride = 2, .padding = 1})};
                     }});
}

}  // namespace

void add_conv_samples(std::vector<Sample>& samples, DType dtype) {
  const std::vector<Case> all = {
      {"", {kOpen, 2, 4, 3}, {3, 2, 2, 2}, {kOpen, 3, 3, 2}},
      {"strides, paddings and dilations",
       {kOpen, 2, 5, 4},
       {2, 2, 2, 3},
       {kOpen, 2, 2, 4},
       {.stride = {3, 1}, .padding = {1, 2}, .dilation = {2, 2}}},
      {"groups",
       {kOpen, 4, 3, 3},
       {2, 2, 3, 3},
       {kOpen, 2, 2, 2},
       {.stride = {2, 2}, .padding = {1, 1}, .groups = 2}},
      {"of single pixels", {kOpen, 3, 2, 3}, {4, 3, 1, 1}, {kOpen, 4, 2, 3}},
      {"an image of open height", {1, 1, kOpen, 4}, {2, 1, 1, 2}, {}, {.padding = {1, 0}}},
  };
  for (const Case& of : all) {
    Case biased = of;
    biased.attributes.bias = 1;
    const SampleInput bias{{of.weights.dim(0)}};
    if (of.attributes.groups > 1 || &of == &all[0])
      samples.push_back(sample(conv2d_op, of, {{of.x}, {of.weights}}));
    samples.push_back(sample(conv2d_op, biased, {{of.x}, {of.weights}, bias}));
    samples.back().name += ", with bias";
    if (of.y.rank() == 0 || (is_half(dtype) && of.attributes.groups == 1)) continue;
    samples.push_back(sample(conv2d_input_gradient_op, of, {{of.y}, {of.weights}, {of.x}}));
    samples.push_back(sample(conv2d_weight_gradient_op, of, {{of.x}, {of.y}, {of.weights}}));
  }
  samples.push_back({.op = &conv2d_op,
                     .name = "conv1d",
                     .inputs = {{{kOpen, 2, 5}}, {{3, 2, 2}}, {{3}}},
                     .call = [](const Tensors& in) -> Tensors {
                       return {conv1d(in[0], in[1], in[2], {.stride = 2, .padding = 1})};
                     }});
  add_transposes(samples, dtype);
}

}  // namespace ebb::tests
