#include <algorithm>
#include <limits>

#include "ebb/core/kernels/create.h"
#include "ebb/core/kernels/index.h"
#include "ebb/core/kernels/layout.h"
#include "ebb/core/kernels/order.h"
#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/kernels/reduce.h"
#include "ebb/core/kernels/scan.h"
#include "ebb/core/kernels/slice.h"
#include "ebb/core/ops/all_operators.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/graph/onnx/translation.h"

namespace ebb::detail {

namespace {

std::vector<std::int64_t> axes_in(std::uint64_t mask) {
  std::vector<std::int64_t> axes;
  for (int axis = 0; axis < kMaxRank; ++axis)
    if ((mask >> axis & 1) != 0) axes.push_back(axis);
  return axes;
}

// An axis before the view's keeps its size, open or not: 0 copies it.
OnnxNames view(const OnnxCall& call, const char* type) {
  const std::int64_t begin = call.attribute<ViewAttributes>().begin;
  std::vector<std::int64_t> sizes;
  for (const std::int64_t size : call.out().shape.dims()) {
    if (size == 0) call.refuse(" to a size of 0");
    const bool is_copied = size == kOpen && static_cast<std::int64_t>(sizes.size()) < begin;
    sizes.push_back(is_copied ? 0 : size);
  }
  if (std::ranges::count(sizes, kOpen) > 1)
    call.refuse(" with two open sizes behind axis " + std::to_string(begin),
                ": declare one of them in the placeholder");
  return {call.add(type, {call.inputs[0], call.integers(sizes)})};
}
OnnxNames unsqueeze(const OnnxCall& call, const char* type) {
  const std::int64_t axis = call.attribute<ViewAttributes>().begin;
  return {call.add(type, {call.inputs[0], call.integers({axis})})};
}
OnnxNames squeeze(const OnnxCall& call, const char* type) {
  const std::vector<std::int64_t> axes = axes_in(call.attribute<SqueezeAttributes>().axes);
  return {axes.empty() ? call.inputs[0] : call.add(type, {call.inputs[0], call.integers(axes)})};
}

OnnxNames slice(const OnnxCall& call, const char* type) {
  const auto& [begin, end, axis, step] = call.attribute<SliceAttributes>();
  const bool is_backwards_to_front = end == SliceAttributes::kToTheEnd && step < 0;
  const std::int64_t last = is_backwards_to_front ? std::numeric_limits<std::int64_t>::min() : end;
  return {call.add(type, {call.inputs[0], call.integers({begin}), call.integers({last}),
                          call.integers({axis}), call.integers({step})})};
}
OnnxNames select(const OnnxCall& call, const char* type) {
  const auto& [axis, index] = call.attribute<SelectAttributes>();
  return {call.add(type, {call.inputs[0], call.constant(Tensor::from(index))}, {{"axis", axis}})};
}
OnnxNames size(const OnnxCall& call, const char* type) {
  const std::int64_t axis = call.attribute<SizeAttributes>().axis;
  return {call.add("Squeeze", {call.add(type, call.inputs, {{"start", axis}, {"end", axis + 1}}),
                               call.integers({0})})};
}

OnnxNames permute(const OnnxCall& call, const char* type) {
  const auto& order = call.attribute<PermuteAttributes>();
  return {call.add(type, call.inputs,
                   {{"perm", std::vector<std::int64_t>(order.axes, order.axes + order.rank)}})};
}
OnnxNames along_axis(const OnnxCall& call, const char* type) {
  const std::int64_t axis = call.node.op == &concat_op ? call.attribute<ConcatAttributes>().axis
                                                       : call.attribute<IndexAttributes>().axis;
  return {call.add(type, call.inputs, {{"axis", axis}})};
}
// -1 keeps a size, as 1 does in Expand.
OnnxNames broadcast_to(const OnnxCall& call, const char* type) {
  std::vector<std::int64_t> sizes;
  for (const std::int64_t size : call.attribute<AskedShape>().shape().dims())
    sizes.push_back(size == -1 ? 1 : size);
  return {call.add(type, {call.inputs[0], call.integers(sizes)})};
}
OnnxNames expand_as(const OnnxCall& call, const char* type) {
  return {call.add(type, {call.inputs[0], call.add("Shape", {call.inputs[1]})})};
}
OnnxNames pad(const OnnxCall& call, const char* type) {
  const auto& told = call.attribute<PadAttributes>();
  std::vector<std::int64_t> pads(told.before, told.before + told.rank);
  pads.insert(pads.end(), told.after, told.after + told.rank);
  return {call.add(
      type, {call.inputs[0], call.integers(pads), call.number(told.value, call.in(0).dtype)})};
}
OnnxNames triangular(const OnnxCall& call, const char* type) {
  const auto& [diagonal, upper] = call.attribute<TriangularAttributes>();
  return {
      call.add(type, {call.inputs[0], call.constant(Tensor::from(diagonal))}, {{"upper", upper}})};
}

// OneHot would count a negative index from the end.
OnnxNames one_hot(const OnnxCall& call, const char* type) {
  const std::string index =
      call.add("Unsqueeze", {call.cast(call.inputs[0], DType::i64), call.integers({-1})});
  const std::string classes = call.constant(arange(static_cast<double>(call.out().shape.dim(-1))));
  return {call.cast(call.add(type, {index, classes}), call.out().dtype)};
}

OnnxNames fill_like(const OnnxCall& call, const char* type) {
  const std::string value = call.number(call.attribute<FillAttributes>().value, call.out().dtype);
  return {call.add(type, {value, call.add("Shape", call.inputs)})};
}
// Numbers known without inputs are computed now.
OnnxNames known(const OnnxCall& call, const char*) {
  const Node& of = call.node;
  return {call.constant(apply_on(Device::cpu(), *of.op, of.attributes, of.site)[0])};
}

OnnxNames reduced(const OnnxCall& call, const char* type, std::uint32_t axes, bool keep) {
  const DType dtype = call.out().dtype;  // i64 for a sum of integers
  const std::string x =
      call.in(0).dtype == dtype ? call.inputs[0] : call.cast(call.inputs[0], dtype);
  return {call.add(type, {x, call.integers(axes_in(axes))}, {{"keepdims", keep}})};
}
OnnxNames reduce(const OnnxCall& call, const char* type) {
  const auto& how = call.attribute<Reduction>();
  return reduced(call, type, how.axes, how.keep != 0);
}
OnnxNames extreme(const OnnxCall& call, const char* type) {
  const auto& how = call.attribute<ExtremeAttributes>();
  if (how.position == 0) return reduced(call, type, how.axes, how.keep != 0);
  const std::vector<std::int64_t> axes = axes_in(how.axes);
  if (axes.size() != 1) call.refuse(" over several axes");
  const std::string x =
      call.in(0).dtype == DType::boolean ? call.cast(call.inputs[0], DType::u8) : call.inputs[0];
  return {call.add(type, {x}, {{"axis", axes[0]}, {"keepdims", how.keep}})};
}
OnnxNames cumsum(const OnnxCall& call, const char* type) {
  const auto& how = call.attribute<ScanAttributes>();
  return {call.add(type, {call.inputs[0], call.constant(Tensor::from(std::int64_t{how.axis}))},
                   {{"exclusive", how.exclusive}, {"reverse", how.reverse}})};
}
OnnxNames reverse_sequence(const OnnxCall& call, const char* type) {
  return {call.add(type, call.inputs, {{"batch_axis", 0}, {"time_axis", 1}})};
}

// clang-format off
constexpr OnnxRule kShapeRules[] = {
    {&reshape_op, "Reshape", view}, {&unflatten_op, "Reshape", view},
    {&flatten_op, "Reshape", view}, {&as_matrix_op, "Reshape", view},
    {&merge_axes_op, "Reshape", view}, {&unsqueeze_op, "Unsqueeze", unsqueeze},
    {&squeeze_op, "Squeeze", squeeze}, {&slice_op, "Slice", slice},
    {&strided_slice_op, "Slice", slice}, {&select_op, "Gather", select}, {&size_op, "Shape", size},
    {&permute_op, "Transpose", permute}, {&concat_op, "Concat", along_axis},
    {&broadcast_to_op, "Expand", broadcast_to}, {&expand_as_op, "Expand", expand_as},
    {&pad_op, "Pad", pad}, {&tril_op, "Trilu", triangular}, {&triu_op, "Trilu", triangular},
    {&index_select_op, "Gather", along_axis}, {&gather_op, "GatherElements", along_axis},
    {&one_hot_op, "Equal", one_hot}, {&fill_like_op, "Expand", fill_like}, {&full_op, "", known},
    {&arange_op, "", known}, {&linspace_op, "", known}, {&eye_op, "", known},
    {&sum_op, "ReduceSum", reduce}, {&mean_op, "ReduceMean", reduce},
    {&max_op, "ReduceMax", extreme}, {&min_op, "ReduceMin", extreme},
    {&argmax_op, "ArgMax", extreme}, {&argmin_op, "ArgMin", extreme},
    {&cumsum_op, "CumSum", cumsum}, {&reverse_sequence_op, "ReverseSequence", reverse_sequence}};
// clang-format on

}  // namespace

std::span<const OnnxRule> onnx_shape_rules() { return kShapeRules; }

}  // namespace ebb::detail
