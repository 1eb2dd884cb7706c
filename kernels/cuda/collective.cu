// Collectives of a world of one rank. Between GPUs they are NCCL's, which is not here yet.
#include "ebb/core/kernels/collective.h"

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/kernels/cuda/fill.h"
#include "ebb/kernels/cuda/stream.h"
#include "ebb/optim/kernels/accumulator.h"

namespace ebb::cuda {
namespace {

Status require_alone(const KernelContext& context) noexcept {
  if (context.attribute<CollectiveAttributes>().world->size() == 1) return {};
  return Status::refuse("sends tensors of the CPU only; move them with Tensor::to");
}

}  // namespace

Status copy_alone(const KernelContext& context) {
  EBB_TRY(require_alone(context));
  const Buffer &x = context.inputs[0], &y = context.outputs[0];
  return x.data == y.data || y.elements() == 0 ? Status{} : copy(context);
}

Status total_alone(const KernelContext& context) { return require_alone(context); }

Status add_alone(const KernelContext& context) {
  EBB_TRY(require_alone(context));
  return accumulate(context);
}

// As they are at the launch: a capture would repeat them for good.
Status rows_in_use(const KernelContext& context) {
  std::int64_t rows = 1;
  EBB_TRY(context.attribute<CollectiveAttributes>().world->rows(rows));
  return fill_with(stream_of(context), context.outputs[0].as<std::int64_t>(), rows, 1);
}

}  // namespace ebb::cuda
