#include "ebb/core/device/host_bytes.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"

namespace ebb {

namespace {

// Requests up to this size are not checked: the margin in the CPU's capacity covers them.
constexpr std::size_t kAlwaysThere = std::size_t{1} << 20;

constinit std::atomic<std::size_t> held_bytes{0};

// A limit bounds only the device's reserved bytes, so it does not count here.
std::size_t room(const memory::CachingAllocator& cpu) noexcept {
  const std::size_t capacity = cpu.capacity_bytes();
  return capacity - std::min(capacity, cpu.reserved_bytes());
}

[[noreturn]] void refuse(const memory::CachingAllocator& cpu, const memory::Request& request,
                         const std::string& hint) {
  constexpr std::size_t kHolders = 10;
  OutOfMemory::Facts facts;
  facts.request = request;
  facts.reserve_bytes = request.bytes;
  facts.device = cpu.profile().name;
  facts.stats = cpu.stats();
  facts.fragmentation = cpu.fragmentation();
  facts.room_bytes = std::min(room(cpu), request.bytes - 1);
  facts.holders = cpu.holders(kHolders);
  if (!hint.empty()) facts.hints.push_back(hint);
  throw OutOfMemory(std::move(facts));
}

}  // namespace

HostBytes::HostBytes(std::size_t bytes, const char* by, const char* purpose,
                     const std::string& hint) {
  if (bytes == 0) return;
  memory::CachingAllocator& cpu = Device::cpu().runtime().allocator();
  const auto fits = [&] { return bytes <= kAlwaysThere || bytes <= room(cpu); };
  if (!fits()) cpu.release_cached();
  if (fits()) data_ = {new (std::nothrow) std::byte[bytes], Free{bytes}};
  if (!data_) refuse(cpu, {.bytes = bytes, .tag = {by}, .purpose = purpose}, hint);
  held_bytes += bytes;
}

std::size_t HostBytes::held() noexcept { return held_bytes; }

void HostBytes::Free::operator()(std::byte* data) const noexcept {
  delete[] data;
  held_bytes -= bytes;
}

}  // namespace ebb
