// How operators depend on the rows of a batch.
#include <bit>
#include <unordered_map>
#include <unordered_set>

#include "ebb/core/kernels/attention.h"
#include "ebb/core/kernels/cross_entropy.h"
#include "ebb/core/kernels/index.h"
#include "ebb/core/kernels/layout.h"
#include "ebb/core/kernels/linear.h"
#include "ebb/core/kernels/norm.h"
#include "ebb/core/kernels/order.h"
#include "ebb/core/kernels/recurrent_operands.h"
#include "ebb/core/kernels/reduce.h"
#include "ebb/core/kernels/scan.h"
#include "ebb/core/kernels/slice.h"
#include "ebb/core/kernels/softmax.h"
#include "ebb/core/kernels/statistics.h"
#include "ebb/core/ops/all_operators.h"
#include "ebb/graph/passes/rows.h"

namespace ebb::detail {

namespace {

int rank(const Spec& spec) noexcept { return spec.shape.rank(); }

// The axis of `in`, which broadcasts to `out`, that lies at an axis of `out`.
int aligned(const Spec& in, const Spec& out, int axis) {
  const int at = axis - (rank(out) - rank(in));
  return at >= 0 && in.shape.dim(at) == out.shape.dim(axis) ? at : kNoRows;
}

// The axis of the first input that has rows.
int first_axis(const RowQuery& q) {
  for (const int place : q.from)
    if (place >= 0) return place;
  return kNoRows;
}

bool pointwise(RowQuery& q) {
  int axis = kNoRows;
  for (std::size_t i = 0; i < q.inputs.size() && axis < 0; ++i)
    if (q.from[i] >= 0) axis = q.from[i] + rank(q.outputs[0]) - rank(q.inputs[i]);
  if (!q.all_along(axis)) return false;
  for (std::size_t i = 0; i < q.inputs.size(); ++i)
    q.reads[i] = aligned(q.inputs[i], q.outputs[0], axis);
  return true;
}

// Rows lie along one axis everywhere, before the last `behind` axes.
template <int behind>
bool leading(RowQuery& q) {
  const int axis = first_axis(q);
  return axis < rank(q.inputs[0]) - behind && q.all_along(axis);
}

// Rows lie along one axis everywhere, and the operator works along another.
template <class How>
bool along_other(RowQuery& q) {
  const int axis = first_axis(q);
  return axis != q.attribute<How>().axis && q.all_along(axis);
}

// The axis after a reduction.
int reduced_axis(int axis, std::uint32_t axes, bool keep) {
  return keep ? axis : axis - std::popcount(axes & ((1u << axis) - 1));
}

template <class How>
bool reduce_others(RowQuery& q) {
  const auto& how = q.attribute<How>();
  const int axis = q.from[0];
  if ((how.axes >> axis & 1) != 0) return false;
  return q.set({axis}, {reduced_axis(axis, how.axes, how.keep != 0)});
}

bool sum(RowQuery& q) {
  const auto& how = q.attribute<Reduction>();
  if (reduce_others<Reduction>(q)) return true;
  if (how.mean != 0 && (how.correction != 0 || !is_floating(q.outputs[0].dtype))) return false;
  q.weighs_outputs = how.mean != 0;
  return q.set({q.from[0]}, {how.mean != 0 ? kMean : kSum});
}

bool sum_like(RowQuery& q) {
  const Spec &x = q.inputs[0], &like = q.inputs[1];
  const int axis = q.from[0] >= 0 ? q.from[0] : q.from[1] + rank(x) - rank(like);
  const int at = aligned(like, x, axis);
  return q.set({axis, at}, {at >= 0 ? at : kSum});
}

// The gradient of a mean over rows: each micro-batch divides by its own rows.
bool broadcast_like(RowQuery& q) {
  const auto& how = q.attribute<Reduction>();
  const int axis = q.from[1];
  if (axis < 0) return false;
  const bool over_rows = (how.axes >> axis & 1) != 0;
  if (over_rows && how.mean != 0) {
    if (how.correction != 0) return false;
    q.weighted = 0;
  }
  return q.set({over_rows ? kNoRows : reduced_axis(axis, how.axes, how.keep != 0), axis}, {axis});
}

// Views that keep the order of elements: seen as [before, rows, behind], the result has an axis
// that begins where the rows do.
bool reshape(RowQuery& q) {
  const int axis = q.from[0];
  if (axis < 0) return false;
  std::int64_t before = 1, product = 1;
  for (int i = 0; i < axis; ++i) before *= q.inputs[0].shape.dim(i);
  const Shape& out = q.outputs[0].shape;
  for (int i = 0; i < out.rank(); product *= out.dim(i++))
    if (product == before && out.dim(i) % q.rows == 0 && out.dim(i) > 0) {
      q.set({axis}, {i});
      for (std::size_t like = 1; like < q.inputs.size(); ++like) q.reads[like] = q.from[like];
      return true;
    }
  return false;
}

bool select(RowQuery& q) {
  const int axis = q.from[0], taken = static_cast<int>(q.attribute<SelectAttributes>().axis);
  return axis != taken && q.set({axis}, {axis - (axis > taken ? 1 : 0)});
}

bool select_backward(RowQuery& q) {
  const int axis = q.from[1], taken = static_cast<int>(q.attribute<SelectAttributes>().axis);
  return axis >= 0 && axis != taken && q.set({axis - (axis > taken ? 1 : 0), axis}, {axis});
}

bool permute(RowQuery& q) {
  const auto& order = q.attribute<PermuteAttributes>();
  int to = 0;
  while (order.axes[to] != q.from[0]) ++to;
  return q.set({q.from[0]}, {to});
}

bool pad(RowQuery& q) {
  const auto& how = q.attribute<PadAttributes>();
  const int axis = q.from[0];
  return how.before[axis] == 0 && how.after[axis] == 0 && q.all_along(axis);
}

bool softmax(RowQuery& q) {
  const auto behind = static_cast<int>(q.attribute<SoftmaxAttributes>().behind);
  return q.from[0] != rank(q.inputs[0]) - 1 - behind && q.all_along(q.from[0]);
}

bool matmul(RowQuery& q) {
  const auto& how = q.attribute<MatmulAttributes>();
  const int a = rank(q.inputs[0]), b = rank(q.inputs[1]), out = rank(q.outputs[0]);
  const int inner[] = {a - (how.transpose_a ? 2 : 1), b - (how.transpose_b ? 1 : 2)};
  const std::size_t side = q.from[0] >= 0 ? 0 : 1;
  const int axis = q.from[side];
  if (axis == inner[side]) return q.set({inner[0], inner[1]}, {kSum});
  if (axis >= rank(q.inputs[side]) - 2) {  // the rows or columns of the result
    const int made = out - (side == 0 ? 2 : 1);
    return side == 0 ? q.set({axis}, {made}) : q.set({kNoRows, axis}, {made});
  }
  const int batch = axis + out - rank(q.inputs[side]);
  const auto at = [&](std::size_t i) { return aligned(q.inputs[i], q.outputs[0], batch); };
  return q.set({at(0), at(1)}, {batch});
}

bool dense(RowQuery& q) {
  return q.from[0] < rank(q.inputs[0]) - 1 && q.set({q.from[0]}, {q.from[0]});
}

bool dense_backward(RowQuery& q) {
  const int axis = first_axis(q);
  return axis < rank(q.inputs[0]) - 1 && q.set({axis, kNoRows, axis}, {axis, kSum, kSum});
}

bool conv(RowQuery& q) { return q.set({0}, {0}); }
bool conv_input_gradient(RowQuery& q) { return q.set({0, kNoRows, 0}, {0}); }
bool conv_weight_gradient(RowQuery& q) { return q.set({0, 0}, {kSum}); }

bool attention(RowQuery& q) {
  if (!leading<2>(q)) return false;
  if (q.attribute<AttentionAttributes>().mask == 0) return true;
  const Spec& mask = q.inputs.back();
  const int axis = q.makes[0], at = axis - (rank(q.inputs[0]) - rank(mask));
  const bool has_rows = at >= 0 && mask.shape.dim(at) == q.inputs[0].shape.dim(axis);
  q.reads.back() = has_rows ? at : kNoRows;
  return true;
}

// Inputs are scores, labels, in the backward pass dy, and what belongs to classes or to all rows.
bool cross_entropy(RowQuery& q) {
  const auto& how = q.attribute<CrossEntropyAttributes>();
  const bool is_backward = q.node.op == &softmax_cross_entropy_backward_op;
  const bool by_row = how.reduction == CrossEntropyAttributes::none;
  const bool is_mean = how.reduction == CrossEntropyAttributes::mean && how.has_total == 0;
  const int axis = first_axis(q);
  if (axis >= rank(q.inputs[0]) - 1) return false;
  if (is_backward) {
    if (is_mean) q.weighted = 2;
    return q.set({axis, axis, by_row ? axis : kNoRows}, {axis});
  }
  q.weighs_outputs = is_mean;
  return q.set({axis, axis}, {by_row ? axis : is_mean ? kMean : kSum});
}

bool label_weights(RowQuery& q) {
  const int axis = first_axis(q);
  return q.set({axis, axis}, {axis});
}

bool norm(RowQuery& q) {
  const auto& how = q.attribute<NormAttributes>();
  const int axis = q.from[0], x = rank(q.inputs[0]);
  if (how.kind == NormAttributes::group ? axis != 0 : axis >= x - how.number) return false;
  q.all_along(axis);
  for (std::size_t i = 1; i < q.reads.size(); ++i) q.reads[i] = kNoRows;
  return true;
}

bool norm_backward(RowQuery& q) {
  const auto& how = q.attribute<NormAttributes>();
  const int axis = first_axis(q), x = rank(q.inputs[1]);
  if (how.kind == NormAttributes::group ? axis != 0 : axis >= x - how.number) return false;
  return q.set({axis, axis, axis, axis}, {axis, kSum, kSum});
}

bool batch_norm_inference(RowQuery& q) {
  return q.from[0] != q.attribute<NormAttributes>().number && q.set({q.from[0]}, {q.from[0]});
}

// Adds the forward inputs of a recurrent layer.
void add_recurrent_reads(RowQuery& q, const RecurrentOperands& at) {
  for (std::int64_t i = 0; i < at.count; ++i)
    q.reads.push_back(i == 0 || i == at.lengths ? 0 : (i == at.h0 || i == at.c0) ? 1 : kNoRows);
}

bool recurrent(RowQuery& q) {
  const RecurrentOperands at(q.attribute<RecurrentAttributes>());
  add_recurrent_reads(q, at);
  q.makes.push_back(0);
  while (q.makes.size() < at.reserve) q.makes.push_back(1);
  q.makes.push_back(kReserve);
  q.draws = at.draw >= 0;
  return true;
}

bool recurrent_backward(RowQuery& q) {
  const auto& how = q.attribute<RecurrentAttributes>();
  const RecurrentOperands at(how);
  q.reads = {kReserve, 0};
  add_recurrent_reads(q, at);
  for (int state = 0; state < 3; ++state)
    if ((how.d_given >> state & 1) != 0) q.reads.push_back(state == 0 ? 0 : 1);
  for (std::int64_t i = 0; i < at.count; ++i)
    if (at.has_gradient(i)) q.makes.push_back(i == 0 ? 0 : (i == at.h0 || i == at.c0) ? 1 : kSum);
  q.draws = at.draw >= 0;
  return true;
}

bool index_select(RowQuery& q) {
  const int chosen = static_cast<int>(q.attribute<IndexAttributes>().axis);
  const int indices = rank(q.inputs[1]);
  if (q.from[1] >= 0) return q.set({kNoRows, q.from[1]}, {chosen + q.from[1]});
  const int axis = q.from[0];
  return axis != chosen && q.set({axis}, {axis < chosen ? axis : axis - 1 + indices});
}

// Inputs are dy, the indices and the shape of x.
bool index_select_backward(RowQuery& q) {
  const int chosen = static_cast<int>(q.attribute<IndexAttributes>().axis);
  const int indices = rank(q.inputs[1]), axis = q.from[0];
  if (axis < 0) return false;
  if (axis >= chosen && axis < chosen + indices) return q.set({axis, axis - chosen}, {kSum});
  const int made = axis < chosen ? axis : axis + 1 - indices;
  return q.set({axis, kNoRows, made}, {made});
}

// Only the shape is read, and the result is the same for all rows.
bool whole(RowQuery& q) { return q.set({q.from[0]}, {kNoRows}); }
bool causal_bias(RowQuery& q) { return q.from[0] < rank(q.inputs[0]) - 2 && whole(q); }

bool random_like(RowQuery& q) {
  q.draws = true;
  return q.set({kNoRows, q.from[1]}, {q.from[1]});
}
bool dropout(RowQuery& q) {
  q.draws = true;
  return q.set({q.from[0]}, {q.from[0]});
}

const std::unordered_map<const OpDef*, RowRule>& rules() {
  static const std::unordered_map<const OpDef*, RowRule> all = [] {
    std::unordered_map<const OpDef*, RowRule> rules;
    const auto add = [&](RowRule rule, std::initializer_list<const OpDef*> ops) {
      for (const OpDef* op : ops) rules.emplace(op, rule);
    };
    const auto add_binary = [&](const BinaryOpDef& op) {
      add(pointwise, {&op.tensors, &op.number_right, &op.number_left});
    };
#define EBB_UNARY(name, Functor) add(pointwise, {&name##_op});
#define EBB_BINARY(name, Functor) add_binary(name##_op);
#define EBB_PAIR EBB_UNARY
#include "ebb/core/kernels/functors/families.inc"
    for (const BinaryOpDef* op : {&equal_op, &not_equal_op, &less_op, &less_equal_op, &greater_op,
                                  &greater_equal_op, &where_op})
      add_binary(*op);
    add(pointwise,
        {&logical_and_op, &logical_or_op, &logical_xor_op, &logical_not_op, &isnan_op, &isinf_op,
         &isfinite_op, &masked_fill_op, &fill_like_op, &copy_op, &cast_op, &detach_op,
         &activation_backward_op, &difference_op, &smooth_l1_op, &expand_as_op, &broadcast_to_op});
    add(leading<0>, {&one_hot_op});
    add(leading<1>, {&argsort_op, &topk_op, &reverse_sequence_op});
    add(leading<2>, {&tril_op, &triu_op, &max_pool_op, &max_pool_select_op, &max_pool_backward_op,
                     &avg_pool_op, &avg_pool_backward_op});
    add(along_other<ScanAttributes>, {&cumsum_op, &cumprod_op});
    add(along_other<RecurrenceAttributes>, {&recurrence_op});
    add(along_other<ConcatAttributes>, {&concat_op, &concat_backward_op});
    add(along_other<SliceAttributes>, {&slice_op, &strided_slice_op, &slice_backward_op});
    add(along_other<IndexAttributes>, {&gather_op, &gather_backward_op});
    add(reduce_others<Reduction>, {&any_op, &all_op});
    add(reduce_others<ExtremeAttributes>, {&max_op, &min_op, &argmax_op, &argmin_op});
    add(reduce_others<StatisticAttributes>,
        {&variance_op, &standard_deviation_op, &norm1_op, &norm2_op, &logsumexp_op, &prod_op});
    add(reshape, {&reshape_op, &unflatten_op, &reshape_like_op, &as_matrix_op, &flatten_op,
                  &merge_axes_op, &unsqueeze_op, &squeeze_op});
    add(sum, {&sum_op, &mean_op});
    add(dense, {&dense_op, &dense_activated_op});
    add(conv, {&conv2d_op, &conv_transpose2d_op});
    add(attention, {&attention_op, &attention_backward_op});
    add(softmax, {&softmax_op, &log_softmax_op});
    add(cross_entropy, {&softmax_cross_entropy_op, &softmax_cross_entropy_backward_op});
    add(norm, {&layer_norm_op, &rms_norm_op, &group_norm_op});
    add(recurrent, {&lstm_op, &gru_op});
    add(recurrent_backward, {&lstm_backward_op, &gru_backward_op});
    add(random_like, {&uniform_op, &normal_op, &bernoulli_op});
    rules.insert({{&sum_like_op, sum_like},
                  {&broadcast_like_op, broadcast_like},
                  {&select_op, select},
                  {&select_backward_op, select_backward},
                  {&permute_op, permute},
                  {&pad_op, pad},
                  {&matmul_op, matmul},
                  {&dense_backward_op, dense_backward},
                  {&conv2d_input_gradient_op, conv_input_gradient},
                  {&conv2d_weight_gradient_op, conv_weight_gradient},
                  {&label_weights_op, label_weights},
                  {&norm_backward_op, norm_backward},
                  {&batch_norm_inference_op, batch_norm_inference},
                  {&index_select_op, index_select},
                  {&index_select_backward_op, index_select_backward},
                  {&size_op, whole},
                  {&causal_bias_op, causal_bias},
                  {&dropout_op, dropout}});
    return rules;
  }();
  return all;
}

}  // namespace

RowRule row_rule(const OpDef& op) {
  const auto found = rules().find(&op);
  return found == rules().end() ? nullptr : found->second;
}

bool is_linear(const OpDef& op) {
  static const std::unordered_set<const OpDef*> all = {
      &add_op.tensors, &subtract_op.tensors, &negate_op,    &multiply_op.number_right,
      &sum_op,         &sum_like_op,         &permute_op,   &reshape_op,
      &unflatten_op,   &reshape_like_op,     &as_matrix_op, &flatten_op,
      &merge_axes_op,  &unsqueeze_op,        &squeeze_op};
  return all.contains(&op);
}

}  // namespace ebb::detail
