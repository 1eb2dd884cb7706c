// The memory rules of the kernels in kernels/cuda.
#include <algorithm>

#include "ebb/core/kernels/attention.h"
#include "ebb/core/kernels/carver.h"
#include "ebb/core/kernels/cross_entropy.h"
#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/fused.h"
#include "ebb/core/kernels/order.h"
#include "ebb/core/kernels/reduce.h"
#include "ebb/core/kernels/scan.h"
#include "ebb/core/kernels/statistics.h"
#include "ebb/core/kernels/tf32.h"
#include "ebb/kernels/cuda/plans/attention_plan.h"
#include "ebb/kernels/cuda/plans/conv_plan.h"
#include "ebb/kernels/cuda/plans/cudnn_workspace.h"
#include "ebb/kernels/cuda/plans/linear_products.h"
#include "ebb/kernels/cuda/plans/lstm_cudnn_layout.h"
#include "ebb/kernels/cuda/plans/norm_plan.h"
#include "ebb/kernels/cuda/plans/reduce_plan.h"
#include "ebb/kernels/cuda/plans/scatter_plan.h"
#include "ebb/kernels/cuda/plans/sort_plan.h"

namespace ebb::cuda {
namespace {

MemoryNeeds norm_needs(const MemoryQuery& query, std::size_t x, int sums, int numbers) noexcept {
  const NormView view(query.inputs[x].shape, query.attribute<NormAttributes>());
  return {.workspace_bytes = query.inputs[x].dtype == DType::f64
                                 ? NormWorkspace<double>(nullptr, view, sums, numbers).bytes
                                 : NormWorkspace<float>(nullptr, view, sums, numbers).bytes};
}

std::size_t cudnn_bytes(ConvPass pass, const MemoryQuery& query) noexcept {
  const ConvLayout of = conv_layout(pass, query);
  const DType dtype = query.outputs[0].dtype;
  if (!suits_cudnn(of, dtype, query.profile)) return 0;
  return cudnn_workspace_bytes(
      cudnn_limit(pass, of, dtype, query.profile->compute_capability, is_tf32_allowed()));
}

MemoryNeeds sum_needs(const Shape& shape, std::uint32_t axes) noexcept {
  return {.workspace_bytes = plan_sum(MergedAxes(shape, axes)).workspace_bytes()};
}

}  // namespace

MemoryNeeds attention_memory(const MemoryQuery& query) {
  const AttentionLayout of(query.inputs[0].shape, query.inputs[2].shape);
  const bool by_cudnn =
      suits_cudnn(of, query.attribute<AttentionAttributes>(), query.inputs[0].dtype, query.profile);
  return {.workspace_bytes = by_cudnn ? cudnn_workspace_bytes(kAttentionWorkspace) : 0};
}

// Workspace: sum(dy y) for each query, f64 for f64, else f32.
MemoryNeeds attention_backward_memory(const MemoryQuery& query) {
  const std::int64_t rows = query.inputs[kAttentionLse].shape.elements();
  return {.workspace_bytes = aligned_bytes(static_cast<std::size_t>(rows) *
                                           size_of(query.inputs[kAttentionLse].dtype))};
}

MemoryNeeds conv2d_memory(const MemoryQuery& query) {
  return {.workspace_bytes = cudnn_bytes(ConvPass::forward, query)};
}
MemoryNeeds conv_transpose2d_memory(const MemoryQuery& query) {
  return {.workspace_bytes = cudnn_bytes(ConvPass::input_gradient, query)};
}
MemoryNeeds conv2d_weight_gradient_memory(const MemoryQuery& query) {
  return {.workspace_bytes = cudnn_bytes(ConvPass::weight_gradient, query)};
}

MemoryNeeds softmax_cross_entropy_memory(const MemoryQuery& query) {
  if (query.attribute<CrossEntropyAttributes>().reduction == CrossEntropyAttributes::none)
    return {};
  const Shape& shape = query.inputs[0].shape;
  std::int64_t rows = 1;
  for (int axis = 0; axis + 1 < shape.rank(); ++axis) rows *= shape.dim(axis);
  return {.workspace_bytes = RowMeanPlan(rows, shape.dim(-1)).workspace_bytes()};
}

MemoryNeeds matmul_memory(const MemoryQuery& query) {
  return {.workspace_bytes = product_bytes(matmul_product(query).shape, query.profile)};
}

MemoryNeeds dense_memory(const MemoryQuery& query) {
  const DenseSizes size(query.inputs[0], query.inputs[1]);
  return {.workspace_bytes =
              product_bytes(forward_product(query.inputs[0].dtype, size), query.profile)};
}

// The products run one after the other in the same memory, as do the column sums where no product
// makes them.
MemoryNeeds dense_backward_memory(const MemoryQuery& query) {
  const DType dtype = query.inputs[0].dtype;
  const DenseSizes size(query.inputs[0], query.inputs[1]);
  std::size_t bytes = 0;
  if (query.wants(0))
    bytes = std::max(bytes, product_bytes(input_product(dtype, size), query.profile));
  if (query.wants(1))
    bytes = std::max(bytes, product_bytes(weight_product(dtype, size), query.profile));
  if (query.wants(2)) bytes = std::max(bytes, column_sum_bytes(size.rows, size.out));
  return {.workspace_bytes = bytes};
}

MemoryNeeds norm_backward_memory(const MemoryQuery& query) {
  return query.wants(1) || query.wants(2) ? norm_needs(query, 1, 2, 0) : MemoryNeeds();
}
MemoryNeeds batch_norm_memory(const MemoryQuery& query) { return norm_needs(query, 0, 1, 2); }
MemoryNeeds batch_norm_backward_memory(const MemoryQuery& query) {
  return norm_needs(query, 1, 2, 2);
}

// Workspace: the first element's key and position for each part.
MemoryNeeds extreme_memory(const MemoryQuery& query) {
  return {.workspace_bytes =
              fold_bytes(query.inputs[0].shape, query.attribute<ExtremeAttributes>().axes, 16)};
}

MemoryNeeds argsort_memory(const MemoryQuery& query) {
  const std::int64_t elements = query.outputs[0].shape.elements();
  if (elements == 0) return {};
  const std::int64_t count = query.outputs[0].shape.dim(-1);
  const SortPlan plan{elements / count, query.inputs[0].shape.dim(-1), count};
  return {.workspace_bytes = plan.workspace_bytes()};
}

MemoryNeeds scan_memory(const MemoryQuery& query) {
  const auto& how = query.attribute<ScanAttributes>();
  const bool scaled = how.product != 0 && is_floating(query.inputs[0].dtype);  // two numbers
  return {.workspace_bytes =
              (scaled ? 2 : 1) * plan_scan({query.inputs[0].shape, {how.axis}}).workspace_bytes()};
}
// Its totals are two numbers.
MemoryNeeds recurrence_memory(const MemoryQuery& query) {
  const auto axis = query.attribute<RecurrenceAttributes>().axis;
  return {.workspace_bytes = 2 * plan_scan({query.inputs[0].shape, {axis}}).workspace_bytes()};
}

// Workspace: the sums of each part of the indices.
MemoryNeeds index_select_backward_memory(const MemoryQuery& query) {
  const Spec& out = query.outputs[0];
  const std::size_t state = out.dtype == DType::f64 ? 8 : 4;
  const ScatterPlan plan(IndexedAxis(out.shape, query.attribute<IndexAttributes>()),
                         query.inputs[1].shape.elements(), state, true);
  return {.workspace_bytes =
              plan.parts == 1 ? 0 : static_cast<std::size_t>(plan.parts * plan.sums()) * state};
}

MemoryNeeds sum_memory(const MemoryQuery& query) {
  return sum_needs(query.inputs[0].shape, query.attribute<Reduction>().axes);
}

MemoryNeeds fused_memory(const MemoryQuery& query) {
  const FusedChain& chain = *query.attribute<FusedAttributes>().chain;
  return chain.sum ? sum_needs(chain.summed, chain.sum->axes) : MemoryNeeds();
}

MemoryNeeds sum_like_memory(const MemoryQuery& query) {
  const Shape& shape = query.inputs[0].shape;
  return sum_needs(shape, axes_between(shape, query.outputs[0].shape));
}

MemoryNeeds statistic_memory(const MemoryQuery& query) {
  return {.workspace_bytes =
              fold_bytes(query.inputs[0].shape, query.attribute<StatisticAttributes>().axes,
                         sizeof(StatisticState))};
}

// The rules of recurrent layers have room for both forms where cuDNN suits: which of them it is
// shows only on a device.

MemoryNeeds recurrent_memory(const MemoryQuery& query) {
  const RecurrentSizes size(query.inputs[0], query.attribute<RecurrentAttributes>());
  const RecurrentOperands at(query.attribute<RecurrentAttributes>());
  const bool keep = query.wants(at.reserve), sequence = query.wants(0);
  const std::size_t work =
      largest_bytes(RecurrentForwardProducts(size, keep, sequence).shapes, query.profile);
  MemoryNeeds needs;
  static_cast<void>(for_floating(size.dtype, [&]<class T>(T) -> Status {
    needs.workspace_bytes = RecurrentForwardSpace<T>(size, keep, sequence, work, nullptr).bytes;
    needs.reserve_bytes = RecurrentReserve<T>(size, nullptr).bytes;
    if (!suits_cudnn(size, query.profile)) return {};
    needs.workspace_bytes =
        std::max(needs.workspace_bytes, CudnnForwardSpace<T>(size, keep, nullptr).bytes);
    needs.reserve_bytes = std::max(needs.reserve_bytes, CudnnReserve<T>(size, nullptr).bytes);
    return {};
  }));
  return needs;
}

MemoryNeeds recurrent_backward_memory(const MemoryQuery& query) {
  const RecurrentSizes size(query.inputs[kRecurrentBackwardX],
                            query.attribute<RecurrentAttributes>());
  const bool destroys = query.destroys(kRecurrentBackwardReserve);
  const std::size_t work =
      std::max(largest_bytes(RecurrentBackwardProducts(size).shapes, query.profile),
               column_sum_bytes(size.rows(), size.gates()));
  MemoryNeeds needs;
  static_cast<void>(for_floating(size.dtype, [&]<class T>(T) -> Status {
    needs.workspace_bytes = RecurrentBackwardSpace<T>(size, destroys, work, nullptr).bytes;
    if (suits_cudnn(size, query.profile))
      needs.workspace_bytes =
          std::max(needs.workspace_bytes, CudnnBackwardSpace<T>(size, destroys, nullptr).bytes);
    return {};
  }));
  return needs;
}

}  // namespace ebb::cuda
