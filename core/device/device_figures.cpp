#include "ebb/core/kernels/device_figures.h"

#include <algorithm>

#include "ebb/allocator/caching_allocator.h"

namespace ebb {
namespace {

using memory::CachingAllocator;
using Read = std::size_t (*)(const CachingAllocator&, std::size_t total_bytes);

class AllocatorFigure final : public DeviceFigure {
 public:
  AllocatorFigure(const CachingAllocator& allocator, Read read) noexcept
      : allocator_(allocator), total_bytes_(allocator.stats().device_total), read_(read) {}

  std::size_t bytes() const noexcept override { return sizeof(*this); }
  std::int64_t read() const noexcept override {
    return static_cast<std::int64_t>(read_(allocator_, total_bytes_));
  }

 private:
  const CachingAllocator& allocator_;  // outlives the kernel: it lives as long as the device
  const std::size_t total_bytes_;      // read once: asking is slow
  const Read read_;
};

}  // namespace

detail::Ref<Prepared> detail::prepare_bytes_in_use(const MemoryQuery& query) {
  return make_ref<AllocatorFigure>(*query.allocator, [](const CachingAllocator& of, std::size_t) {
    return of.allocated_bytes();
  });
}
detail::Ref<Prepared> detail::prepare_max_bytes_in_use(const MemoryQuery& query) {
  return make_ref<AllocatorFigure>(
      *query.allocator, [](const CachingAllocator& of, std::size_t) { return of.peak_bytes(); });
}
detail::Ref<Prepared> detail::prepare_bytes_limit(const MemoryQuery& query) {
  return make_ref<AllocatorFigure>(*query.allocator,
                                   [](const CachingAllocator& of, std::size_t total) {
                                     return std::min(of.limit_bytes(), total);
                                   });
}

}  // namespace ebb
