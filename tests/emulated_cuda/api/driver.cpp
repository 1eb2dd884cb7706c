// The driver's functions for virtual memory.
#include <cuda.h>

#include <cstring>
#include <utility>

#include "ebb/tests/emulated_cuda/api/call.h"
#include "ebb/tests/emulated_cuda/memory/address_space.h"

namespace ebb::emulated {
namespace {

CUresult result(AddressSpace::Answer answer) {
  switch (answer) {
    case AddressSpace::Answer::ok:
      return CUDA_SUCCESS;
    case AddressSpace::Answer::full:
      return CUDA_ERROR_OUT_OF_MEMORY;
    case AddressSpace::Answer::mapped:
      return CUDA_ERROR_ALREADY_MAPPED;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult state_of_device() {
  auto lock = machine().lock();
  if (check_driver(machine()) != cudaSuccess) return CUDA_ERROR_NOT_INITIALIZED;
  return static_cast<CUresult>(machine().lost.code);
}

// The state of the device, or the failure that a test asked for.
CUresult state_or(Fault fault) {
  if (const CUresult state = state_of_device(); state != CUDA_SUCCESS) return state;
  auto lock = machine().lock();
  return static_cast<CUresult>(machine().injected(fault));
}

// Result of a call that gives memory back. Looks at the device only afterwards: memory of a lost
// device is freed too, and a test that revives the device finds it empty.
CUresult given_back(AddressSpace::Answer done) {
  const CUresult state = state_of_device();
  return state == CUDA_SUCCESS ? result(done) : state;
}

bool is_device(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE && location.id == 0;
}
bool is_plain(const CUmemAllocationProp* properties) {
  return properties && properties->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
         is_device(properties->location);
}

}  // namespace

void* driver_function(const char* name) {
#define EMULATED_DRIVER(function) \
  { #function, reinterpret_cast < void*>(&function) }
  static const std::pair<const char*, void*> functions[] = {
      EMULATED_DRIVER(cuDeviceGet),
      EMULATED_DRIVER(cuDeviceGetAttribute),
      EMULATED_DRIVER(cuMemGetAllocationGranularity),
      EMULATED_DRIVER(cuMemAddressReserve),
      EMULATED_DRIVER(cuMemAddressFree),
      EMULATED_DRIVER(cuMemCreate),
      EMULATED_DRIVER(cuMemRelease),
      EMULATED_DRIVER(cuMemMap),
      EMULATED_DRIVER(cuMemUnmap),
      EMULATED_DRIVER(cuMemSetAccess),
  };
#undef EMULATED_DRIVER
  for (const auto& [known, function] : functions)
    if (std::strcmp(known, name) == 0) return function;
  return nullptr;
}

}  // namespace ebb::emulated

using namespace ebb::emulated;

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (ordinal != 0) return CUDA_ERROR_INVALID_DEVICE;
  *device = 0;
  return CUDA_SUCCESS;
}
// The only attribute asked for is support of virtual memory, which all devices have.
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute, CUdevice) {
  *value = 1;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags) {
  if (!granularity || !is_plain(properties)) return CUDA_ERROR_INVALID_VALUE;
  *granularity = AddressSpace::granularity();
  return CUDA_SUCCESS;
}
CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr,
                             unsigned long long flags) {
  if (!address || flags != 0 || alignment > AddressSpace::granularity())
    return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult state = state_of_device(); state != CUDA_SUCCESS) return state;
  std::uintptr_t at = 0;
  const CUresult done = result(address_space().reserve(bytes, at));
  if (done == CUDA_SUCCESS) *address = at;
  return done;
}
CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  return given_back(address_space().unreserve(address, bytes));
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
  if (!handle || flags != 0 || !is_plain(properties)) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult state = state_or(Fault::allocate); state != CUDA_SUCCESS) return state;
  return result(address_space().create(bytes, *handle));
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return given_back(address_space().release(handle));
}
CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult state = state_or(Fault::map); state != CUDA_SUCCESS) return state;
  {
    auto lock = machine().lock();
    ++machine().statistics.maps;
  }
  return result(address_space().map(address, bytes, offset, handle));
}
CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  return given_back(address_space().unmap(address, bytes));
}
CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* accesses,
                        size_t count) {
  if (!accesses || count != 1 || accesses->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE ||
      !is_device(accesses->location))
    return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult state = state_of_device(); state != CUDA_SUCCESS) return state;
  return result(address_space().allow_access(address, bytes));
}
