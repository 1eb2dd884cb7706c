#include "ebb/core/kernels/device_kernel.h"
#include "ebb/kernels/cuda/plans/lstm_cudnn_layout.h"

// Has room for both forms where cuDNN suits: which of them it is shows only on a device.
namespace ebb::cuda {

MemoryNeeds recurrent_memory(const MemoryQuery& query) {
  const RecurrentSizes size(query.inputs[0], query.attribute<RecurrentAttributes>());
  const RecurrentOperands at(query.attribute<RecurrentAttributes>());
  const bool keep = query.wants(at.reserve), sequence = query.wants(0);
  const std::size_t work =
      largest_bytes(RecurrentForwardProducts(size, keep, sequence).shapes, query.profile);
  MemoryNeeds needs;
  static_cast<void>(for_floating(size.dtype, [&](auto type) -> Status {
    using T = decltype(type);
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
  static_cast<void>(for_floating(size.dtype, [&](auto type) -> Status {
    using T = decltype(type);
    needs.workspace_bytes = RecurrentBackwardSpace<T>(size, destroys, work, nullptr).bytes;
    if (suits_cudnn(size, query.profile))
      needs.workspace_bytes =
          std::max(needs.workspace_bytes, CudnnBackwardSpace<T>(size, destroys, nullptr).bytes);
    return {};
  }));
  return needs;
}

}  // namespace ebb::cuda
