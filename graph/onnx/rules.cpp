// Translations of operators.
#include <algorithm>
#include <limits>

#include "ebb/core/kernels/attention.h"
#include "ebb/core/kernels/conv.h"
#include "ebb/core/kernels/functors/activations.h"
#include "ebb/core/kernels/functors/extremes.h"
#include "ebb/core/kernels/index.h"
#include "ebb/core/kernels/layout.h"
#include "ebb/core/kernels/linear.h"
#include "ebb/core/kernels/norm.h"
#include "ebb/core/kernels/order.h"
#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/kernels/pool.h"
#include "ebb/core/kernels/reduce.h"
#include "ebb/core/kernels/scan.h"
#include "ebb/core/kernels/slice.h"
#include "ebb/core/kernels/softmax.h"
#include "ebb/core/ops/all_operators.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/graph/onnx/translation.h"

namespace ebb::detail {

namespace {

using Integers = std::vector<std::int64_t>;

// A node of these inputs. A number that is operand a or b stands before or behind the last.
OnnxNames with_number(const OnnxCall& call, OnnxNames inputs, DType dtype) {
  const auto& [value, position] = call.attribute<NumberOperand>();
  if (position != NumberOperand::none)
    inputs.insert(position == NumberOperand::left ? inputs.end() - 1 : inputs.end(),
                  call.number(value, dtype));
  return {call.add(call.type, inputs)};
}
OnnxNames two_operands(const OnnxCall& call) {
  return with_number(call, call.inputs, call.in(call.inputs.size() - 1).dtype);
}

// A number beside integers is compared as it is, which may be 0.5. ONNX has no order of bool.
OnnxNames compare(const OnnxCall& call) {
  const DType dtype = call.in(0).dtype;
  if (is_floating(dtype) || (call.inputs.size() == 2 && dtype != DType::boolean))
    return two_operands(call);
  OnnxNames inputs;
  for (const std::string& x : call.inputs) inputs.push_back(call.cast(x, DType::f64));
  return with_number(call, inputs, DType::f64);
}
OnnxNames differ(const OnnxCall& call) { return {call.add("Not", compare(call))}; }

OnnxNames negate(const OnnxCall& call) {
  if (call.in(0).dtype == DType::u8) call.refuse(" of u8");
  return call.result();
}
OnnxNames square(const OnnxCall& call) { return call.result(call.inputs); }
OnnxNames rsqrt(const OnnxCall& call) { return {call.add("Reciprocal", call.result())}; }
OnnxNames silu(const OnnxCall& call) { return call.result({call.add("Sigmoid", call.inputs)}); }
OnnxNames gelu_tanh(const OnnxCall& call) { return call.result({}, {{"approximate", "tanh"}}); }
// The only parameter of leaky_relu and of elu.
OnnxNames with_alpha(const OnnxCall& call) {
  return call.result({}, {{"alpha", call.attribute<double>()}});
}
OnnxNames clamp(const OnnxCall& call) {
  const auto& [low, high] = call.attribute<functors::Bounds>();
  const DType dtype = call.in(0).dtype;
  return call.result({call.number(low, dtype), call.number(high, dtype)});
}
OnnxNames cast(const OnnxCall& call) { return {call.cast(call.inputs[0], call.out().dtype)}; }

// 0 copies a size, open or not: all before the view's axes.
OnnxNames view(const OnnxCall& call) {
  const std::int64_t begin = call.attribute<ViewAttributes>().begin;
  const Shape& out = call.out().shape;
  Integers sizes(out.dims().begin(), out.dims().end());
  if (std::ranges::count(sizes, 0) != 0) call.refuse(" to a size of 0");
  std::fill_n(sizes.begin(), begin, 0);
  if (std::ranges::count(sizes, kOpen) > 1)
    call.refuse(" with two open sizes behind axis " + std::to_string(begin),
                ": declare one of them in the placeholder");
  return call.result({call.integers(sizes)});
}
OnnxNames unsqueeze(const OnnxCall& call) {
  return call.result({call.integers({call.attribute<ViewAttributes>().begin})});
}
Integers axes_in(std::uint64_t mask) {
  Integers axes;
  for (int axis = 0; axis < kMaxRank; ++axis)
    if ((mask >> axis & 1) != 0) axes.push_back(axis);
  return axes;
}
OnnxNames squeeze(const OnnxCall& call) {
  const Integers axes = axes_in(call.attribute<SqueezeAttributes>().axes);
  return axes.empty() ? call.inputs : call.result({call.integers(axes)});
}

OnnxNames slice(const OnnxCall& call) {
  const auto& [begin, end, axis, step] = call.attribute<SliceAttributes>();
  const bool is_backwards_to_front = end == SliceAttributes::kToTheEnd && step < 0;
  const std::int64_t last = is_backwards_to_front ? std::numeric_limits<std::int64_t>::min() : end;
  return call.result({call.integers({begin}), call.integers({last}), call.integers({axis}),
                      call.integers({step})});
}
OnnxNames select(const OnnxCall& call) {
  const auto& [axis, index] = call.attribute<SelectAttributes>();
  return call.result({call.constant(Tensor::from(index))}, {{"axis", axis}});
}
template <class Attributes>
OnnxNames along_axis(const OnnxCall& call) {
  return call.result({}, {{"axis", call.attribute<Attributes>().axis}});
}
OnnxNames permute(const OnnxCall& call) {
  const auto& order = call.attribute<PermuteAttributes>();
  return call.result({}, {{"perm", Integers(order.axes, order.axes + order.rank)}});
}
// -1 keeps a size, as 1 does in Expand.
OnnxNames broadcast_to(const OnnxCall& call) {
  const Shape asked = call.attribute<AskedShape>().shape();
  Integers sizes(asked.dims().begin(), asked.dims().end());
  std::ranges::replace(sizes, -1, 1);
  return call.result({call.integers(sizes)});
}
OnnxNames pad(const OnnxCall& call) {
  const auto& told = call.attribute<PadAttributes>();
  Integers pads(told.before, told.before + told.rank);
  pads.insert(pads.end(), told.after, told.after + told.rank);
  return call.result({call.integers(pads), call.number(told.value, call.in(0).dtype)});
}
OnnxNames reverse_sequence(const OnnxCall& call) {
  return call.result({}, {{"batch_axis", 0}, {"time_axis", 1}});
}
OnnxNames fill_like(const OnnxCall& call) {
  const std::string value = call.number(call.attribute<FillAttributes>().value, call.out().dtype);
  return {call.add(call.type, {value, call.add("Shape", call.inputs)})};
}
// Numbers known without inputs are computed now.
OnnxNames known(const OnnxCall& call) {
  const Node& of = call.node;
  return {call.constant(apply_on(Device::cpu(), *of.op, of.attributes, of.site)[0])};
}

template <class Attributes>
OnnxNames reduce(const OnnxCall& call) {
  const auto& how = call.attribute<Attributes>();
  const DType dtype = call.out().dtype;  // i64 for a sum of integers
  const std::string x =
      call.in(0).dtype == dtype ? call.inputs[0] : call.cast(call.inputs[0], dtype);
  return {call.add(call.type, {x, call.integers(axes_in(how.axes))}, {{"keepdims", how.keep}})};
}
OnnxNames place_of_extreme(const OnnxCall& call) {
  const auto& how = call.attribute<ExtremeAttributes>();
  const Integers axes = axes_in(how.axes);
  if (axes.size() != 1) call.refuse(" over several axes");
  const std::string x =
      call.in(0).dtype == DType::boolean ? call.cast(call.inputs[0], DType::u8) : call.inputs[0];
  return {call.add(call.type, {x}, {{"axis", axes[0]}, {"keepdims", how.keep}})};
}
OnnxNames cumsum(const OnnxCall& call) {
  const auto& how = call.attribute<ScanAttributes>();
  return call.result({call.constant(Tensor::from(std::int64_t{how.axis}))},
                     {{"exclusive", how.exclusive}, {"reverse", how.reverse}});
}

OnnxNames matmul(const OnnxCall& call) {
  const auto& how = call.attribute<MatmulAttributes>();
  OnnxNames inputs = call.inputs;
  for (std::size_t i = 0; i < 2; ++i)
    if (const int rank = call.in(i).shape.rank(); i == 0 ? how.transpose_a : how.transpose_b)
      inputs[i] = call.transpose(inputs[i], rank, rank - 2, rank - 1);
  return {call.add(call.type, inputs)};
}
OnnxNames dense(const OnnxCall& call) {
  const auto& how = call.attribute<DenseAttributes>();
  std::string y = call.add(call.type, {call.inputs[0], call.inputs[1]});
  if (how.bias != 0) y = call.add("Add", {y, call.inputs[2]});
  constexpr const char* kActivations[] = {nullptr, "Relu", "Tanh", "Sigmoid"};
  const char* const activation = kActivations[static_cast<std::size_t>(how.activation)];
  return {activation ? call.add(activation, {y}) : y};
}

// Sizes along the height and the width; `pads` counts before both, then after both.
Integers both(const std::int64_t (&sides)[2]) { return {sides[0], sides[1]}; }
Integers pads(const std::int64_t (&sides)[2]) { return {sides[0], sides[1], sides[0], sides[1]}; }
OnnxNames conv(const OnnxCall& call) {
  const auto& how = call.attribute<ConvAttributes>();
  return call.result({}, {{"strides", both(how.stride)},
                          {"pads", pads(how.padding)},
                          {"dilations", both(how.dilation)},
                          {"group", how.groups}});
}
OnnxNames pool(const OnnxCall& call) {
  const auto& how = call.attribute<PoolAttributes>();
  if (call.in(0).shape.rank() != 4) call.refuse(" of other than 4 axes");
  OnnxAttributes attributes = {{"kernel_shape", both(how.kernel)},
                               {"strides", both(how.stride)},
                               {"pads", pads(how.padding)}};
  if (call.node.op == &avg_pool_op)
    attributes.push_back({"count_include_pad", how.count_include_pad});
  return call.result({}, attributes);
}

OnnxNames layer_norm(const OnnxCall& call) {
  const auto& how = call.attribute<NormAttributes>();
  if (how.has_scale == 0) call.refuse(" without a scale");
  return call.result({}, {{"axis", -how.number}, {"epsilon", how.epsilon}});
}
// Squares of 16 bits are summed in f32.
OnnxNames rms_norm(const OnnxCall& call) {
  const auto& how = call.attribute<NormAttributes>();
  const DType dtype = call.in(0).dtype, wide = is_half(dtype) ? DType::f32 : dtype;
  Integers axes;
  for (std::int64_t axis = -how.number; axis < 0; ++axis) axes.push_back(axis);
  const std::string x = wide == dtype ? call.inputs[0] : call.cast(call.inputs[0], wide),
                    mean = call.add("ReduceMean", {call.add("Mul", {x, x}), call.integers(axes)}),
                    root =
                        call.add("Sqrt", {call.add("Add", {mean, call.number(how.epsilon, wide)})});
  std::string y = call.add("Div", {x, root});
  if (wide != dtype) y = call.cast(y, dtype);
  return {how.has_scale != 0 ? call.add("Mul", {y, call.inputs[1]}) : y};
}
OnnxNames batch_norm(const OnnxCall& call) {
  const auto& how = call.attribute<NormAttributes>();
  if (how.number != 1) call.refuse(" of channels in axis " + std::to_string(how.number));
  const OnnxNames& given = call.inputs;  // x, mean, variance, scale, shift
  return {call.add(call.type, {given[0], given[3], given[4], given[1], given[2]},
                   {{"epsilon", how.epsilon}})};
}
OnnxNames softmax(const OnnxCall& call) {
  return call.result({}, {{"axis", -1 - call.attribute<SoftmaxAttributes>().behind}});
}

// Scores of keys that do not count are -infinity, and their probabilities 0: also those of a query
// without any key, whose softmax would be NaN. Scores of 16 bits are f32, as finite masks are
// large.
OnnxNames attention(const OnnxCall& call) {
  const auto& how = call.attribute<AttentionAttributes>();
  const DType dtype = call.in(0).dtype, wide = is_half(dtype) ? DType::f32 : dtype;
  const int rank = call.in(0).shape.rank();
  const auto in = [&](const std::string& x, DType to) {
    return wide == dtype ? x : call.cast(x, to);
  };
  const std::string q = call.add("Mul", {call.inputs[0], call.number(how.scale, dtype)}),
                    k = call.transpose(call.inputs[1], rank, rank - 2, rank - 1);
  std::string scores = call.add("MatMul", {q, k});
  if (how.mask == 0 && how.causal == 0)
    return {call.add("MatMul", {call.add("Softmax", {scores}), call.inputs[2]})};
  scores = in(scores, wide);
  const std::string none = call.number(-HUGE_VAL, wide);
  if (how.mask != 0)
    scores = call.in(3).dtype == DType::boolean
                 ? call.add("Where", {call.inputs[3], scores, none})
                 : call.add("Add", {scores, in(call.inputs[3], wide)});
  if (how.causal != 0) {
    const std::string shape = call.add("Shape", {scores}, {{"start", -2}}),
                      all = call.add("Expand", {call.number(1, DType::boolean), shape}),
                      counts = call.add("Trilu", {all}, {{"upper", 0}});
    scores = call.add("Where", {counts, scores, none});
  }
  const double lowest = wide == DType::f64 ? -1e308 : -1e38;
  const std::string finite = call.add("Max", {scores, call.number(lowest, wide)}),
                    left_out = call.add("Equal", {scores, none}),
                    kept = call.add(
                        "Where", {left_out, call.number(0, wide), call.add("Softmax", {finite})});
  return {call.add("MatMul", {in(kept, dtype), call.inputs[2]})};
}

// clang-format off
// The forms of an operator of two operands.
#define EBB_FORMS(op, type, rule) \
  {&op.tensors, type, rule}, {&op.number_right, type, rule}, {&op.number_left, type, rule}
constexpr OnnxRule kRules[] = {
    {&copy_op, "Identity"}, {&detach_op, "Identity"}, {&cast_op, "Cast", cast},
    {&negate_op, "Neg", negate}, {&square_op, "Mul", square}, {&sqrt_op, "Sqrt"},
    {&rsqrt_op, "Sqrt", rsqrt}, {&abs_op, "Abs"}, {&sign_op, "Sign"}, {&floor_op, "Floor"},
    {&ceil_op, "Ceil"}, {&round_op, "Round"}, {&exp_op, "Exp"}, {&log_op, "Log"},
    {&sin_op, "Sin"}, {&cos_op, "Cos"}, {&tanh_op, "Tanh"}, {&erf_op, "Erf"},
    {&sigmoid_op, "Sigmoid"}, {&softplus_op, "Softplus"}, {&relu_op, "Relu"},
    {&leaky_relu_op, "LeakyRelu", with_alpha}, {&elu_op, "Elu", with_alpha},
    {&silu_op, "Mul", silu}, {&gelu_op, "Gelu"}, {&gelu_tanh_op, "Gelu", gelu_tanh},
    {&clamp_op, "Clip", clamp}, EBB_FORMS(add_op, "Add", two_operands),
    EBB_FORMS(subtract_op, "Sub", two_operands), EBB_FORMS(multiply_op, "Mul", two_operands),
    EBB_FORMS(divide_op, "Div", two_operands), EBB_FORMS(pow_op, "Pow", two_operands),
    EBB_FORMS(maximum_op, "Max", two_operands), EBB_FORMS(minimum_op, "Min", two_operands),
    EBB_FORMS(equal_op, "Equal", compare), EBB_FORMS(not_equal_op, "Equal", differ),
    EBB_FORMS(less_op, "Less", compare), EBB_FORMS(less_equal_op, "LessOrEqual", compare),
    EBB_FORMS(greater_op, "Greater", compare),
    EBB_FORMS(greater_equal_op, "GreaterOrEqual", compare), {&logical_and_op, "And"},
    {&logical_or_op, "Or"}, {&logical_xor_op, "Xor"}, {&logical_not_op, "Not"},
    {&isnan_op, "IsNaN"}, {&isinf_op, "IsInf"}, EBB_FORMS(where_op, "Where", two_operands),
    {&masked_fill_op, "Where", two_operands},
    {&reshape_op, "Reshape", view}, {&unflatten_op, "Reshape", view},
    {&flatten_op, "Reshape", view}, {&as_matrix_op, "Reshape", view},
    {&merge_axes_op, "Reshape", view}, {&unsqueeze_op, "Unsqueeze", unsqueeze},
    {&squeeze_op, "Squeeze", squeeze}, {&slice_op, "Slice", slice},
    {&strided_slice_op, "Slice", slice}, {&select_op, "Gather", select},
    {&permute_op, "Transpose", permute}, {&concat_op, "Concat", along_axis<ConcatAttributes>},
    {&broadcast_to_op, "Expand", broadcast_to}, {&pad_op, "Pad", pad},
    {&index_select_op, "Gather", along_axis<IndexAttributes>},
    {&gather_op, "GatherElements", along_axis<IndexAttributes>},
    {&reverse_sequence_op, "ReverseSequence", reverse_sequence},
    {&fill_like_op, "Expand", fill_like}, {&full_op, "", known}, {&arange_op, "", known},
    {&linspace_op, "", known}, {&eye_op, "", known}, {&sum_op, "ReduceSum", reduce<Reduction>},
    {&mean_op, "ReduceMean", reduce<Reduction>}, {&max_op, "ReduceMax", reduce<ExtremeAttributes>},
    {&min_op, "ReduceMin", reduce<ExtremeAttributes>}, {&argmax_op, "ArgMax", place_of_extreme},
    {&argmin_op, "ArgMin", place_of_extreme}, {&cumsum_op, "CumSum", cumsum},
    {&matmul_op, "MatMul", matmul}, {&dense_op, "MatMul", dense},
    {&dense_activated_op, "MatMul", dense}, {&conv2d_op, "Conv", conv},
    {&max_pool_op, "MaxPool", pool}, {&avg_pool_op, "AveragePool", pool},
    {&layer_norm_op, "LayerNormalization", layer_norm}, {&rms_norm_op, "", rms_norm},
    {&batch_norm_inference_op, "BatchNormalization", batch_norm}, {&softmax_op, "Softmax", softmax},
    {&log_softmax_op, "LogSoftmax", softmax}, {&attention_op, "", attention},
    {&lstm_op, "LSTM", onnx_recurrent}, {&gru_op, "GRU", onnx_recurrent}};
#undef EBB_FORMS
// clang-format on

}  // namespace

std::span<const OnnxRule> onnx_rules() { return kRules; }

}  // namespace ebb::detail
