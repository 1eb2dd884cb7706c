#pragma once
#include <cstdint>

#include "ebb/core/kernels/device_kernel.h"

namespace ebb {

// What a kernel may find out about the memory of its device, which is neither data nor a function
// of its node: asked while it runs. From any thread.
class DeviceFigures : public Prepared {
 public:
  virtual std::int64_t bytes_in_use() const noexcept = 0;      // allocated, by sessions as well
  virtual std::int64_t max_bytes_in_use() const noexcept = 0;  // since the peaks were last reset
  virtual std::int64_t bytes_limit() const noexcept = 0;       // without one the capacity
};

namespace detail {
// A prepare rule (core/device/device_figures.cpp): the figures of the query's allocator.
Ref<Prepared> prepare_figures(const MemoryQuery& query);
}  // namespace detail

namespace cpu {
// One figure, prepared by prepare_figures, as an i64 scalar. An input is there to come after it.
Status bytes_in_use(const KernelContext& context);
Status max_bytes_in_use(const KernelContext& context);
Status bytes_limit(const KernelContext& context);
}  // namespace cpu
namespace cuda {  // the same, as it was when the kernel was launched
Status bytes_in_use(const KernelContext& context);
Status max_bytes_in_use(const KernelContext& context);
Status bytes_limit(const KernelContext& context);
}  // namespace cuda

}  // namespace ebb
