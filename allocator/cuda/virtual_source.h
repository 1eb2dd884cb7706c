// Device memory behind fixed addresses.
#pragma once

#include <cuda.h>

#include "ebb/allocator/cuda/device_source.h"
#include "ebb/allocator/cuda/driver.h"

namespace ebb::memory::cuda {

/// CUDA's virtual memory. An allocation is mapped and unmapped as a whole, so each page is an
/// allocation of its own and any page can go back.
class VirtualSource final : public DeviceSource {
 public:
  /// Null if the driver or the device does not offer it. The device must be current.
  static std::unique_ptr<VirtualSource> make(int device, std::shared_ptr<LiveStreams> streams);

  void* reserve(std::size_t bytes) noexcept override;
  void unreserve(void* base, std::size_t bytes) noexcept override;
  bool commit(void* at, std::size_t bytes) noexcept override;
  bool decommit(void* at, std::size_t bytes) noexcept override;

 private:
  VirtualSource(const Driver& driver, int device, const CUmemAllocationProp& kind,
                std::size_t page_bytes, std::shared_ptr<LiveStreams> streams) noexcept;
  bool map_page(CUdeviceptr at) noexcept;
  bool is_too_much(std::size_t bytes) const noexcept;

  const Driver& driver_;
  const CUmemAllocationProp kind_;  // kind of memory to allocate
};

}  // namespace ebb::memory::cuda
