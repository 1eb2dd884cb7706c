#include "ebb/core/ops/norm.h"

#include "ebb/core/base/error.h"
#include "ebb/core/kernels/in_float.h"
#include "ebb/core/kernels/norm.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/powers.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/core/ops/update.h"
#include "ebb/core/tensor/launch_row.h"

namespace ebb {
namespace {

using Gradient = const GradientContext&;
using enum NormAttributes::Kind;
using NormInputs = InlineVector<Input, 5>;

constexpr int kInverse = 1, kMean = 2;  // outputs, which the gradient reads
constexpr int kRunning = 3;             // inputs and outputs of batch_norm: mean, then variance

DType dtype_of_statistics(DType x) { return x == DType::f64 ? DType::f64 : DType::f32; }

// Whether scale and shift have this axis of x.
bool scale_has(const NormAttributes& attributes, int rank, int axis) {
  return attributes.kind == batch   ? axis == attributes.number
         : attributes.kind == group ? axis == 1
                                    : axis >= rank - attributes.number;
}

// The shapes of scale and shift, and of the means.
struct Shapes {
  Shape scale, statistics;

  Shapes(const Shape& x, const NormAttributes& attributes) {
    for (int axis = 0; axis < x.rank(); ++axis)
      (scale_has(attributes, x.rank(), axis) ? scale : statistics).push_back(x.dim(axis));
    if (attributes.kind == group) statistics = {x.dim(0), attributes.number};
    if (attributes.kind == batch) statistics = scale;
  }
};

// Checks x and the inputs [first, last), which have the shape of scale. Adds output y.
Shapes infer_scaled(Inference& inference, std::size_t first, std::size_t last) {
  const Spec& x = inference.inputs[0];
  inference.require(is_floating(x.dtype), detail::kTakesFloating);
  const auto& attributes = inference.attribute<NormAttributes>();
  const int rank = x.shape.rank();
  switch (attributes.kind) {
    case layer:
    case rms:
      inference.require(rank >= attributes.number, "takes x of at least the axes it normalises");
      break;
    case group:
      inference.require(rank >= 2, "takes x [batch, channels, ..]");
      inference.require(x.shape.dim(1) == kOpen || x.shape.dim(1) % attributes.number == 0,
                        "takes a number of channels that is a multiple of the groups'");
      break;
    case batch:
      inference.require(rank > attributes.number, "takes x with an axis of channels");
  }
  const Shapes shapes(x.shape, attributes);
  for (std::size_t i = first; i < last; ++i) {
    const Spec& input = inference.inputs[i];
    if (input.dtype != x.dtype) inference.fail("takes inputs of one dtype (cast() converts)");
    if (!detail::may_equal(input.shape, shapes.scale))
      inference.fail((attributes.kind == rms ? "scale must be " : "scale and shift must be ") +
                     shapes.scale.to_string());
  }
  inference.output(x.dtype, x.shape);
  return shapes;
}

void infer_norm(Inference& inference) {
  const Shapes shapes = infer_scaled(inference, 1, inference.inputs.size());
  const DType dtype = dtype_of_statistics(inference.inputs[0].dtype);
  inference.output(dtype, shapes.statistics);
  if (inference.attribute<NormAttributes>().has_mean()) inference.output(dtype, shapes.statistics);
}

// The running mean and variance are inputs `first` and the next.
void require_running(const Inference& inference, const Shapes& shapes, std::size_t first) {
  for (std::size_t i = first; i < first + 2; ++i)
    inference.require(inference.inputs[i].dtype == dtype_of_statistics(inference.inputs[0].dtype) &&
                          detail::may_equal(inference.inputs[i].shape, shapes.statistics),
                      "running mean and variance must be [channels], f64 for f64, else f32");
}

void infer_batch_norm(Inference& inference) {
  const Shapes shapes = infer_scaled(inference, 1, kRunning);
  require_running(inference, shapes, kRunning);
  const Shape& x = inference.inputs[0].shape;
  const int channels = inference.attribute<NormAttributes>().number;
  inference.require(
      detail::product(x, 0, channels) != 1 || detail::product(x, channels + 1, x.rank()) != 1,
      "takes more than one element of each channel: one has no variance");
  for (int i = 0; i < 4; ++i)
    inference.output(dtype_of_statistics(inference.inputs[0].dtype), shapes.statistics);
}

void infer_batch_norm_inference(Inference& inference) {
  require_running(inference, infer_scaled(inference, 3, inference.inputs.size()), 1);
}

void infer_backward(Inference& inference) {
  const Spec& x = inference.inputs[1];
  const Shapes shapes(x.shape, inference.attribute<NormAttributes>());
  inference.output(x.dtype, x.shape);
  inference.output(x.dtype, shapes.scale);
  inference.output(x.dtype, shapes.scale);
}

// Inputs are dy, x, 1 / sqrt(..), mean and perhaps scale. Only dx reads the scale; dx and d_scale
// read x and the statistics.
bool is_shape_only(std::size_t i, const IndexSet& unwanted) {
  return i > 0 && unwanted.has(0) && (i == 4 || unwanted.has(1));
}

Tensors gradient_by(const OpDef& backward, Gradient g) {
  const auto& attributes = g.attribute<NormAttributes>();
  const Tensor of_inverse = g.y(kInverse), scale = attributes.has_scale ? g.x(1) : Tensor(),
               of_mean = attributes.has_mean() ? g.y(kMean) : of_inverse;
  Tensor x = g.take_x(0);
  NormInputs inputs{Operand(g.take_dy()), Operand(std::move(x)), of_inverse, of_mean};
  if (scale.defined()) inputs.push_back(scale);
  return detail::apply_gradient(backward, 3, inputs, attributes, g);
}

bool keeps_for_gradient(std::size_t i, const IndexSet& wants) {
  return i == 0 ? wants.has(0) || wants.has(1) : i == 1 && wants.has(0);
}

// The parts of a normalisation made from public operators.
struct Composed {
  const NormAttributes& attributes;
  const Tensor& x;
  Axes axes;           // of means, in grouped x
  Axes sum_axes;       // of the sum that is the scale's gradient
  Shape grouped = {};  // of kind group: x as [batch, groups, rest]

