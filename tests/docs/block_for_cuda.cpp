// The kernel for CUDA of docs/extending.md, compiled against the headers of the emulated device.
#include "ebb/custom_operator.h"

namespace ebb {
namespace {
#include "ebb_docs/extending_7.inc"
}  // namespace
[[maybe_unused]] constexpr Kernel kKernel = {double_on_cuda};
}  // namespace ebb
