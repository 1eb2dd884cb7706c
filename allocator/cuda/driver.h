// Functions of the CUDA driver, looked up at run time: a program linked to libcuda does not start
// on a machine without a driver.
#pragma once

#include <cuda.h>

namespace ebb::memory::cuda {

#define EBB_DRIVER_FUNCTIONS(FUNCTION) \
  FUNCTION(cuDeviceGet)                \
  FUNCTION(cuDeviceGetAttribute)       \
  FUNCTION(cuMemAddressReserve)        \
  FUNCTION(cuMemAddressFree)           \
  FUNCTION(cuMemCreate)                \
  FUNCTION(cuMemRelease)               \
  FUNCTION(cuMemMap)                   \
  FUNCTION(cuMemUnmap)                 \
  FUNCTION(cuMemSetAccess)             \
  FUNCTION(cuMemGetAllocationGranularity)

struct Driver {
#define EBB_DRIVER_MEMBER(name) decltype(&::name) name = nullptr;
  EBB_DRIVER_FUNCTIONS(EBB_DRIVER_MEMBER)
#undef EBB_DRIVER_MEMBER
};

/// Null without a driver, or if the driver lacks any of them.
const Driver* driver() noexcept;

}  // namespace ebb::memory::cuda
