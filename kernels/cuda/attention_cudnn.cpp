#include "ebb/kernels/cuda/cudnn_operations.h"
#include "ebb/kernels/cuda/plans/attention_plan.h"
#include "ebb/kernels/cuda/plans/cudnn_workspace.h"
#include "ebb/kernels/cuda/prepared_plan.h"
#include "ebb/kernels/cuda/runtime/stream.h"

namespace ebb::cuda {

#if EBB_HAS_CUDNN
namespace {

class CudnnAttention final : public PreparedPlan {
 public:
  explicit CudnnAttention(const AttentionAttributes& attributes) noexcept
      : scale_(static_cast<float>(attributes.scale)), causal_(attributes.causal != 0) {}
  CudnnPlan& plan() noexcept { return plan_; }

  std::size_t bytes() const noexcept override { return sizeof(*this); }
  const char* way() const noexcept override { return "by cuDNN"; }
  bool try_run(const KernelContext& context, Status& status) const noexcept override {
    const std::span<const Buffer> in = context.inputs, out = context.outputs;
    const void* const operands[] = {in[0].data,  in[1].data, in[2].data, out[0].data,
                                    out[1].data, &scale_,    &outside_};
    return plan_.try_run(context, {operands, std::size(operands) - (causal_ ? 0 : 1)},
                         "cuDNN could not compute attention", status);
  }

 private:
  // Operands, as aligned as all are.
  alignas(16) const float scale_;
  alignas(16) const float outside_ = -std::numeric_limits<float>::infinity();
  const bool causal_;
  mutable CudnnPlan plan_;  // which keeps the addresses of its last call
};

}  // namespace
#endif

// cuDNN's plan for y; ebb's own kernel where there is none. Gradients are always ebb's: where
// cuDNN's give the same bits every time, they take memory for all the scores, or are slow.
detail::Ref<Prepared> attention_prepare([[maybe_unused]] const MemoryQuery& query) {
#if EBB_HAS_CUDNN
  const AttentionLayout of(query.inputs[0].shape, query.inputs[2].shape);
  const auto& attributes = query.attribute<AttentionAttributes>();
  const DType dtype = query.inputs[0].dtype;
  const cudnnHandle_t handle = suits_cudnn(of, attributes, dtype, query.profile)
                                   ? cuda_stream(query.stream).cudnn_or_none("attention")
                                   : nullptr;
  if (handle != nullptr) {
    auto attention = detail::make_ref<CudnnAttention>(attributes);
    if (attention->plan().choose(describe_attention(of, dtype, attributes.causal != 0),
                                 cudnn_limit_of(query.workspace_bytes), {handle}))
      return attention;
  }
#endif
  return detail::make_ref<PreparedPlan>();
}

}  // namespace ebb::cuda
