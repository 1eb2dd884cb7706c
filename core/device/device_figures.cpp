#include "ebb/core/kernels/device_figures.h"

#include <algorithm>

#include "ebb/allocator/caching_allocator.h"

namespace ebb {
namespace {

class AllocatorFigures final : public DeviceFigures {
 public:
  explicit AllocatorFigures(const memory::CachingAllocator& allocator) noexcept
      : allocator_(allocator), total_bytes_(allocator.stats().device_total) {}

  std::size_t bytes() const noexcept override { return sizeof(*this); }
  std::int64_t bytes_in_use() const noexcept override {
    return figure(allocator_.allocated_bytes());
  }
  std::int64_t max_bytes_in_use() const noexcept override {
    return figure(allocator_.peak_bytes());
  }
  std::int64_t bytes_limit() const noexcept override {
    return figure(std::min(allocator_.limit_bytes(), total_bytes_));
  }

 private:
  static std::int64_t figure(std::size_t bytes) noexcept {
    return static_cast<std::int64_t>(bytes);
  }

  const memory::CachingAllocator& allocator_;  // outlives the kernel: it lives as long as the
                                               // device
  const std::size_t total_bytes_;              // read once: asking is slow
};

}  // namespace

detail::Ref<Prepared> detail::prepare_figures(const MemoryQuery& query) {
  return make_ref<AllocatorFigures>(*query.allocator);
}

}  // namespace ebb
