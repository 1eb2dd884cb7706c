#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/statistics.h"
#include "ebb/kernels/cuda/plans/reduce_plan.h"
#include "ebb/kernels/cuda/plans/statistic_state.h"

namespace ebb::cuda {

MemoryNeeds statistic_memory(const MemoryQuery& query) {
  return {.workspace_bytes =
              fold_bytes(query.inputs[0].shape, query.attribute<StatisticAttributes>().axes,
                         sizeof(StatisticState))};
}

}  // namespace ebb::cuda
