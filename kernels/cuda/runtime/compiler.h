// Kernels compiled while a program runs.
#pragma once
#include <memory>
#include <string>

namespace ebb::cuda {

// The kernel `fused` of a text (plans/fused_text.h), as cudaLaunchKernelExC() takes it. The kernels
// asked for last are kept. Throws Error with the
// compiler's words. Callable from any thread.
std::shared_ptr<const void> compiled(const std::string& text, int compute_capability);

}  // namespace ebb::cuda
