#pragma once
#include <cstdint>

#include "ebb/core/kernels/device_kernel.h"

namespace ebb {

// A figure of a device's memory that a kernel may ask for while it runs, though it is neither data
// nor a function of its node. From any thread.
class DeviceFigure : public Prepared {
 public:
  virtual std::int64_t read() const noexcept = 0;
};

namespace detail {
// Prepare rules (core/device/device_figures.cpp): figures of the query's allocator.
Ref<Prepared> prepare_bytes_in_use(const MemoryQuery& query);      // allocated, by sessions as well
Ref<Prepared> prepare_max_bytes_in_use(const MemoryQuery& query);  // since peaks were last reset
Ref<Prepared> prepare_bytes_limit(const MemoryQuery& query);       // the capacity without a limit
}  // namespace detail

namespace cpu {
// The prepared figure as an i64 scalar; on a GPU as it is at the launch. An input only makes the
// kernel run after it.
KernelFunction device_figure;
}  // namespace cpu

}  // namespace ebb
