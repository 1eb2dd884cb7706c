#include "ebb/core/ops/pool.h"

#include <limits>

#include "ebb/core/kernels/in_float.h"
#include "ebb/core/kernels/pool.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

Shape pooled(const Inference& inference, const Shape& x) {
  const auto& attributes = inference.attribute<PoolAttributes>();
  const bool is_row = inference.inputs[0].shape.rank() < x.rank();
  inference.require(x.rank() >= 2, "takes x [..., h, w]");
  Shape y = x;
  for (int side = 0; side < 2; ++side) {
    const std::int64_t kernel = attributes.kernel[side], stride = attributes.stride[side],
                       padding = attributes.padding[side], size = x.dim(side - 2);
    inference.require(kernel >= 1 && kernel <= kMost, "takes a kernel of 1 or more, below 2^31");
    inference.require(stride >= 1 && stride <= kMost, "takes a stride of 1 or more, below 2^31");
    inference.require(padding >= 0 && padding <= kernel / 2,
                      "takes a padding of at most half the kernel");
    if (size == kOpen) continue;
    if (size == 0 || size + 2 * padding < kernel)
      inference.fail(std::string("the kernel is ") +
                     (is_row      ? "longer than x"
                      : side == 0 ? "higher than the images"
                                  : "wider than the images") +
                     ", padding and all");
    y.set(side - 2, (size + 2 * padding - kernel) / stride + 1);
  }
  return y;
}

void infer_pool(Inference& inference) {
  detail::require_arithmetic(inference);
  const Spec& x = inference.inputs[0];
  inference.output(x.dtype, pooled(inference, x.shape));
}

// x [..., length] as images of height 1.
void infer_rows(Inference& inference) {
  detail::require_arithmetic(inference);
  const Spec& x = inference.inputs[0];
  inference.require(x.shape.rank() >= 1 && x.shape.rank() < kMaxRank,
                    "takes x [..., length], of 5 axes at most");
  Shape images;
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    if (axis + 1 == x.shape.rank()) images.push_back(1);
    images.push_back(x.shape.dim(axis));
  }
  inference.output(x.dtype, pooled(inference, images));
}

// Inputs: the tensor to choose from, and x, whose largest elements choose.
void infer_select(Inference& inference) {
  detail::require_arithmetic(inference);
  const Shape &v = inference.inputs[0].shape, &x = inference.inputs[1].shape;
  inference.require(detail::may_equal(v, x), "takes two inputs of one shape");
  inference.output(inference.inputs[0].dtype, pooled(inference, detail::merge(v, x)));
}

void infer_pool_backward(Inference& inference) {
  detail::require_arithmetic(inference);
  const Shape &dy = inference.inputs[0].shape, &x = inference.inputs[1].shape;
  inference.require(detail::may_equal(dy, pooled(inference, x)),
                    "dy has not the shape of the result");
  inference.output(inference.inputs[0].dtype, x);
}

// A stride of 0 is the kernel's size.
template <class Options>
PoolAttributes attributes_of(const Options& options) {
  PoolAttributes attributes;
  detail::set_sides(attributes.kernel, options.kernel, 1);
  detail::set_sides(attributes.stride, options.stride, 0);
  detail::set_sides(attributes.padding, options.padding, 0);
  for (int side = 0; side < 2; ++side)
    if (attributes.stride[side] == 0) attributes.stride[side] = attributes.kernel[side];
  if constexpr (requires { options.count_include_pad; })
    attributes.count_include_pad = options.count_include_pad;
  return attributes;
}
constexpr OpDef max_pool1d_function{.name = "max_pool1d", .infer = infer_rows};
constexpr OpDef avg_pool1d_function{.name = "avg_pool1d", .infer = infer_rows};
Tensor apply_rows(const OpDef& function, const OpDef& op, const Operand& x,
                  const PoolAttributes& attributes) {
  const detail::CalledScope called = detail::check(function, {x}, attributes);
  Tensor y = detail::apply_to(op, {unsqueeze(x, -2), x.site()}, attributes);
  return squeeze({std::move(y), x.site()}, {-2});
}

}  // namespace

Tensor max_pool2d(const Operand& x, const MaxPool2dOptions& options) {
  const detail::CalledScope called("max_pool2d");
  return detail::apply_to(max_pool_op, x, attributes_of(options));
}
Tensor max_pool1d(const Operand& x, const MaxPool1dOptions& options) {
  return apply_rows(max_pool1d_function, max_pool_op, x, attributes_of(options));
}
Tensor avg_pool2d(const Operand& x, const AvgPool2dOptions& options) {
  const detail::CalledScope called("avg_pool2d");
  return detail::apply_to(avg_pool_op, x, attributes_of(options));
}
Tensor avg_pool1d(const Operand& x, const AvgPool1dOptions& options) {
  return apply_rows(avg_pool1d_function, avg_pool_op, x, attributes_of(options));
}

constinit const OpDef max_pool_op{.name = "max_pool",
                                  .infer = infer_pool,
                                  .gradient = detail::gradient_by<max_pool_backward_op, 0>,
                                  .keeps = input(0),
                                  .cpu = {cpu::max_pool},
                                  .cuda = {cuda::max_pool}};

// No gradient reaches x (input 1): a small change of x does not change the choice, except at ties.
constinit const OpDef max_pool_select_op{.name = "max_pool_select",
                                         .infer = infer_select,
                                         .gradient = detail::gradient_by<max_pool_backward_op, 1>,
                                         .keeps = input(1),
                                         .stops_gradient = bit(1),
                                         .cpu = {cpu::max_pool},
                                         .cuda = {cuda::max_pool}};

constinit const OpDef max_pool_backward_op{.name = "max_pool_backward",
                                           .infer = infer_pool_backward,
                                           .gradient = detail::gradient_by<max_pool_select_op, 1>,
                                           .keeps = input(1),
                                           .stops_gradient = bit(1),
                                           .cpu = cpu::in_float<cpu::max_pool_backward>,
                                           .cuda = {cuda::max_pool_backward}};

constinit const OpDef avg_pool_op{.name = "avg_pool",
                                  .infer = infer_pool,
                                  .gradient = detail::gradient_by<avg_pool_backward_op, 0>,
                                  .cpu = cpu::in_float<cpu::avg_pool>,
                                  .cuda = {cuda::avg_pool}};

constinit const OpDef avg_pool_backward_op{
    .name = "avg_pool_backward",
    .infer = infer_pool_backward,
    .gradient = detail::gradient_by<avg_pool_op>,
    .shape_only = bit(1),
    .cpu = cpu::in_float<cpu::avg_pool_backward, nullptr, cpu::is_input<1>>,
    .cuda = {cuda::avg_pool_backward}};

}  // namespace ebb
