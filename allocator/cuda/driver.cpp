#include "ebb/allocator/cuda/driver.h"

#include "ebb/allocator/cuda/current_device.h"

namespace ebb::memory::cuda {
namespace {

// CUDA 10.2 introduced all of these functions; a later version of one could have other parameters.
constexpr unsigned kVersion = 10020;

template <class Function>
bool fetch(const char* name, Function& function) noexcept {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &address, kVersion, cudaEnableDefault, &result);
  if (!succeeded(error) || result != cudaDriverEntryPointSuccess) return false;
  function = reinterpret_cast<Function>(address);
  return true;
}

struct Fetched {
  Driver driver;
  bool is_whole = true;
  Fetched() noexcept {
#define EBB_FETCH(name) is_whole = is_whole && fetch(#name, driver.name);
    EBB_DRIVER_FUNCTIONS(EBB_FETCH)
#undef EBB_FETCH
  }
};

}  // namespace

const Driver* driver() noexcept {
  static const Fetched fetched;
  return fetched.is_whole ? &fetched.driver : nullptr;
}

}  // namespace ebb::memory::cuda
