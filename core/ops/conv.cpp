#include "ebb/core/ops/conv.h"

#include <limits>

#include "ebb/core/kernels/conv.h"
#include "ebb/core/kernels/in_float.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

using Gradient = const GradientContext&;

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

// The number of output positions along a side.
std::int64_t places(const Inference& inference, std::int64_t size, std::int64_t kernel, int side) {
  const auto& attributes = inference.attribute<ConvAttributes>();
  if (size == kOpen || kernel == kOpen) return kOpen;
  inference.require(kernel >= 1, "takes a kernel of at least one element");
  const std::int64_t padded = size + 2 * attributes.padding[side];
  std::int64_t reach = 0;
  if (__builtin_mul_overflow(attributes.dilation[side], kernel - 1, &reach) || reach >= padded)
    inference.fail(std::string("the kernel is ") +
                   (inference.inputs[0].shape.rank() == 3 ? "longer than x"
                    : side == 0                           ? "higher than the images"
                                                          : "wider than the images") +
                   ", padding and all");
  return (padded - reach - 1) / attributes.stride[side] + 1;
}

void require_geometry(const Inference& inference) {
  const auto& attributes = inference.attribute<ConvAttributes>();
  for (int side = 0; side < 2; ++side) {
    inference.require(attributes.stride[side] >= 1 && attributes.stride[side] <= kMost,
                      "takes a stride of 1 or more, below 2^31");
    inference.require(attributes.dilation[side] >= 1 && attributes.dilation[side] <= kMost,
                      "takes a dilation of 1 or more, below 2^31");
    inference.require(attributes.padding[side] >= 0 && attributes.padding[side] <= kMost,
                      "takes a padding of 0 or more, below 2^31");
  }
  inference.require(attributes.groups >= 1 && attributes.groups <= kMost,
                    "takes 1 group or more, below 2^31");
}

std::string by_groups(std::int64_t groups) {
  return groups == 1 ? "" : ", divided by " + std::to_string(groups) + " groups";
}

// layout: the layout of the weights, for the message.
void require_bias(const Inference& inference, const Shape& y, const char* layout) {
  if (inference.attribute<ConvAttributes>().bias == 0) return;
  const Shape& bias = inference.inputs[2].shape;
  if (bias.rank() != 1 || !detail::may_equal(bias.dim(0), y.dim(1)))
    inference.fail(std::string("the bias must be [out] for weights ") + layout);
}

Shape convolved(const Inference& inference, const Shape& x, const Shape& weights) {
  require_geometry(inference);
  const auto& attributes = inference.attribute<ConvAttributes>();
  inference.require(x.rank() == 4 && weights.rank() == 4,
                    "takes x [n, in, h, w] and weights [out, in / groups, kh, kw]");
  const std::int64_t in = x.dim(1), out = weights.dim(0), of_group = weights.dim(1);
  if (in != kOpen && in % attributes.groups != 0)
    inference.fail("the channels of x do not make " + std::to_string(attributes.groups) +
                   " groups");
  if (out != kOpen && out % attributes.groups != 0)
    inference.fail("the filters do not make " + std::to_string(attributes.groups) + " groups");
  if (in != kOpen && of_group != kOpen && in / attributes.groups != of_group)
    inference.fail("axis 1 of the weights must be the channels of x" +
                   by_groups(attributes.groups));
  return {x.dim(0), out, places(inference, x.dim(2), weights.dim(2), 0),
          places(inference, x.dim(3), weights.dim(3), 1)};
}

// The output pixels of a transposed convolution along a side: the input size of a convolution with
// `size` output positions.
std::int64_t pixels(const Inference& inference, std::int64_t size, std::int64_t kernel, int side) {
  const auto& attributes = inference.attribute<ConvAttributes>();
  const std::int64_t more = attributes.output_padding[side];
  inference.require(more >= 0 && more < attributes.stride[side],
                    "takes an output padding of 0 or more, below the stride or the dilation");
  inference.require(kernel != 0, "takes a kernel of at least one element");
  inference.require(size != 0, "takes images of at least one pixel");
  if (size == kOpen || kernel == kOpen) return kOpen;
  std::int64_t apart = 0, reach = 0, all = 0;
  if (__builtin_mul_overflow(attributes.stride[side], size - 1, &apart) ||
      __builtin_mul_overflow(attributes.dilation[side], kernel - 1, &reach) ||
      __builtin_add_overflow(apart, reach, &all) || all >= kMaxElements)
    inference.fail("the result is too large");
  all += more + 1 - 2 * attributes.padding[side];
  inference.require(all >= 1, "the padding leaves nothing of the result");
  return all;
}

