#pragma once
#include <cstddef>
#include <iosfwd>
#include <optional>
#include <vector>

#include "ebb/allocator/limit.h"
#include "ebb/allocator/peak_scope.h"
#include "ebb/allocator/statistics.h"
#include "ebb/allocator/watch.h"
#include "ebb/core/device/device.h"

namespace ebb {

namespace memory {

// Figures of a device, its sessions' pools included: requested, allocated and reserved bytes, each
// current, peak and total; allocated bytes by category; the free bytes that the device reports.
Stats stats(const Device& device);

// Bounds the bytes reserved on a device, sessions included: bytes, or Limit::fraction(of the
// device's capacity). Without a value only the capacity bounds them. May be called at any time: a
// limit below the bytes in use gives back cached memory and the memory that sessions keep between
// runs, and refuses only new requests. Memory preallocated by sessions stays theirs until they are
// suspended or closed.
void set_limit(const Device& device, std::optional<Limit> reserved);

// Growth::preallocate reserves all that the limit allows, or all that the device has left without a
// limit, at once and keeps it reserved. Sessions take their memory from it. Without a limit a GPU
// keeps 5 % free, at least 512 MiB but at most half: cuBLASLt, cuDNN and kernels that are loaded
// late need it. Throws OutOfMemory, and Error if the device has no addresses to reserve.
void set_growth(const Device& device, Growth growth);

// Gives back cached memory that is not in use, page-locked host memory too. See describe() for the
// report.
ReleaseReport release_cached(const Device& device);

// Most bytes that could still be reserved for something new: the limit or the capacity, less the
// memory of live blocks. The arena of an idle session does not count, as it gives way.
std::size_t available(const Device& device);

// Parts of the difference between reserved and requested bytes. Looks at every free block.
Fragmentation fragmentation(const Device& device);

// Calls `call` when a request on the device is about to be refused, until the watch ends. Only
// preallocated memory may have been given up for the request before. See WatchFunction for what it
// may do. Calls may run on several threads at once: guard shared data.
Watch on_pressure(const Device& device, WatchFunction call);
// Calls `call` each time that the device's allocated bytes rise above a threshold, after the block
// is allocated. A Limit::fraction() refers to the limit, or to the capacity without one, at the
// time when the watch is made. Calls may run on several threads at once: guard shared data.
Watch on_threshold(const Device& device, Limit threshold, WatchFunction call);

// Restarts every peak of stats() from now. PeakScopes are not affected.
void reset_peaks(const Device& device);

// Largest holders of allocated bytes: operators with the source lines that called them, largest
// first, at most `most` (kNoLimit: all). Walks every block.
std::vector<Holder> holders(const Device& device, std::size_t most = 10);

// A holder that has more bytes than before, and how much more.
struct GrownHolder {
  Tag tag;
  std::size_t bytes = 0;
  std::ptrdiff_t blocks = 0;  // below 0 where fewer but larger blocks are held
};
// The holders that have more bytes in `after` than in `before`, largest growth first. A holder is
// new if `before` lacks it, so take both lists with kNoLimit:
//
//   const auto before = memory::holders(device, memory::kNoLimit);
//   train_an_epoch();
//   std::cout << memory::difference(before, memory::holders(device, memory::kNoLimit)) << "\n";
std::vector<GrownHolder> difference(const std::vector<Holder>& before,
                                    const std::vector<Holder>& after);
// Writes a line for each holder, like summary(), without the last line break.
std::ostream& operator<<(std::ostream& out, const std::vector<GrownHolder>& grown);

}  // namespace memory

// Lets PeakScope(device) measure a device.
memory::Ledger& ledger_of(const Device& device) noexcept;

}  // namespace ebb
