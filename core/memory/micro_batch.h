#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

#include "ebb/allocator/limit.h"
#include "ebb/core/memory/predict.h"

namespace ebb::memory {

// Micro-batches that a batch of rows is cut into so that each fits a limit.
//
// `size` is the largest for which every number of rows up to it fits, one row more does not, and
// the last micro-batch, which has the rest, fits too. Memory need not grow with the rows (an
// algorithm may need less workspace for more of them), so every number up to 256 is tried
// (fewer in a graph of over a thousand nodes); of larger ones all powers of 2, the 64 below `size`,
// and those that the search meets.
struct MicroBatch {
  std::int64_t size = 0;           // rows of each micro-batch but the last
  std::int64_t steps = 0;          // micro-batches: rows / size, rounded up
  std::size_t peak_bytes = 0;      // predicted at `size` rows: most allocated at once
  std::size_t reserved_bytes = 0;  // and reserved, which the limit bounds: Plan::reserved_bytes, or
                                   // Prediction::least_limit_bytes
  // reserved_bytes with one row more, which do not fit; 0 if all rows fit in one piece.
  std::size_t next_reserved_bytes = 0;
};

// Finds the largest micro-batch with which an eager program stays within a limit of reserved bytes,
// and within the room that `device` has now. `program(twin, rows)` is one whole program with
// micro-batches of that many rows: it makes its parameters and runs a step or two, and is predicted
// for several numbers of rows. The effective batch stays: accumulate over `rows` samples.
//
//   const memory::MicroBatch fit = memory::fit_micro_batch(
//       device, 512, 64_MiB, [&](Device twin, std::int64_t rows) { train_step(twin, rows); });
//
// Throws Error if not even one row fits, with the least limit that would do; for less than one row;
// and as predict().
MicroBatch fit_micro_batch(const Device& device, std::int64_t rows, Limit limit,
                           const std::function<void(Device, std::int64_t)>& program,
                           const PredictOptions& options = {}, CallSite site = CallSite::here());

namespace detail {
// Bytes that one micro-batch takes.
struct Need {
  std::size_t peak_bytes = 0, reserved_bytes = 0;
};
// The search behind both fit_micro_batch. `need` is asked once for each number of rows. Throws
// Error in the name of `what` if one row takes more than `limit`. Every number up to `all` is
// tried.
MicroBatch fit_rows(const char* what, std::int64_t rows, std::size_t limit,
                    const std::function<Need(std::int64_t)>& need, std::int64_t all = 256);
}  // namespace detail

}  // namespace ebb::memory
