#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>

#include "ebb/core/base/call_site.h"
#include "ebb/core/device/device.h"

namespace ebb::memory {

// Micro-batches that a batch of rows is cut into so that each fits a limit.
struct MicroBatch {
  std::int64_t size = 0;  // rows of each micro-batch but the last, which has the rest
  std::int64_t steps = 0;  // micro-batches: rows / size, rounded up
  std::size_t peak_bytes = 0;      // predicted at `size` rows: most allocated at once
  std::size_t reserved_bytes = 0;  // and most reserved, which the limit bounds
  // The same with one row more, which does not fit; 0 if all rows fit.
  std::size_t next_peak_bytes = 0;
  std::size_t next_reserved_bytes = 0;
};

}  // namespace ebb::memory
