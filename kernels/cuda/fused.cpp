#include "ebb/core/kernels/fused.h"

#include <algorithm>

#include "ebb/allocator/profile.h"
#include "ebb/core/kernels/device_kernel.h"
#include "ebb/kernels/cuda/fused_kernel.h"
#include "ebb/kernels/cuda/plans/fused_text.h"
#include "ebb/kernels/cuda/plans/reduce_plan.h"
#include "ebb/kernels/cuda/runtime/compiler.h"
#include "ebb/kernels/cuda/stream.h"

namespace ebb::cuda {

// Merges the parts of sums of f32 or f64 (kernels/cuda/reduce.cu).
Status add_parts(cudaStream_t stream, const SumPlan& plan, const double* parts, double divisor,
                 const Buffer& out) noexcept;

namespace {

static_assert(FusedChain::kMostValues <= std::size(FusedArguments().inputs) &&
              2 * FusedChain::kMostValues <= std::size(FusedArguments().numbers));

class PreparedChain final : public Prepared {
 public:
  PreparedChain(std::shared_ptr<const void> kernel, std::span<const double> numbers)
      : kernel_(std::move(kernel)) {
    std::ranges::copy(numbers, arguments_.numbers);
  }
  std::size_t bytes() const noexcept override { return sizeof(*this); }
  const char* way() const noexcept override { return "as one kernel, by NVRTC"; }

  const void* kernel() const noexcept { return kernel_.get(); }
  // Only what the launch adds is missing.
  const FusedArguments& arguments() const noexcept { return arguments_; }

 private:
  const std::shared_ptr<const void> kernel_;
  FusedArguments arguments_ = {};
};

// Whether packs of four elements can be read there.
bool takes_packs(const Buffer& buffer) noexcept {
  const std::size_t bytes = std::min<std::size_t>(kFusedLanes * size_of(buffer.spec.dtype), 16);
  return reinterpret_cast<std::uintptr_t>(buffer.data) % bytes == 0;
}

}  // namespace

Status fused(const KernelContext& context) {
  const auto& prepared = *static_cast<const PreparedChain*>(context.prepared);
  const FusedChain& chain = *context.attribute<FusedAttributes>().chain;
  const Buffer& out = context.outputs[0];
  FusedArguments arguments = prepared.arguments();
  arguments.count = out.elements();
  if (arguments.count == 0) return {};
  arguments.out = out.data;
  arguments.takes_packs = chain.sum || takes_packs(out);
  for (std::size_t i = 0; i < context.inputs.size(); ++i) {
    const Buffer& input = context.inputs[i];
    arguments.inputs[i] = input.data;
    if (input.elements() > 1 && !takes_packs(input)) arguments.takes_packs = false;
  }
  constexpr std::int64_t kMostBlocks = 1 << 14, kOfBlock = kRowThreads * kFusedLanes;
  std::int64_t blocks = (arguments.count + kOfBlock - 1) / kOfBlock;
  SumPlan& plan = arguments.plan;
  if (chain.sum) {
    plan = plan_sum(MergedAxes(chain.summed, chain.sum->axes));
    blocks = plan.turns() * plan.parts;
    arguments.divisor = chain.sum->divisor(chain.summed.elements(), plan.results);
    arguments.parts = static_cast<double*>(context.workspace);
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(std::min(blocks, kMostBlocks)));
  config.blockDim = dim3(kRowThreads);
  config.stream = stream_of(context);
  void* parameters[] = {&arguments};
  Status status = answer(cudaLaunchKernelExC(&config, prepared.kernel(), parameters),
                         "the kernel could not be launched");
  status.refused = !status.ok();
  if (plan.parts == 1 || !status.ok()) return status;
  return add_parts(config.stream, plan, arguments.parts, arguments.divisor, out);
}

detail::Ref<Prepared> compile_fused(const FusedQuery& asked) {
  auto kernel = compiled(asked.source.text, asked.query.profile->compute_capability);
  return detail::Ref<Prepared>(new PreparedChain(std::move(kernel), asked.source.numbers));
}

}  // namespace ebb::cuda
