#include <cstdint>

#include "ebb/kernels/cuda/conv_cudnn_plan.h"
#include "ebb/kernels/cuda/conv_prepared.h"
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
class CudnnConv final : public PreparedConv {
 public:
  explicit CudnnConv(ConvPass pass) noexcept : pass_(pass) {}
  CudnnConvPlan& plan() noexcept { return plan_; }

  std::size_t bytes() const noexcept override { return sizeof(*this); }
  const char* way() const noexcept override { return "by cuDNN"; }
  bool try_run(const KernelContext& context, Status& status) const noexcept override {
    const auto [x, weights, y] = conv_operands(pass_, context);
    std::uintptr_t together = 0;
    for (const void* data : {x.data, weights.data, y.data})
      together |= reinterpret_cast<std::uintptr_t>(data);
    const char* problem = nullptr;
    const cudnnHandle_t handle = cuda_stream(context.stream).cudnn(problem);
    if (together % 16 != 0 || handle == nullptr) return false;
    if (context.attribute<ConvAttributes>().bias != 0)
      if (status = spread(context, context.inputs[2], context.outputs[0]); !status.ok())
        return true;
    Carver carver(context.workspace);
    std::byte* const workspace = carver.take_bytes(plan_.workspace_bytes(), kConvAlignment);
    const cudnnStatus_t answer = plan_.execute(handle, x.data, weights.data, y.data, workspace);
    if (answer >= CUDNN_STATUS_NOT_SUPPORTED && answer < CUDNN_STATUS_INTERNAL_ERROR) return false;
    status = answer == CUDNN_STATUS_SUCCESS
                 ? Status()
                 : Status::fail("cuDNN could not compute a convolution", static_cast<int>(answer));
    return true;
  }

 private:
  const ConvPass pass_;
  mutable CudnnConvPlan plan_;  // which keeps the addresses of its last call
};

}  // namespace

detail::Ref<Prepared> prepare_conv(ConvPass pass, const MemoryQuery& query) {
  const ConvLayout of = conv_layout(pass, query);
  const DType dtype = query.outputs[0].dtype;
  const cudnnHandle_t handle = suits_cudnn(of, dtype, query.profile)
                                   ? cuda_stream(query.stream).cudnn_or_none("conv2d")
                                   : nullptr;
  constexpr std::size_t kRoom = kConvAlignment - 64;  // to align the workspace
  if (handle != nullptr && query.workspace_bytes > kRoom) {
    auto conv = detail::make_ref<CudnnConv>(pass);
    const bool tf32 =
        dtype == DType::f32 && query.profile->compute_capability >= 80 && is_tf32_allowed();
    const bool adds = query.attribute<ConvAttributes>().bias != 0;
    if (conv->plan().choose({pass, of, dtype, adds, tf32}, query.workspace_bytes - kRoom, handle))
      return conv;
  }
  return detail::make_ref<PreparedConv>();
}

#else

detail::Ref<Prepared> prepare_conv(ConvPass, const MemoryQuery&) {
  return detail::make_ref<PreparedConv>();
}

#endif

}  // namespace ebb::cuda
