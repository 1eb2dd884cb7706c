#pragma once
#include <cstdint>

#include "ebb/core/kernels/device_kernel.h"

namespace ebb {

// Figures of a device's memory that a kernel may ask for while it runs, though they are neither
// data nor a function of its node. From any thread.
class DeviceFigures : public Prepared {
 public:
  virtual std::int64_t bytes_in_use() const noexcept = 0;      // allocated, by sessions as well
  virtual std::int64_t max_bytes_in_use() const noexcept = 0;  // since the peaks were last reset
  virtual std::int64_t bytes_limit() const noexcept = 0;       // the capacity without a limit
};

namespace detail {
// A prepare rule (core/device/device_figures.cpp): the figures of the query's allocator.
Ref<Prepared> prepare_figures(const MemoryQuery& query);
}  // namespace detail

namespace cpu {
// One figure, prepared by prepare_figures, as an i64 scalar; on a GPU as it is at the launch. An
// input only makes the kernel run after it.
KernelFunction bytes_in_use, max_bytes_in_use, bytes_limit;
}  // namespace cpu

}  // namespace ebb
