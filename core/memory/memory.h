#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "ebb/allocator/limit.h"
#include "ebb/allocator/peak_scope.h"
#include "ebb/allocator/statistics.h"
#include "ebb/allocator/watch.h"
#include "ebb/core/device/device.h"

namespace ebb {

namespace memory {

// The figures of a device, its sessions' pools included: requested, allocated and reserved bytes,
// each current, peak and total; allocated bytes by category; what the device itself says is free.
Stats stats(const Device& device);

// Bounds the bytes that the device's allocator reserves, sessions included: bytes, or
// Limit::fraction(of the device's capacity); without a value, only that capacity does. At any time:
// lowered below what is in use, it gives back what is cached and what sessions keep between runs,
// and refuses only new requests. What sessions have preallocated stays theirs: suspend or close
// them.
void set_limit(const Device& device, std::optional<Limit> reserved);

// Growth::preallocate reserves all that the limit allows, or without one all that the device has
// left, at once and keeps it reserved, whatever is freed; sessions take theirs from it. Without a
// limit a GPU keeps 5 % of that, at least 512 MiB but never more than half: cuBLASLt, cuDNN and
// kernels that are loaded late need it. Throws OutOfMemory, and Error where the device has no
// addresses to reserve.
void set_growth(const Device& device, Growth growth);

// Gives back what is cached and not in use, to the host its page-locked memory; see describe().
ReleaseReport release_cached(const Device& device);

// The most that could still be reserved for something new: the limit or the capacity, less what
// live blocks use. The arena of an idle session does not count: it gives way.
std::size_t available(const Device& device);

// Why more is reserved than was asked for. Looks at every free block.
Fragmentation fragmentation(const Device& device);

// Calls when a request on the device is about to be refused, before anything else is tried, until
// the watch ends: see WatchFunction for what may be done there. May call on several threads at
// once: guard what is shared.
Watch on_pressure(const Device& device, WatchFunction call);
// Calls each time that the device's allocated bytes rise above a threshold, for a block that has
// just been allocated: bytes, or Limit::fraction(of the limit, or of the capacity without one, as
// either is when the watch is made). On several threads at once too: guard what is shared.
Watch on_threshold(const Device& device, Limit threshold, WatchFunction call);

// Every peak of stats() starts again from now. PeakScopes are not affected.
void reset_peaks(const Device& device);

// Who holds most allocated bytes: operators with the source lines that called them, largest first,
// at most `most` of them. Walks every block.
std::vector<Holder> holders(const Device& device, std::size_t most = 10);

}  // namespace memory

// What PeakScope(device) measures.
memory::Ledger& ledger_of(const Device& device) noexcept;

}  // namespace ebb
