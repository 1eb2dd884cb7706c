// Device memory from cudaMalloc.
#pragma once

#include "ebb/allocator/cuda/device_source.h"

namespace ebb::memory::cuda {

/// For profiles without growth: there are no addresses to reserve.
class PlainSource final : public DeviceSource {
 public:
  PlainSource(int device, std::size_t page_bytes, std::shared_ptr<LiveStreams> streams) noexcept;

  void* reserve(std::size_t bytes) noexcept override;
  void unreserve(void* base, std::size_t bytes) noexcept override;
  bool commit(void* at, std::size_t bytes) noexcept override;
  bool decommit(void* at, std::size_t bytes) noexcept override;
  void* map(std::size_t bytes) noexcept override;
  bool unmap(void* base, std::size_t bytes) noexcept override;
};

}  // namespace ebb::memory::cuda
