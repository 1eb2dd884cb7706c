#include "ebb/tests/cuda/fixture.h"

#include <dlfcn.h>

#include <cstdlib>
#include <utility>

#include "ebb/core/device/runtime.h"

namespace ebb::tests {

const emulated::Control* emulated_machine() {
  static const emulated::Control* const control = []() -> const emulated::Control* {
    const char* const part = std::getenv("EBB_CUDA_PART");
    void* const library = part ? ::dlopen(part, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (!library) return nullptr;
    using Function = const emulated::Control*();
    auto* const function =
        reinterpret_cast<Function*>(::dlsym(library, "ebb_emulated_control"));  // NOLINT
    return function ? function() : nullptr;
  }();
  return control;
}

Device own_cuda(bool is_slow) {
  ebb::detail::CudaDevice device = ebb::detail::open_cuda(0);
  if (is_slow) device.profile.products_per_us = device.profile.bytes_per_us = 1000;
  return Runtime::make({.name = "cuda",
                        .profile = std::move(device.profile),
                        .source = std::move(device.source),
                        .backend = std::move(device.backend),
                        .staging = std::move(device.staging)});
}

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 17) * 0.25f - 2;
  return values;
}

}  // namespace ebb::tests