// The shape of y in a transposed convolution.
Shape transposed(const Inference& inference, const Shape& x, const Shape& weights) {
  require_geometry(inference);
  const std::int64_t groups = inference.attribute<ConvAttributes>().groups;
  inference.require(x.rank() == 4 && weights.rank() == 4,
                    "takes x [n, in, h, w] and weights [in, out / groups, kh, kw]");
  const std::int64_t in = x.dim(1), of_group = weights.dim(1);
  for (const std::int64_t channels : {in, weights.dim(0)})
    if (channels != kOpen && channels % groups != 0)
      inference.fail("the channels of x do not make " + std::to_string(groups) + " groups");
  inference.require(detail::may_equal(in, weights.dim(0)),
                    "axis 0 of the weights must be the channels of x");
  std::int64_t out = kOpen;
  if (of_group != kOpen && __builtin_mul_overflow(of_group, groups, &out))
    inference.fail("the result is too large");
  return {x.dim(0), out, pixels(inference, x.dim(2), weights.dim(2), 0),
          pixels(inference, x.dim(3), weights.dim(3), 1)};
}

using ResultShape = Shape(const Inference&, const Shape& x, const Shape& weights);

template <ResultShape result>
void infer_images(Inference& inference) {
  detail::require_arithmetic(inference);
  const Spec &x = inference.inputs[0], &weights = inference.inputs[1];
  const Shape y = result(inference, x.shape, weights.shape);
  require_bias(inference, y,
               result == convolved ? "[out, in / groups, kh, kw]" : "[in, out / groups, kh, kw]");
  inference.output(x.dtype, y);
}

// The gradient is of input 2.
void infer_gradient(Inference& inference, std::size_t x, std::size_t weights, std::size_t dy) {
  detail::require_arithmetic(inference);
  const auto shape = [&](std::size_t i) -> const Shape& { return inference.inputs[i].shape; };
  inference.require(detail::may_equal(shape(dy), convolved(inference, shape(x), shape(weights))),
                    "dy has not the shape of the result");
  inference.output(inference.inputs[2].dtype, shape(2));
}

ConvAttributes of(Gradient g) {
  ConvAttributes attributes = g.attribute<ConvAttributes>();
  attributes.bias = 0;
  return attributes;
}

Tensor input_gradient(const Tensor& dy, const Tensor& weights, const Tensor& x, Gradient g) {
  return apply_one(conv2d_input_gradient_op, {dy, weights, x}, of(g), g.site());
}
Tensor weight_gradient(const Tensor& x, const Tensor& dy, const Tensor& weights, Gradient g) {
  return apply_one(conv2d_weight_gradient_op, {x, dy, weights}, of(g), g.site());
}
Tensor convolution(const Tensor& x, const Tensor& weights, Gradient g) {
  return apply_one(conv2d_op, {x, weights}, of(g), g.site());
}

// Of a transposed convolution, and of a convolution's input gradient, which has no bias.
Tensors transposed_gradient(Gradient g) {
  Tensors all(static_cast<std::size_t>(g.inputs()));
  if (g.wants(0)) all[0] = convolution(g.dy(), g.x(1), g);
  if (g.wants(1)) all[1] = weight_gradient(g.dy(), g.x(0), g.x(1), g);
  if (g.attribute<ConvAttributes>().bias != 0 && g.wants(2))
    all[2] = sum(g.dy(), {.axes = {0, 2, 3}});
  return all;
}

template <class Options>
ConvAttributes attributes_of(const Options& options, bool bias) {
  ConvAttributes attributes{.groups = options.groups, .bias = bias};
  detail::set_sides(attributes.stride, options.stride, 1);
  detail::set_sides(attributes.padding, options.padding, 0);
  detail::set_sides(attributes.dilation, options.dilation, 1);
  if constexpr (requires { options.output_padding; })
    detail::set_sides(attributes.output_padding, options.output_padding, 0);
  return attributes;
}

using detail::Operands;  // x, the weights and perhaps a bias

Tensor apply_conv(const ListOf<Operand>& operands, const ConvAttributes& attributes) {
  return detail::apply_to(conv2d_op, operands, attributes);
}