  Composed(const NormAttributes& attributes, const Tensor& x) : attributes(attributes), x(x) {
    const int rank = x.rank(), number = attributes.number;
    if (attributes.kind == group) {
      const std::int64_t rest = detail::product(x.shape(), 1, rank);
      grouped = {x.shape().dim(0), number, rest == kOpen ? kOpen : rest / number};
      axes = {2};
    }
    for (int axis = 0; axis < rank; ++axis) {
      const bool of_scale = scale_has(attributes, rank, axis);
      if (!of_scale) sum_axes.push_back(axis);
      if (attributes.kind != group && of_scale == (attributes.kind != batch)) axes.push_back(axis);
    }
  }

  Tensor in_groups(const Tensor& t) const {
    return attributes.kind == group ? reshape(t, grouped) : t;
  }
  Tensor out_of_groups(const Tensor& t) const {
    return attributes.kind == group ? detail::reshape_like(t, x) : t;
  }
  Tensor mean_of(const Tensor& t) const { return mean(t, {.axes = axes, .keep = true}); }
  // scale in a shape that broadcasts to x.
  Tensor beside(Tensor scale) const {
    if (attributes.kind == layer || attributes.kind == rms) return scale;
    const int channels = attributes.kind == group ? 1 : attributes.number;
    for (int axis = channels + 1; axis < x.rank(); ++axis) scale = unsqueeze(scale, -1);
    return scale;
  }
  Tensor summed(const Tensor& t) const { return sum_axes.empty() ? t : sum(t, {.axes = sum_axes}); }
};

// With n = (x - mean) / sqrt(variance + epsilon) and g = dy scale:
//   dx = (g - mean(g) - n mean(g n)) / sqrt(..),  d_scale = sum(dy n),  d_shift = sum(dy).
// For 16 bits in float, as in the kernel: 1 / epsilon^(3/2) is beyond the range of f16.
Tensors compose_backward(std::span<const Tensor> inputs, const Attributes& all,
                         const IndexSet& unwanted) {
  const auto& attributes = all.get<NormAttributes>();
  const DType given = inputs[1].dtype(), computed = dtype_of_statistics(given);
  const Tensor dy = cast(inputs[0], computed), x = cast(inputs[1], computed);
  const Composed how(attributes, x);
  Tensors outputs(3);
  if (!unwanted.has(0) || !unwanted.has(1)) {
    Tensor distance = how.in_groups(x);
    if (attributes.has_mean()) distance = distance - how.mean_of(distance);
    const Tensor inverse = rsqrt(how.mean_of(square(distance)) + attributes.epsilon);
    const Tensor normal = distance * inverse;
    if (!unwanted.has(1)) outputs[1] = how.summed(dy * how.out_of_groups(normal));
    if (!unwanted.has(0)) {
      const Tensor g =
          how.in_groups(attributes.has_scale ? dy * how.beside(cast(inputs[4], computed)) : dy);
      Tensor inner = g - normal * how.mean_of(g * normal);
      if (attributes.has_mean()) inner = inner - how.mean_of(g);
      outputs[0] = how.out_of_groups(inner * inverse);
    }
  }
  if (!unwanted.has(2)) outputs[2] = how.summed(dy);
  for (Tensor& output : outputs)
    if (output.defined()) output = cast(output, given);
  return outputs;
}

Tensors compose_inference(std::span<const Tensor> inputs, const Attributes& all, const IndexSet&) {
  const auto& attributes = all.get<NormAttributes>();
  const Tensor& x = inputs[0];
  const Composed how(attributes, x);
  const Tensor mean = cast(inputs[1], x.dtype()),
               inverse = cast(rsqrt(inputs[2] + attributes.epsilon), x.dtype());
  return {(x - how.beside(mean)) * how.beside(inverse * inputs[3]) + how.beside(inputs[4])};
}

void require(const OpDef& op, bool condition, const char* text, CallSite site) {
  if (!condition) detail::refuse(op.name, text, site);
}

// Operands: x, scale and shift, of which the last may be left out.
Tensor apply_norm(const OpDef& op, const ListOf<Operand>& operands, NormAttributes attributes) {
  const CallSite site = operands.front().site();
  require(op, attributes.number >= 1,
          attributes.kind == group ? "takes at least one group" : "takes at least one axis", site);
  require(op, attributes.epsilon >= 0, "takes an epsilon of 0 or more", site);
  attributes.has_scale = operands.size() > 1;
  attributes.has_shift = operands.size() > 2;
  return detail::apply_to(op, operands, attributes);
}

NormAttributes attributes_of(NormAttributes::Kind kind, const LayerNormOptions& options) {
  return {.epsilon = options.epsilon, .kind = kind, .number = options.axes};
}

}  // namespace

Tensor layer_norm(const Operand& x, const Operand& scale, const Operand& shift,
                  const LayerNormOptions& options) {
  return apply_norm(layer_norm_op, {x, scale, shift}, attributes_of(layer, options));
}
Tensor layer_norm(const Operand& x, const LayerNormOptions& options) {
  return apply_norm(layer_norm_op, detail::Operands{x}, attributes_of(layer, options));
}
Tensor rms_norm(const Operand& x, const Operand& scale, const LayerNormOptions& options) {
  return apply_norm(rms_norm_op, {x, scale}, attributes_of(rms, options));
}
Tensor rms_norm(const Operand& x, const LayerNormOptions& options) {
  return apply_norm(rms_norm_op, detail::Operands{x}, attributes_of(rms, options));
}
Tensor group_norm(const Operand& x, int groups, const Operand& scale, const Operand& shift,
                  const GroupNormOptions& options) {
  return apply_norm(group_norm_op, {x, scale, shift},
                    {.epsilon = options.epsilon, .kind = group, .number = groups});
}

Tensor batch_norm(const Operand& x, const Operand& scale, const Operand& shift,
                  const Tensor& running_mean, const Tensor& running_variance,
                  const BatchNormOptions& options) {
  const OpDef& op = batch_norm_op;
  const detail::CalledScope called(op.name);
  const CallSite site = x.site();
  const NormAttributes attributes{.epsilon = options.epsilon,
                                  .momentum = options.momentum,
                                  .kind = batch,
                                  .number = detail::axis_of(op, options.axis, x),
                                  .has_scale = 1,
                                  .has_shift = 1};
  require(op, options.momentum >= 0 && options.momentum <= 1, "takes a momentum in [0, 1]", site);
  require(op, options.epsilon >= 0, "takes an epsilon of 0 or more", site);
  if (options.phase == Phase::inference)
    return detail::apply_to(batch_norm_inference_op,
                            {x, {running_mean, site}, {running_variance, site}, scale, shift},
                            attributes);
  detail::tensor_of(op, scale);
  detail::tensor_of(op, shift);
  const Input inputs[] = {x, scale, shift, running_mean, running_variance};
  Tensors all = apply(op, inputs, attributes, site);
  const auto update = [&](const Tensor& running, std::size_t output) {
    const Tensor now = apply_one(detach_op, {std::move(all[output])}, {}, site);
    return assign({running, site}, {now, site});
  };
  detail::LaunchRow row;  // both or neither
  const Tensor updates[] = {update(running_mean, kRunning), update(running_variance, kRunning + 1)};
  row.flush();
  return detail::with_updates(all[0], updates, site);
}

#define EBB_NORM_OP                                                                             \
  .infer = infer_norm, .gradient = [](Gradient g) { return gradient_by(norm_backward_op, g); }, \
  .keeps_input = keeps_for_gradient,                                                            \
  .keeps_output = [](std::size_t i,                                                             \
                     const IndexSet& wants) { return i > 0 && keeps_for_gradient(0, wants); },  \
  .takes_over = bit(0), .gradient_outputs = bit(kInverse) | bit(kMean),                         \
  .cpu = cpu::in_float<cpu::norm>, .cuda = {cuda::norm}

constinit const OpDef layer_norm_op{.name = "layer_norm", EBB_NORM_OP};
constinit const OpDef rms_norm_op{.name = "rms_norm", EBB_NORM_OP};
constinit const OpDef group_norm_op{.name = "group_norm", EBB_NORM_OP};

#undef EBB_NORM_OP

constinit const OpDef norm_backward_op{
    .name = "norm_backward",
    .infer = infer_backward,
    .compose = compose_backward,
    .is_shape_only = is_shape_only,
    .takes_over = bit(0) | bit(1),
    .optional_outputs = kAll,
    .cpu = cpu::in_float<cpu::norm_backward, cpu::norm_backward_memory, is_shape_only>,
    .cuda = {cuda::norm_backward, cuda::norm_backward_memory}};

constinit const OpDef batch_norm_op{
    .name = "batch_norm",
    .infer = infer_batch_norm,
    .gradient = [](Gradient g) { return gradient_by(batch_norm_backward_op, g); },
    .keeps_input = keeps_for_gradient,
    .keeps_output =
        [](std::size_t i, const IndexSet& wants) {
          return (i == kMean || i == kInverse) && keeps_for_gradient(0, wants);
        },
    .takes_over = bit(0),
    .gradient_outputs = bit(kInverse) | bit(kMean),
    .stops_gradient = bit(kRunning) | bit(kRunning + 1),
    .cpu = cpu::in_float<cpu::batch_norm, cpu::batch_norm_memory>,
    .cuda = {cuda::batch_norm, cuda::batch_norm_memory}};

constinit const OpDef batch_norm_backward_op{
    .name = "batch_norm_backward",
    .infer = infer_backward,
    .compose = compose_backward,
    .is_shape_only = is_shape_only,
    .takes_over = bit(0) | bit(1),
    .optional_outputs = kAll,
    .cpu = cpu::in_float<cpu::batch_norm_backward, cpu::batch_norm_backward_memory, is_shape_only>,
    .cuda = {cuda::batch_norm_backward, cuda::batch_norm_backward_memory}};

constinit const OpDef batch_norm_inference_op{
    .name = "batch_norm",
    .infer = infer_batch_norm_inference,
    .compose = compose_inference,
    .takes_over = bit(0),
    .cpu = cpu::in_float<cpu::batch_norm_inference, cpu::batch_norm_inference_memory>,
    .cuda = {cuda::batch_norm_inference}};

}  // namespace ebb
