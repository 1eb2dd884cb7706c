#include "ebb/core/ops/all_operators.h"

namespace ebb {

std::span<const OpDef* const> all_operators() noexcept {
  static constexpr const OpDef* kAllOperators[] = {
// clang-format off
#define EBB_UNARY(name, Functor) &name##_op,
#define EBB_BINARY(name, Functor) \
  &name##_op.tensors, &name##_op.number_right, &name##_op.number_left,
#define EBB_PAIR(name, Functor) &name##_op,
#include "ebb/core/kernels/functors/families.inc"
      // clang-format on
      // create, fill, copy
      &full_op, &arange_op, &linspace_op, &eye_op, &tril_op, &triu_op, &fill_like_op, &copy_op,
      &cast_op, &detach_op,
      // comparison
      &equal_op.tensors, &equal_op.number_right, &equal_op.number_left, &not_equal_op.tensors,
      &not_equal_op.number_right, &not_equal_op.number_left, &less_op.tensors,
      &less_op.number_right, &less_op.number_left, &less_equal_op.tensors,
      &less_equal_op.number_right, &less_equal_op.number_left, &greater_op.tensors,
      &greater_op.number_right, &greater_op.number_left, &greater_equal_op.tensors,
      &greater_equal_op.number_right, &greater_equal_op.number_left, &logical_and_op,
      &logical_or_op, &logical_xor_op, &logical_not_op, &isnan_op, &isinf_op, &isfinite_op,
      // where
      &where_op.tensors, &where_op.number_right, &where_op.number_left, &masked_fill_op,
      // reduce
      &sum_op, &mean_op, &any_op, &all_op, &sum_like_op, &broadcast_like_op, &expand_as_op,
      // linear
      &matmul_op, &dense_op, &dense_activated_op, &dense_backward_op, &activation_backward_op,
      // conv
      &conv2d_op, &conv2d_input_gradient_op, &conv2d_weight_gradient_op, &conv_transpose2d_op,
      // pool
      &max_pool_op, &max_pool_select_op, &max_pool_backward_op, &avg_pool_op, &avg_pool_backward_op,
      // attention
      &attention_op, &attention_backward_op, &causal_bias_op,
      // softmax
      &softmax_op, &log_softmax_op,
      // loss
      &softmax_cross_entropy_op, &softmax_cross_entropy_backward_op, &label_weights_op,
      &difference_op, &smooth_l1_op,
      // norm
      &layer_norm_op, &rms_norm_op, &group_norm_op, &norm_backward_op, &batch_norm_op,
      &batch_norm_backward_op, &batch_norm_inference_op,
      // random
      &uniform_op, &normal_op, &bernoulli_op, &randint_op, &dropout_op, &draw_op, &next_run_op,
      // recurrent
      &lstm_op, &lstm_backward_op, &gru_op, &gru_backward_op,
      // shape
      &reshape_op, &unflatten_op, &reshape_like_op, &as_matrix_op, &flatten_op, &merge_axes_op,
      &unsqueeze_op, &squeeze_op, &slice_op, &strided_slice_op, &slice_backward_op, &select_op,
      &select_backward_op, &size_op,
      // layout
      &permute_op, &concat_op, &concat_backward_op, &pad_op, &broadcast_to_op,
      // index
      &index_select_op, &index_select_backward_op, &gather_op, &gather_backward_op, &one_hot_op,
      // order, scan
      &max_op, &min_op, &argmax_op, &argmin_op, &argsort_op, &topk_op, &cumsum_op, &cumprod_op,
      &recurrence_op,
      // statistics
      &variance_op, &standard_deviation_op, &norm1_op, &norm2_op, &logsumexp_op, &prod_op,
      // sequence
      &reverse_sequence_op,
      // update
      &assign_op, &add_assign_op, &assign_slice_op, &assign_slice_at_op, &assign_if_op,
      &increment_op, &add_count_op, &at_least_op, &clear_if_op, &with_updates_op,
      // collective
      &all_reduce_op, &all_reduce_max_op, &all_gather_op, &reduce_scatter_op, &broadcast_op,
      &broadcast_backward_op, &begin_total_op, &end_total_op, &total_in_order_op, &begin_gather_op,
      &end_gather_op, &gather_share_op, &whole_op, &rows_in_use_op, &send_op, &recv_op,
      // memory figures
      &bytes_in_use_op, &max_bytes_in_use_op, &bytes_limit_op};
  return kAllOperators;
}

}  // namespace ebb
