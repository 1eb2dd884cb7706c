#include "ebb/core/tensor/op_def.h"

#include "ebb/core/base/error.h"
#include "ebb/core/base/log.h"
#include "ebb/core/tensor/kernel_of.h"

namespace ebb {

void Inference::fail(const std::string& text) const {
  std::string all = text;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    all += (i                    ? ", "
            : inputs.size() == 1 ? "; the input is "
                                 : "; inputs are ") +
           inputs[i].to_string();
  detail::refuse<ShapeError>(op.name, all, site);
}

void detail::throw_no_kernel(const OpDef& op, const Runtime& runtime, CallSite site) {
  const bool is_uncompiled = runtime.profile().kernels == memory::Kernels::cuda && op.cuda.memory;
  refuse(op.name,
         "has no kernel for device " + runtime.name() +
             (is_uncompiled ? ": nvcc has not compiled its file (ebb_add_custom_operators)" : "") +
             (op.cpu.run ? "; on cpu, where Tensor::to moves its inputs, it has one" : ""),
         site);
}

detail::Ref<Prepared> detail::prepare(const OpDef& op, const DeviceKernel& kernel,
                                      const MemoryQuery& query) {
  Ref<Prepared> prepared = kernel.prepare(query);
  if (prepared && prepared->way() && logs_debug()) {
    std::string text;
    for (const Spec& input : query.inputs) text += (text.empty() ? "" : ", ") + input.to_string();
    log_debug("[" + std::string(op.name) + "] of " + text + ": " + prepared->way());
  }
  return prepared;
}

void detail::require_memory_rule(const OpDef& op, const DeviceKernel& kernel, CallSite site) {
  if (kernel.memory) return;
  refuse(op.name, "has an output of open size, but no memory rule that tells its reserve_bytes",
         site);
}

void detail::require_shape_rule(const OpDef& op, CallSite site) {
  if (!op.infer) refuse(op.name, "has no shape rule", site);
}

}  // namespace ebb
