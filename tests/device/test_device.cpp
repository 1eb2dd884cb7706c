#include "ebb/tests/device/test_device.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/tests/core/second_device.h"

namespace ebb::tests {
namespace {

bool on_cuda_ = false;

Runtime::Parts cuda_parts(const char* name) {
  detail::CudaDevice device = detail::open_cuda(0);
  return {.name = name,
          .profile = std::move(device.profile),
          .source = std::move(device.source),
          .backend = std::move(device.backend),
          .staging = std::move(device.staging)};
}

}  // namespace

void choose_test_device() {
  const char* name = std::getenv("EBB_TEST_DEVICE");
  if (!name || std::string(name) == "cpu") return;
  if (std::string(name) != "cuda")
    throw Error("EBB_TEST_DEVICE names no device: " + std::string(name) + "; there are: cpu, cuda");
  Runtime::Parts parts = cuda_parts("cpu");
  parts.profile.name = "cpu";  // tests know it and its twins by this name
  Runtime::replace_cpu(std::move(parts));
  on_cuda_ = true;
}

bool on_cuda() noexcept { return on_cuda_; }
bool on_emulated_cuda() noexcept { return on_cuda_ && std::getenv("EBB_CUDA_PART"); }

Device own_test_device(bool has_large_blocks) {
  if (!on_cuda_) return make_second_device({.has_large_blocks = has_large_blocks});
  Runtime::Parts parts = cuda_parts("own");
  if (has_large_blocks) parts.profile.rounding = parts.profile.page_bytes;
  return Runtime::make(std::move(parts));
}

bool has_small_pages(const char* file, int line) {
  if (Device::cpu().runtime().profile().page_bytes <= (std::size_t{64} << 10)) return true;
  std::printf("skipped: for pages of a few KiB: %s:%d\n", file, line);
  return false;
}

Device simulated_host() { return Runtime::make_simulated({}, std::size_t{64} << 30); }

}  // namespace ebb::tests