// Turns an output padding of a stride or more into extra rows of zeros of x, one per stride. Values
// that the shape rule refuses are left to it.
std::int64_t rows_more(ConvAttributes& attributes, int side) {
  const std::int64_t stride = attributes.stride[side];
  std::int64_t& output_padding = attributes.output_padding[side];
  if (stride < 1 || output_padding < stride || output_padding >= attributes.dilation[side])
    return 0;
  const std::int64_t rows = output_padding / stride;
  output_padding %= stride;
  return rows;
}

Tensor apply_transpose(const ListOf<Operand>& given, const ConvAttributes& asked) {
  const detail::CalledScope called(conv_transpose2d_op.name);
  Operands operands(given.begin(), given.end());
  ConvAttributes attributes = asked;
  const std::int64_t more[] = {rows_more(attributes, 0), rows_more(attributes, 1)};
  const Operand& x = operands[0];
  if ((more[0] == 0 && more[1] == 0) || detail::tensor_of(conv_transpose2d_op, x).rank() != 4)
    return detail::apply_to(conv_transpose2d_op, operands, attributes);
  for (int side = 0; side < 2; ++side)
    if (x.tensor().shape().dim(2 + side) == 0)
      detail::fail(conv_transpose2d_op, "takes images of at least one pixel", x);
  Tensor padded = pad(x, {{}, {}, {0, more[0]}, {0, more[1]}});
  operands[0] = Operand(std::move(padded), x.site());
  return detail::apply_to(conv_transpose2d_op, operands, attributes);
}

// A one-dimensional shape as images of height 1.
Shape as_images(const Shape& rows) { return {rows.dim(0), rows.dim(1), 1, rows.dim(2)}; }

// The shape rule of a function of one axis, by the shape rule for images.
template <ResultShape result>
void infer_rows(Inference& inference) {
  const char* const layout =
      result == convolved ? "[out, in / groups, k]" : "[in, out / groups, k]";
  detail::require_arithmetic(inference);
  const Shape &x = inference.inputs[0].shape, &weights = inference.inputs[1].shape;
  if (x.rank() != 3 || weights.rank() != 3)
    inference.fail(std::string("takes x [n, in, length] and weights ") + layout);
  require_bias(inference, result(inference, as_images(x), as_images(weights)), layout);
}
constexpr OpDef conv1d_function{.name = "conv1d", .infer = infer_rows<convolved>};
constexpr OpDef transpose1d_function{.name = "conv_transpose1d", .infer = infer_rows<transposed>};

// Checks the operands as given, then applies them as images of height 1.
Tensor apply_rows(const OpDef& function, Operands operands, const ConvAttributes& attributes,
                  Tensor (*apply_images)(const ListOf<Operand>&, const ConvAttributes&)) {
  ConvAttributes checked = attributes;
  rows_more(checked, 1);
  const detail::CalledScope called = detail::check(function, operands, checked);
  const CallSite site = operands[0].site();
  Tensor rows = unsqueeze(operands[0], 2), kernels = unsqueeze(operands[1], 2);
  operands[0] = Operand(std::move(rows), site);
  operands[1] = Operand(std::move(kernels), site);
  return squeeze({apply_images(operands, attributes), site}, {2});
}

// Each element of the side where the filters are counted meets one filter: axis 0 of the weights.
std::int64_t products(const Shape& side, const Shape& weights) {
  return weights.dim(0) == 0 ? 0 : side.elements() * (weights.elements() / weights.dim(0));
}
template <std::size_t side, std::size_t weights>
std::int64_t products_of_inputs(const MemoryQuery& query) {
  return products(query.inputs[side].shape, query.inputs[weights].shape);
}

}  // namespace

Tensor conv2d(const Operand& x, const Operand& weights, const Operand& bias,
              const Conv2dOptions& options) {
  return apply_conv({x, weights, bias}, attributes_of(options, true));
}
Tensor conv2d(const Operand& x, const Operand& weights, const Conv2dOptions& options) {
  return apply_conv({x, weights}, attributes_of(options, false));
}

Tensor conv1d(const Operand& x, const Operand& weights, const Operand& bias,
              const Conv1dOptions& options) {
  return apply_rows(conv1d_function, {x, weights, bias}, attributes_of(options, true), apply_conv);
}
Tensor conv1d(const Operand& x, const Operand& weights, const Conv1dOptions& options) {
  return apply_rows(conv1d_function, {x, weights}, attributes_of(options, false), apply_conv);
}

