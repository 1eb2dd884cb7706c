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
  CudnnAttention(const AttentionAttributes& attributes, bool keeps_lse) noexcept
      : scale_(static_cast<float>(attributes.scale)),
        causal_(attributes.causal != 0),
        keeps_lse_(keeps_lse) {}
  CudnnPlan& plan() noexcept { return plan_; }

  std::size_t bytes() const noexcept override { return sizeof(*this); }
  const char* way() const noexcept override { return "by cuDNN"; }
  bool try_run(const KernelContext& context, Status& status) const noexcept override {
    const std::span<const Buffer> in = context.inputs, out = context.outputs;
    const void* operands[7] = {in[0].data, in[1].data, in[2].data, out[0].data, &scale_};
    std::size_t count = 5;
    if (causal_) operands[count++] = &outside_;
    if (keeps_lse_) operands[count++] = out[1].data;
    return plan_.try_run(context, {operands, count}, "cuDNN could not compute attention", status);
  }

 private:
  // Operands, as aligned as all are.
  alignas(16) const float scale_;
  alignas(16) const float outside_ = -std::numeric_limits<float>::infinity();
  const bool causal_, keeps_lse_;
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
    auto attention = detail::make_ref<CudnnAttention>(attributes, query.wants(1));
    if (attention->plan().choose(
            describe_attention(of, dtype, attributes.causal != 0, query.wants(1)),
            cudnn_limit_of(query.workspace_bytes), {handle}))
      return attention;
  }
#endif
  return detail::make_ref<PreparedPlan>();
}

}  // namespace ebb::cuda
