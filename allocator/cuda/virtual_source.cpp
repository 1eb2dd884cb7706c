#include "ebb/allocator/cuda/virtual_source.h"

#include <bit>
#include <utility>

namespace ebb::memory::cuda {
namespace {

CUdeviceptr address(const void* at) noexcept { return reinterpret_cast<CUdeviceptr>(at); }

}  // namespace

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

VirtualSource::VirtualSource(const Driver& driver, int device, const CUmemAllocationProp& kind,
                             std::size_t page_bytes, std::shared_ptr<LiveStreams> streams) noexcept
    : DeviceSource(device, page_bytes, std::move(streams)), driver_(driver), kind_(kind) {}

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

}  // namespace ebb::memory::cuda
