#include <cstdio>
#include <cstdlib>
#include <string>

#include "ebb/allocator/host_source.h"
#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/tests/device/deferred_backend.h"
#include "ebb/tests/device/test_device.h"

namespace ebb::tests {
namespace {

DeferredBackend* chosen = nullptr;
bool on_cuda_ = false;

bool is_set(const char* name, bool otherwise = false) {
  const char* value = std::getenv(name);
  return value ? std::string(value) == "1" : otherwise;
}

}  // namespace

void choose_test_device() {
  const char* name = std::getenv("EBB_TEST_DEVICE");
  if (!name || std::string(name) == "cpu") return;
  if (std::string(name) == "cuda") {
    detail::CudaDevice device = detail::open_cuda(0);
    on_cuda_ = true;
    device.profile.name = "cpu";  // tests know it and its twins by this name
    Runtime::replace_cpu({.name = "cpu",
                          .profile = std::move(device.profile),
                          .source = std::move(device.source),
                          .backend = std::move(device.backend),
                          .staging = std::move(device.staging)});
    return;
  }
  if (std::string(name) != "deferred")
    throw Error("EBB_TEST_DEVICE names no device: " + std::string(name) +
                "; there are: cpu, deferred, cuda");
  const auto memory = std::make_shared<DeferredMemory>(memory::HostSource().device_memory().total);
  auto backend = std::make_unique<DeferredBackend>(memory);
  backend->set_at_once(is_set("EBB_DEFERRED_AT_ONCE"));
  backend->set_drops_waits(is_set("EBB_DEFERRED_DROPS_WAITS"));
  chosen = backend.get();
  Runtime::Parts parts;
  parts.name = "cpu";  // tests know it by this name
  parts.profile.page_bytes = memory->page_bytes();
  parts.profile.range_bytes = std::size_t{8} << 30;
  parts.profile.captures_programs = is_set("EBB_DEFERRED_CAPTURES", true);
  parts.source = std::make_unique<DeferredSource>(memory);
  parts.backend = std::move(backend);
  Runtime::replace_cpu(std::move(parts));
}

DeferredBackend* test_backend() noexcept { return chosen; }
bool on_cuda() noexcept { return on_cuda_; }

bool has_small_pages(const char* file, int line) {
  if (Device::cpu().runtime().profile().page_bytes <= (std::size_t{64} << 10)) return true;
  std::printf("skipped: for pages of a few KiB: %s:%d\n", file, line);
  return false;
}

AtOnce::AtOnce() {
  if (chosen) before_ = chosen->set_at_once(true);
}
AtOnce::~AtOnce() {
  if (chosen) chosen->set_at_once(before_);
}

Device simulated_host() { return Runtime::make_simulated({}, std::size_t{64} << 30); }

}  // namespace ebb::tests
