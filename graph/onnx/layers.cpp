#include <cmath>

#include "ebb/core/kernels/attention.h"
#include "ebb/core/kernels/conv.h"
#include "ebb/core/kernels/linear.h"
#include "ebb/core/kernels/norm.h"
#include "ebb/core/kernels/pool.h"
#include "ebb/core/kernels/softmax.h"
#include "ebb/core/ops/all_operators.h"
#include "ebb/graph/onnx/translation.h"

namespace ebb::detail {

namespace {

OnnxNames matmul(const OnnxCall& call, const char* type) {
  const auto& how = call.attribute<MatmulAttributes>();
  OnnxNames inputs = call.inputs;
  for (std::size_t i = 0; i < 2; ++i)
    if (const int rank = call.in(i).shape.rank(); i == 0 ? how.transpose_a : how.transpose_b)
      inputs[i] = call.transpose(inputs[i], rank, rank - 2, rank - 1);
  return {call.add(type, inputs)};
}
OnnxNames dense(const OnnxCall& call, const char* type) {
  const auto& how = call.attribute<DenseAttributes>();
  std::string y = call.add(type, {call.inputs[0], call.inputs[1]});
  if (how.bias != 0) y = call.add("Add", {y, call.inputs[2]});
  constexpr const char* kActivations[] = {nullptr, "Relu", "Tanh", "Sigmoid"};
  const char* const activation = kActivations[static_cast<std::size_t>(how.activation)];
  return {activation ? call.add(activation, {y}) : y};
}

// Sizes along the height and the width; `pads` counts before both, then after both.
std::vector<std::int64_t> both(const std::int64_t (&sides)[2]) { return {sides[0], sides[1]}; }
std::vector<std::int64_t> pads(const std::int64_t (&sides)[2]) {
  return {sides[0], sides[1], sides[0], sides[1]};
}
OnnxNames conv(const OnnxCall& call, const char* type) {
  const auto& how = call.attribute<ConvAttributes>();
  OnnxAttributes attributes = {{"strides", both(how.stride)},
                               {"pads", pads(how.padding)},
                               {"dilations", both(how.dilation)},
                               {"group", how.groups}};
  if (call.node.op == &conv_transpose2d_op)
    attributes.push_back({"output_padding", both(how.output_padding)});
  return {call.add(type, call.inputs, attributes)};
}
// ONNX pools images [n, channels, h, w].
OnnxNames pool(const OnnxCall& call, const char* type) {
  const auto& how = call.attribute<PoolAttributes>();
  OnnxAttributes attributes = {{"kernel_shape", both(how.kernel)},
                               {"strides", both(how.stride)},
                               {"pads", pads(how.padding)}};
  if (call.node.op == &avg_pool_op)
    attributes.push_back({"count_include_pad", how.count_include_pad});
  const int rank = call.in(0).shape.rank();
  if (rank > 4) call.refuse(" of more than 4 axes");
  if (rank == 4) return {call.add(type, call.inputs, attributes)};
  const std::string axes =
      call.integers(rank == 3 ? std::vector<std::int64_t>{0} : std::vector<std::int64_t>{0, 1});
  const std::string images = call.add("Unsqueeze", {call.inputs[0], axes});
  return {call.add("Squeeze", {call.add(type, {images}, attributes), axes})};
}

OnnxNames layer_norm(const OnnxCall& call, const char* type) {
  const auto& how = call.attribute<NormAttributes>();
  OnnxNames inputs = call.inputs;
  if (how.has_scale == 0) {
    const Shape& x = call.in(0).shape;
    const Shape sizes(x.dims().last(static_cast<std::size_t>(how.number)));
    if (sizes.is_open()) call.refuse(" of open axes without a scale");
    inputs.push_back(call.number(1, call.in(0).dtype, sizes));
  }
  return {call.add(type, inputs, {{"axis", -how.number}, {"epsilon", how.epsilon}})};
}
// Squares of 16 bits are summed in f32.
OnnxNames rms_norm(const OnnxCall& call, const char*) {
  const auto& how = call.attribute<NormAttributes>();
  const DType dtype = call.in(0).dtype, wide = is_half(dtype) ? DType::f32 : dtype;
  std::vector<std::int64_t> axes;
  for (std::int64_t axis = -how.number; axis < 0; ++axis) axes.push_back(axis);
  const std::string x = wide == dtype ? call.inputs[0] : call.cast(call.inputs[0], wide);
  const std::string mean = call.add("ReduceMean", {call.add("Mul", {x, x}), call.integers(axes)});
  const std::string root =
      call.add("Sqrt", {call.add("Add", {mean, call.number(how.epsilon, wide)})});
  std::string y = call.add("Div", {x, root});
  if (wide != dtype) y = call.cast(y, dtype);
  return {how.has_scale != 0 ? call.add("Mul", {y, call.inputs[1]}) : y};
}
OnnxNames group_norm(const OnnxCall& call, const char* type) {
  const auto& how = call.attribute<NormAttributes>();
  return {call.add(type, call.inputs, {{"num_groups", how.number}, {"epsilon", how.epsilon}})};
}
// ONNX has the channels in axis 1.
OnnxNames batch_norm(const OnnxCall& call, const char* type) {
  const auto& how = call.attribute<NormAttributes>();
  const int rank = call.in(0).shape.rank(), axis = how.number;
  if (rank < 2) call.refuse(" of one axis");
  const auto to_channels = [&](const std::string& x) {
    return axis == 1 ? x : call.transpose(x, rank, 1, axis);
  };
  const OnnxNames& given = call.inputs;  // x, mean, variance, scale, shift
  return {
      to_channels(call.add(type, {to_channels(given[0]), given[3], given[4], given[1], given[2]},
                           {{"epsilon", how.epsilon}}))};
}

OnnxNames softmax(const OnnxCall& call, const char* type) {
  return {call.add(type, call.inputs, {{"axis", -1 - call.attribute<SoftmaxAttributes>().behind}})};
}

// Keys that do not count have a finite score: a query without any has probabilities, which are then
// replaced by zeros.
OnnxNames attention(const OnnxCall& call, const char*) {
  const auto& how = call.attribute<AttentionAttributes>();
  const DType dtype = call.in(0).dtype;
  const int rank = call.in(0).shape.rank();
  const std::string q = call.add("Mul", {call.inputs[0], call.number(how.scale, dtype)});
  std::string scores =
      call.add("MatMul", {q, call.transpose(call.inputs[1], rank, rank - 2, rank - 1)});
  std::string counts;  // bool, where a key counts
  if (how.mask != 0 && call.in(3).dtype == DType::boolean) {
    counts = call.inputs[3];
  } else if (how.mask != 0) {
    scores = call.add("Add", {scores, call.inputs[3]});
    counts = call.add("Greater", {call.inputs[3], call.number(-HUGE_VAL, dtype)});
  }
  if (how.causal != 0) {
    const std::string shape = call.add("Shape", {scores}, {{"start", -2}});
    const std::string all = call.add("Expand", {call.number(1, DType::boolean), shape});
    const std::string causal = call.add("Trilu", {all}, {{"upper", 0}});
    counts = counts.empty() ? causal : call.add("And", {counts, causal});
  }
  if (!counts.empty()) {
    const double lowest = dtype == DType::f16 ? -65504 : dtype == DType::f64 ? -1e308 : -1e38;
    scores = call.add("Where", {counts, scores, call.number(lowest, dtype)});
  }
  std::string probabilities = call.add("Softmax", {scores}, {{"axis", -1}});
  if (!counts.empty())
    probabilities = call.add("Where", {counts, probabilities, call.number(0, dtype)});
  return {call.add("MatMul", {probabilities, call.inputs[2]})};
}

// clang-format off
constexpr OnnxRule kLayerRules[] = {
    {&matmul_op, "MatMul", matmul}, {&dense_op, "MatMul", dense},
    {&dense_activated_op, "MatMul", dense}, {&conv2d_op, "Conv", conv},
    {&conv_transpose2d_op, "ConvTranspose", conv}, {&max_pool_op, "MaxPool", pool},
    {&avg_pool_op, "AveragePool", pool}, {&layer_norm_op, "LayerNormalization", layer_norm},
    {&rms_norm_op, "", rms_norm}, {&group_norm_op, "GroupNormalization", group_norm},
    {&batch_norm_inference_op, "BatchNormalization", batch_norm}, {&softmax_op, "Softmax", softmax},
    {&log_softmax_op, "LogSoftmax", softmax}, {&attention_op, "", attention}};
// clang-format on

}  // namespace

std::span<const OnnxRule> onnx_layer_rules() { return kLayerRules; }

}  // namespace ebb::detail
