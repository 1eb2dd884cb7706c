#include "ebb/allocator/cuda/device_memory.h"

#include <cuda.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "ebb/allocator/cuda/current_device.h"
#include "ebb/allocator/cuda/driver.h"

namespace ebb::memory::cuda {
namespace {

// Base of the sources of device memory. Other processes and this one's own libraries use the device
// too. So the capacity is the held memory plus the free memory that the device reports at the
// moment.
class DeviceSource : public MemorySource {
 public:
  std::size_t page_bytes() const noexcept final { return page_bytes_; }
  std::size_t capacity_bytes() const noexcept final {
    const std::size_t free = device_memory().free;
    return held_bytes_ + free / page_bytes_ * page_bytes_;
  }
  // Zeros if the device is lost.
  DeviceMemory device_memory() const noexcept final {
    DeviceMemory memory;
    const bool is_known = enter() && succeeded(cudaMemGetInfo(&memory.free, &memory.total));
    return is_known ? memory : DeviceMemory{};
  }

 protected:
  DeviceSource(int device, std::size_t page_bytes, std::shared_ptr<LiveStreams> streams) noexcept
      : device_(device), page_bytes_(page_bytes), streams_(std::move(streams)) {}

  // Makes the device current for the calling thread; false if that fails.
  bool enter() const noexcept { return make_current(device_) == cudaSuccess; }
  // As enter(), then waits until all work queued on the device is done. False if the device is
  // lost.
  bool enter_at_rest() const noexcept { return enter() && streams_->wait_for_all() == cudaSuccess; }
  void count_taken(std::size_t bytes) noexcept { held_bytes_ += bytes; }
  void count_given_back(std::size_t bytes) noexcept { held_bytes_ -= bytes; }

 private:
  const int device_;
  const std::size_t page_bytes_;
  const std::shared_ptr<LiveStreams> streams_;
  std::atomic<std::size_t> held_bytes_ = 0;
};

// Device memory from cudaMalloc. For profiles without growth: there are no addresses to reserve.
class PlainSource final : public DeviceSource {
 public:
  PlainSource(int device, std::size_t page_bytes, std::shared_ptr<LiveStreams> streams) noexcept
      : DeviceSource(device, page_bytes, std::move(streams)) {}

  void* map(std::size_t bytes) noexcept override {
    void* base = nullptr;
    if (!enter() || !succeeded(cudaMalloc(&base, bytes))) return nullptr;
    count_taken(bytes);
    return base;
  }
  // Waits explicitly: cudaFree waits too on every driver so far, but does not promise it.
  bool unmap(void* base, std::size_t bytes) noexcept override {
    if (!enter_at_rest() || !succeeded(cudaFree(base))) return false;
    count_given_back(bytes);
    return true;
  }
};

// Page-locked host memory. For profiles without growth. Requests that the host refuses to lock are
// refused. Nobody can say beforehand how much it locks, so the capacity is all of the host's
// memory.
class PinnedSource final : public MemorySource {
 public:
  PinnedSource(int device, std::shared_ptr<LiveStreams> streams) noexcept
      : device_(device), page_bytes_(ask_system(_SC_PAGESIZE)), streams_(std::move(streams)) {}

  void* map(std::size_t bytes) noexcept override {
    void* base = nullptr;
    const bool is_here = make_current(device_) == cudaSuccess &&
                         succeeded(cudaHostAlloc(&base, bytes, cudaHostAllocPortable));
    return is_here ? base : nullptr;
  }
  bool unmap(void* base, std::size_t /*bytes*/) noexcept override {
    return make_current(device_) == cudaSuccess && streams_->wait_for_all() == cudaSuccess &&
           succeeded(cudaFreeHost(base));
  }
  std::size_t page_bytes() const noexcept override { return page_bytes_; }
  std::size_t capacity_bytes() const noexcept override { return device_memory().total; }
  DeviceMemory device_memory() const noexcept override {
    return {.total = ask_system(_SC_PHYS_PAGES) * page_bytes_,
            .free = ask_system(_SC_AVPHYS_PAGES) * page_bytes_};
  }

 private:
  static std::size_t ask_system(int what) noexcept {
    const long answer = ::sysconf(what);
    return answer > 0 ? static_cast<std::size_t>(answer) : 0;
  }

  const int device_;
  const std::size_t page_bytes_;
  const std::shared_ptr<LiveStreams> streams_;
};

CUdeviceptr address(const void* at) noexcept { return reinterpret_cast<CUdeviceptr>(at); }

// Device memory behind fixed addresses, by CUDA's virtual memory. An allocation is mapped and
// unmapped as a whole, so each page is an allocation of its own and any page can go back.
class VirtualSource final : public DeviceSource {
 public:
  // Null if the driver or the device does not offer it. The device must be current.
  static std::unique_ptr<VirtualSource> make(int device, std::shared_ptr<LiveStreams> streams);

  void* reserve(std::size_t bytes) noexcept override;
  void unreserve(void* base, std::size_t bytes) noexcept override;
  bool commit(void* at, std::size_t bytes) noexcept override;
  bool decommit(void* at, std::size_t bytes) noexcept override;

 private:
  VirtualSource(const Driver& driver, int device, const CUmemAllocationProp& kind,
                std::size_t page_bytes, std::shared_ptr<LiveStreams> streams) noexcept
      : DeviceSource(device, page_bytes, std::move(streams)), driver_(driver), kind_(kind) {}
  bool map_page(CUdeviceptr at) noexcept;
  bool is_too_much(std::size_t bytes) const noexcept;

