#include "ebb/kernels/cuda/cudnn_operations.h"
#include "ebb/kernels/cuda/plans/cudnn_workspace.h"
#include "ebb/kernels/cuda/prepared_plan.h"
#include "ebb/kernels/cuda/runtime/stream.h"
#include "ebb/kernels/cuda/strided_copy.h"

namespace ebb::cuda {

#if EBB_HAS_CUDNN
namespace {

// y[n, c, i] = bias[c]
Status spread(const KernelContext& context, const Buffer& bias, const Buffer& y) noexcept {
  const Shape& shape = y.spec.shape;
  const std::size_t item = size_of(y.spec.dtype);
  StridedWalk walk(item);
  walk.add(shape.dim(2) * shape.dim(3), 0);
  walk.add(shape.dim(1), static_cast<std::int64_t>(item));
  walk.add(shape.dim(0), 0);
  return strided_copy(stream_of(context), bias.data, y.data, walk);
}

// A bias is in the result's memory before the convolution adds to it, so that the sum is rounded
// once.
class CudnnConv final : public PreparedPlan {
 public:
  explicit CudnnConv(ConvPass pass) noexcept : pass_(pass) {}
  CudnnPlan& plan() noexcept { return plan_; }

  std::size_t bytes() const noexcept override { return sizeof(*this); }
  const char* way() const noexcept override { return "by cuDNN"; }
  bool try_run(const KernelContext& context, Status& status) const noexcept override {
    const auto [x, weights, y] = conv_operands(pass_, context);
    if (context.attribute<ConvAttributes>().bias != 0)
      if (status = spread(context, context.inputs[2], context.outputs[0]); !status.ok())
        return true;
    const void* const operands[] = {x.data, weights.data, y.data};
    return plan_.try_run(context, operands, "cuDNN could not compute a convolution", status);
  }

 private:
  const ConvPass pass_;
  mutable CudnnPlan plan_;  // which keeps the addresses of its last call
};

}  // namespace

detail::Ref<Prepared> prepare_conv(ConvPass pass, const MemoryQuery& query) {
  const ConvLayout of = conv_layout(pass, query);
  const DType dtype = query.outputs[0].dtype;
  const cudnnHandle_t handle = suits_cudnn(of, dtype, query.profile)
                                   ? cuda_stream(query.stream).cudnn_or_none("conv2d")
                                   : nullptr;
  if (handle != nullptr) {
    auto conv = detail::make_ref<CudnnConv>(pass);
    const bool tf32 =
        dtype == DType::f32 && query.profile->compute_capability >= 80 && is_tf32_allowed();
    const bool adds = query.attribute<ConvAttributes>().bias != 0;
    if (conv->plan().choose(describe({pass, of, dtype, adds, tf32}),
                            cudnn_limit_of(query.workspace_bytes), {handle}))
      return conv;
  }
  return detail::make_ref<PreparedPlan>();
}

#else

detail::Ref<Prepared> prepare_conv(ConvPass, const MemoryQuery&) {
  return detail::make_ref<PreparedPlan>();
}

#endif

}  // namespace ebb::cuda
