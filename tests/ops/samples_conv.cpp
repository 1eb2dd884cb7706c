#include "ebb/core/kernels/conv.h"
#include "ebb/core/ops/conv.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

struct Case {
  const char* how;
  Shape x, weights, y;
  ConvAttributes attributes = {};
};

Sample sample(const OpDef& op, const Case& of, std::vector<SampleInput> inputs) {
  return sample_of(op, of.how, std::move(inputs), applying(op, of.attributes));
}

// Transposed convolutions: x is [n, in, h, w], the weights [in, out / groups, kh, kw].
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
  samples.push_back(
      sample_of(conv_transpose2d_op, "along one axis", {{{kOpen, 2, 3}}, {{2, 3, 2}}, {{3}}},
                EBB_CALL(conv_transpose1d(in[0], in[1], in[2], {.stride = 2, .padding = 1}))));
}

// Calls body(element of y, element of x, element of the weights) for each product in the
// convolution.
template <class Body>
void for_each_product(const Shape& x, const Shape& weights, const Shape& y,
                      const ConvAttributes& attributes, const Body& body) {
  const std::int64_t of_group = y[1] / attributes.groups;
  for_each_index(y, [&](const Index& to) {
    for_each_index({weights[1], weights[2], weights[3]}, [&](const Index& tap) {
      const std::int64_t channel = to[1] / of_group * weights[1] + tap[0];
      const std::int64_t row =
          to[2] * attributes.stride[0] - attributes.padding[0] + tap[1] * attributes.dilation[0];
      const std::int64_t column =
          to[3] * attributes.stride[1] - attributes.padding[1] + tap[2] * attributes.dilation[1];
      if (row < 0 || row >= x[2] || column < 0 || column >= x[3]) return;
      body(position(y, to), position(x, {to[0], channel, row, column}),
           position(weights, {to[1], tap[0], tap[1], tap[2]}));
    });
  });
}

// The bias at each element of the result, or zeros.
Array bias_of(const Application& a) {
  Array y(a.outputs[0].shape);
  if (a.attribute<ConvAttributes>().bias != 0)
    for_each_index(y.shape, [&](const Index& at) { y[position(y.shape, at)] = a[2][at[1]]; });
  return y;
}

}  // namespace

void conv_family(std::vector<Sample>& samples, References& references, DType dtype) {
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
  samples.push_back(sample_of(conv2d_op, "along one axis", {{{kOpen, 2, 5}}, {{3, 2, 2}}, {{3}}},
                              EBB_CALL(conv1d(in[0], in[1], in[2], {.stride = 2, .padding = 1}))));
  add_transposes(samples, dtype);

  references.add(conv2d_op, [](const Application& a) -> Arrays {
    Array y = bias_of(a);
    for_each_product(
        a[0].shape, a[1].shape, y.shape, a.attribute<ConvAttributes>(),
        [&](std::int64_t to, std::int64_t x, std::int64_t w) { y[to] += a[0][x] * a[1][w]; });
    return {y};
  });
  references.add(conv2d_input_gradient_op, [](const Application& a) -> Arrays {
    Array dx(a[2].shape);
    for_each_product(
        dx.shape, a[1].shape, a[0].shape, a.attribute<ConvAttributes>(),
        [&](std::int64_t y, std::int64_t x, std::int64_t w) { dx[x] += a[0][y] * a[1][w]; });
    return {dx};
  });
  Reference& of_weights =
      references.add(conv2d_weight_gradient_op, [](const Application& a) -> Arrays {
        Array dw(a[2].shape);
        for_each_product(
            a[0].shape, dw.shape, a[1].shape, a.attribute<ConvAttributes>(),
            [&](std::int64_t y, std::int64_t x, std::int64_t w) { dw[w] += a[0][x] * a[1][y]; });
        return {dw};
      });
  of_weights.error = 2e-6;  // a sum over all pixels; of a batch of 17 it is off by 5e-6 on a GPU
  // Each pixel of x adds its channel's filters to y: the transpose of a convolution from y to x.
  references.add(conv_transpose2d_op, [](const Application& a) -> Arrays {
    Array y = bias_of(a);
    for_each_product(
        y.shape, a[1].shape, a[0].shape, a.attribute<ConvAttributes>(),
        [&](std::int64_t x, std::int64_t to, std::int64_t w) { y[to] += a[0][x] * a[1][w]; });
    return {y};
  });
}

}  // namespace ebb::tests
