#include "ebb/core/ops/fused.h"

#include "ebb/core/kernels/fused.h"

namespace ebb {

constinit const OpDef fused_op{.name = "fused",
                               .infer = nullptr,
                               .takes_over = kAll,
                               .cpu = {cpu::fused},
                               .cuda = {cuda::fused, cuda::fused_memory, cuda::fused_prepare}};

}  // namespace ebb