Tensor conv_transpose2d(const Operand& x, const Operand& weights, const Operand& bias,
                        const ConvTranspose2dOptions& options) {
  return apply_transpose({x, weights, bias}, attributes_of(options, true));
}
Tensor conv_transpose2d(const Operand& x, const Operand& weights,
                        const ConvTranspose2dOptions& options) {
  return apply_transpose({x, weights}, attributes_of(options, false));
}

Tensor conv_transpose1d(const Operand& x, const Operand& weights, const Operand& bias,
                        const ConvTranspose1dOptions& options) {
  return apply_rows(transpose1d_function, {x, weights, bias}, attributes_of(options, true),
                    apply_transpose);
}
Tensor conv_transpose1d(const Operand& x, const Operand& weights,
                        const ConvTranspose1dOptions& options) {
  return apply_rows(transpose1d_function, {x, weights}, attributes_of(options, false),
                    apply_transpose);
}

constinit const OpDef conv2d_op{
    .name = "conv2d",
    .infer = infer_images<convolved>,
    .gradient = [](Gradient g) -> Tensors {
      Tensors all(static_cast<std::size_t>(g.inputs()));
      if (g.wants(0)) all[0] = input_gradient(g.dy(), g.x(1), g.x(0), g);
      if (g.wants(1)) all[1] = weight_gradient(g.x(0), g.dy(), g.x(1), g);
      if (g.inputs() == 3 && g.wants(2)) all[2] = sum(g.dy(), {.axes = {0, 2, 3}});
      return all;
    },
    .keeps_input = detail::other_factor,
    .products =
        [](const MemoryQuery& query) {
          return products(query.outputs[0].shape, query.inputs[1].shape);
        },
    .cpu = cpu::in_float<cpu::conv2d, cpu::conv2d_memory>,
    .cuda = {.run = cuda::conv2d, .memory = cuda::conv2d_memory, .prepare = cuda::conv2d_prepare}};

constinit const OpDef conv2d_input_gradient_op{
    .name = "conv2d_input_gradient",
    .infer = [](Inference& inference) { infer_gradient(inference, 2, 1, 0); },
    .gradient = transposed_gradient,
    .keeps_input = detail::other_factor,
    .shape_only = bit(2),
    .products = products_of_inputs<0, 1>,
    .cpu = cpu::in_float<cpu::conv_transpose2d, cpu::conv_transpose2d_memory, cpu::is_input<2>>,
    .cuda = {.run = cuda::conv_transpose2d,
             .memory = cuda::conv_transpose2d_memory,
             .prepare = cuda::conv_transpose2d_prepare}};

constinit const OpDef conv2d_weight_gradient_op{
    .name = "conv2d_weight_gradient",
    .infer = [](Inference& inference) { infer_gradient(inference, 0, 2, 1); },
    .gradient = [](Gradient g) -> Tensors {
      Tensors all(3);
      if (g.wants(0)) all[0] = input_gradient(g.x(1), g.dy(), g.x(0), g);
      if (g.wants(1)) all[1] = convolution(g.x(0), g.dy(), g);
      return all;
    },
    .keeps_input = detail::other_factor,
    .shape_only = bit(2),
    .products = products_of_inputs<1, 2>,
    .cpu = cpu::in_float<cpu::conv2d_weight_gradient, cpu::conv2d_weight_gradient_memory,
                         cpu::is_input<2>>,
    .cuda = {.run = cuda::conv2d_weight_gradient,
             .memory = cuda::conv2d_weight_gradient_memory,
             .prepare = cuda::conv2d_weight_gradient_prepare}};

constinit const OpDef conv_transpose2d_op{
    .name = "conv_transpose2d",
    .infer = infer_images<transposed>,
    .gradient = transposed_gradient,
    .keeps_input = detail::other_factor,
    .products = products_of_inputs<0, 1>,
    .cpu = cpu::in_float<cpu::conv_transpose2d, cpu::conv_transpose2d_memory>,
    .cuda = {.run = cuda::conv_transpose2d,
             .memory = cuda::conv_transpose2d_memory,
             .prepare = cuda::conv_transpose2d_prepare}};

}  // namespace ebb