  const Driver& driver_;
  const CUmemAllocationProp kind_;  // kind of memory to allocate
};

std::unique_ptr<VirtualSource> VirtualSource::make(int device,
                                                   std::shared_ptr<LiveStreams> streams) {
  const Driver* const calls = driver();
  CUdevice handle = 0;
  int is_offered = 0;
  if (!calls || calls->cuDeviceGet(&handle, device) != CUDA_SUCCESS ||
      calls->cuDeviceGetAttribute(&is_offered,
                                  CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                                  handle) != CUDA_SUCCESS ||
      !is_offered)
    return nullptr;
  CUmemAllocationProp kind = {};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  kind.location.id = handle;
  std::size_t page_bytes = 0;
  if (calls->cuMemGetAllocationGranularity(&page_bytes, &kind, CU_MEM_ALLOC_GRANULARITY_MINIMUM) !=
          CUDA_SUCCESS ||
      !std::has_single_bit(page_bytes))
    return nullptr;
  return std::unique_ptr<VirtualSource>(
      new VirtualSource(*calls, device, kind, page_bytes, std::move(streams)));
}

void* VirtualSource::reserve(std::size_t bytes) noexcept {
  CUdeviceptr base = 0;
  if (!enter() || driver_.cuMemAddressReserve(&base, bytes, page_bytes(), 0, 0) != CUDA_SUCCESS)
    return nullptr;
  return reinterpret_cast<void*>(base);
}

void VirtualSource::unreserve(void* base, std::size_t bytes) noexcept {
  if (enter()) driver_.cuMemAddressFree(address(base), bytes);
}

// Releases the handle at once. The mapping keeps the memory, so unmapping needs no handle.
bool VirtualSource::map_page(CUdeviceptr at) noexcept {
  CUmemGenericAllocationHandle memory = 0;
  if (driver_.cuMemCreate(&memory, page_bytes(), &kind_, 0) != CUDA_SUCCESS) return false;
  const bool is_mapped = driver_.cuMemMap(at, page_bytes(), 0, memory, 0) == CUDA_SUCCESS;
  driver_.cuMemRelease(memory);
  return is_mapped;
}

// Refuses early. Committing until the device refuses would take a call for each page, and take the
// memory from others meanwhile. A few pages are tried without asking.
bool VirtualSource::is_too_much(std::size_t bytes) const noexcept {
  constexpr std::size_t kTried = 16;
  return bytes / page_bytes() > kTried && bytes > device_memory().free;
}

bool VirtualSource::commit(void* at, std::size_t bytes) noexcept {
  if (!enter() || is_too_much(bytes)) return false;
  const CUdeviceptr begin = address(at);
  std::size_t mapped = 0;
  while (mapped < bytes && map_page(begin + mapped)) mapped += page_bytes();
  CUmemAccessDesc access = {};
  access.location = kind_.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (mapped == bytes && driver_.cuMemSetAccess(begin, bytes, &access, 1) == CUDA_SUCCESS) {
    count_taken(bytes);
    return true;
  }
  if (mapped > 0) driver_.cuMemUnmap(begin, mapped);
  return false;
}

bool VirtualSource::decommit(void* at, std::size_t bytes) noexcept {
  if (!enter_at_rest() || driver_.cuMemUnmap(address(at), bytes) != CUDA_SUCCESS) return false;
  count_given_back(bytes);
  return true;
}

// cudaMalloc takes this much from the device at a time.
constexpr std::size_t kPlainPageBytes = std::size_t{2} << 20;

void use_pages(Profile& profile, std::size_t page_bytes) noexcept {
  profile.page_bytes = page_bytes;
  for (std::size_t* each : {&profile.growth_step, &profile.range_bytes, &profile.small_segment,
                            &profile.medium_segment, &profile.large_multiple})
    *each = profile.in_pages(*each);
}

// Gives each block a segment of its own, whatever its size.
void use_blocks(Profile& profile) noexcept {
  profile.page_bytes = profile.small_segment = profile.medium_segment = profile.large_multiple =
      profile.rounding;
  profile.small_request = profile.medium_request = 0;
  profile.cuts = false;
}

}  // namespace

std::unique_ptr<MemorySource> make_device_source(int device, std::shared_ptr<LiveStreams> streams,
                                                 Profile& profile, std::string& problem) {
  const char* const chosen = std::getenv("EBB_CUDA_MEMORY");
  const std::string_view kind = chosen ? chosen : "";
  if (kind.empty() || kind == "virtual") {
    if (auto source = VirtualSource::make(device, streams)) {
      use_pages(profile, source->page_bytes());
      return source;
    }
    if (!kind.empty()) {
      problem = "EBB_CUDA_MEMORY=virtual, which this device or its driver does not offer";
      return nullptr;
    }
  } else if (kind != "plain" && kind != "block") {
    problem = "EBB_CUDA_MEMORY is '" + std::string(kind) + "'; there is: virtual, plain, block";
    return nullptr;
  }
  profile.grows = false;
  use_pages(profile, kPlainPageBytes);
  if (kind == "block") use_blocks(profile);
  return std::make_unique<PlainSource>(device, profile.page_bytes, std::move(streams));
}

std::unique_ptr<MemorySource> make_pinned_source(int device, std::shared_ptr<LiveStreams> streams) {
  return std::make_unique<PinnedSource>(device, std::move(streams));
}

}  // namespace ebb::memory::cuda
