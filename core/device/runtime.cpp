#include "ebb/core/device/runtime.h"

#include <new>

#include "ebb/allocator/host_source.h"
#include "ebb/allocator/simulated_source.h"
#include "ebb/core/base/error.h"

namespace ebb {

Runtime::Runtime(std::string name, memory::Profile profile, bool simulated,
                 std::unique_ptr<memory::MemorySource> source, std::size_t capacity_bytes)
    : name_(std::move(name)),
      profile_(profile),
      simulated_(simulated),
      capacity_bytes_(capacity_bytes),
      source_(source.get()),
      allocator_(std::make_unique<memory::CachingAllocator>(std::move(source), profile)) {}

Device Device::cpu() {
  // Never destroyed: tensors with static storage may outlive every other object of the process.
  static Runtime* const runtime = [] {
    auto source = std::make_unique<memory::HostSource>();
    const std::size_t capacity = source->device_memory().total;
    memory::Profile profile;
    profile.page_bytes = source->page_bytes();
    return new Runtime("cpu", profile, false, std::move(source), capacity);
  }();
  return Device(runtime, false);
}

Device Runtime::make_simulated(const memory::Profile& profile, std::size_t capacity_bytes) {
  auto source = std::make_unique<memory::SimulatedSource>(capacity_bytes, profile.page_bytes);
  return Device(
      new Runtime("sim:" + profile.name, profile, true, std::move(source), capacity_bytes), true);
}

Device Device::simulated(std::string_view profile, std::size_t capacity_bytes) {
  if (profile == "cpu") return Runtime::make_simulated(cpu().runtime().profile(), capacity_bytes);
  throw Error("no profile named '" + std::string(profile) + "' to simulate; there is: cpu");
}

bool Runtime::fits() const noexcept {
  return !simulated_ || static_cast<const memory::SimulatedSource*>(source_)->fits();
}

}  // namespace ebb
