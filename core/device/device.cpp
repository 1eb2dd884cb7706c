#include "ebb/core/device/device.h"

#include <charconv>

#include "ebb/allocator/statistics.h"
#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"

namespace ebb {

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
      if (bytes) return simulated(rest.substr(0, colon), bytes);
    }
    detail::refuse("Device",
                   "a simulated device is named sim:PROFILE:SIZE, as in sim:cpu:8GiB, not '" +
                       std::string(text) + "'");
  }
  if (text == "cuda") return cuda();
  if (text.starts_with("cuda:")) {
    const std::string_view digits = text.substr(5);
    int number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc() && end == digits.data() + digits.size() && number >= 0)
      return cuda(number);
  }
  detail::refuse("Device", "unknown device '" + std::string(text) +
                               "'; devices are cpu, cuda, cuda:N and sim:PROFILE:SIZE");
}

}  // namespace ebb
