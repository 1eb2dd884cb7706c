#include "ebb/core/kernels/device_figures.h"

#include <algorithm>

#include "ebb/allocator/caching_allocator.h"

namespace ebb {
namespace {

class AllocatorFigures final : public DeviceFigures {
 public:
  explicit AllocatorFigures(const memory::CachingAllocator& allocator) noexcept
      : allocator_(allocator), capacity_bytes_(allocator.capacity_bytes()) {}

  std::size_t bytes() const noexcept override { return sizeof(*this); }
  std::int64_t bytes_in_use() const noexcept override {
    return figure(allocator_.allocated_bytes());
  }
  std::int64_t max_bytes_in_use() const noexcept override {
    return figure(allocator_.peak_bytes());
  }
  std::int64_t bytes_limit() const noexcept override {
    return figure(std::min(allocator_.limit_bytes(), capacity_bytes_));
  }

 private:
  static std::int64_t figure(std::size_t bytes) noexcept {
    return static_cast<std::int64_t>(bytes);
  }

  const memory::CachingAllocator& allocator_;  // lives as long as the device that runs the kernel
  const std::size_t capacity_bytes_;           // when the kernel was prepared: to read it takes long
};

}  // namespace

detail::Ref<Prepared> detail::prepare_figures(const MemoryQuery& query) {
  return make_ref<AllocatorFigures>(*query.allocator);
}

}  // namespace ebb
