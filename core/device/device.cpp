// Handles of devices: CUDA devices of this machine, and simulated devices of any profile.
#include "ebb/core/device/device.h"

#include <charconv>
#include <map>
#include <mutex>

#include "ebb/allocator/cuda_profile.h"
#include "ebb/allocator/statistics.h"
#include "ebb/core/base/error.h"
#include "ebb/core/base/log.h"
#include "ebb/core/device/runtime.h"

namespace ebb {

namespace {

// "compute capability 9.0, 132 multiprocessors, memory in pages of 2 MiB, with cuDNN".
std::string describe(const memory::Profile& profile) {
  return "compute capability " + std::to_string(profile.compute_capability / 10) + "." +
         std::to_string(profile.compute_capability % 10) + ", " +
         std::to_string(profile.multiprocessors) + " multiprocessors, memory " +
         (!profile.cuts ? "for each block"
                        : (profile.grows ? "in pages of " : "in segments of whole ") +
                              memory::format_bytes(profile.page_bytes)) +
         (profile.has_cudnn ? ", with cuDNN" : ", without cuDNN") +
         (profile.fuses ? "" : ", without NVRTC: pointwise operators run one by one");
}

// A kind of GPU that can be simulated: the properties that its memory rules depend on.
struct GpuKind {
  const char* name;
  int compute_capability;
  int multiprocessors;
};

// From NVIDIA's data sheets; the SXM form if there are several.
constexpr GpuKind kGpuKinds[] = {
    {"t4", 75, 40}, {"a100", 80, 108}, {"l4", 89, 58}, {"h100", 90, 132}, {"h200", 90, 132}};

memory::Profile profile_of(const GpuKind& kind) {
  memory::Profile profile = memory::cuda_profile(kind.compute_capability, kind.multiprocessors);
  profile.name = kind.name;
  profile.has_cudnn = true;
  profile.has_cudnn_bf16 = kind.compute_capability >= 80;
  return profile;
}

}  // namespace

Runtime& Runtime::cuda(int number) {
  // Never destroyed, like the CPU's. A device that failed to open is tried again at the next call.
  static std::mutex& mutex = *new std::mutex;
  static auto& opened = *new std::map<int, Runtime*>;
  const std::lock_guard lock(mutex);
  if (const auto found = opened.find(number); found != opened.end()) return *found->second;
  detail::CudaDevice device = detail::open_cuda(number);
  const std::string name = number ? "cuda:" + std::to_string(number) : "cuda";
  detail::log_debug(name + ": " + describe(device.profile));
  Parts parts{.name = name,
              .profile = std::move(device.profile),
              .source = std::move(device.source),
              .backend = std::move(device.backend),
              .staging = std::move(device.staging)};
  return *opened.emplace(number, new Runtime(std::move(parts), false)).first->second;
}

Device Device::cuda(int number, CallSite site) {
  const detail::CallSiteScope scope(site);
  try {
    return Device(&Runtime::cuda(number), false);
  } catch (const Error& error) {  // its message has no user line yet
    throw Error(error.what() + detail::at(detail::entry()));
  }
}

Device Device::best() {
  static const bool is_expected = detail::count_cuda() != 0;
  if (!is_expected) return cpu();
  try {
    return Device(&Runtime::cuda(0), false);
  } catch (const Error& error) {
    // Logged once; the program goes on with the CPU.
    static const bool said = [&] {
      detail::log_warning(std::string("the CPU is used instead of CUDA: ") + error.what());
      return true;
    }();
    static_cast<void>(said);
    return cpu();
  }
}

Device Device::simulated(std::string_view profile, std::size_t capacity_bytes, CallSite site) {
  const detail::CallSiteScope scope(site);
  if (profile == "cpu") return Runtime::make_simulated(cpu().runtime().profile(), capacity_bytes);
  if (profile == "cuda" || profile.starts_with("cuda:"))
    return Runtime::make_simulated(parse(profile).runtime().profile(), capacity_bytes);
  std::string known = "cpu, cuda";
  for (const GpuKind& kind : kGpuKinds) {
    if (profile == kind.name) return Runtime::make_simulated(profile_of(kind), capacity_bytes);
    known += std::string(", ") + kind.name;
  }
  detail::refuse(
      "Device", "no profile named '" + std::string(profile) + "' to simulate; there are: " + known);
}

void Device::retain() const noexcept { runtime_->retain(); }

void Device::release() const noexcept {
  if (runtime_->Counted::release()) delete runtime_;
}

bool Device::is_simulated() const noexcept { return runtime_->is_simulated(); }

Device Device::twin() const { return Runtime::make_twin(*runtime_); }

const std::string& Device::name() const noexcept { return runtime_->name(); }

Device Device::parse(std::string_view text, CallSite site) {
  const detail::CallSiteScope scope(site);
  if (text == "cpu") return cpu();
  if (text.starts_with("sim:")) {
    const std::string_view rest = text.substr(4);
    const std::size_t colon = rest.rfind(':');  // sim:cuda:1:8GiB
    if (colon != std::string_view::npos) {
      const std::size_t bytes = memory::parse_bytes(rest.substr(colon + 1));
      if (bytes) return simulated(rest.substr(0, colon), bytes, site);
    }
    detail::refuse("Device",
                   "a simulated device is named sim:PROFILE:SIZE, as in sim:cpu:8GiB, not '" +
                       std::string(text) + "'");
  }
  if (text == "cuda") return cuda(0, site);
  if (text.starts_with("cuda:")) {
    const std::string_view digits = text.substr(5);
    int number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc() && end == digits.data() + digits.size() && number >= 0)
      return cuda(number, site);
  }
  detail::refuse("Device", "unknown device '" + std::string(text) +
                               "'; devices are cpu, cuda, cuda:N and sim:PROFILE:SIZE");
}

}  // namespace ebb
