#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "ebb/allocator/peak_scope.h"
#include "ebb/allocator/statistics.h"
#include "ebb/core/device/device.h"

namespace ebb {

namespace memory {

// The figures of a device, its sessions' pools included: requested, allocated and reserved bytes,
// each current, peak and total; allocated bytes by category; what the device itself says is free.
Stats stats(const Device& device);

// Bounds the bytes that the device's allocator reserves, sessions included; without a value,
// nothing does. At any time: lowered below what is in use, it gives back what is cached and refuses
// only new requests.
void set_limit(const Device& device, std::optional<std::size_t> reserved_bytes);

// Gives what is cached and not in use back to the device.
ReleaseReport release_cached(const Device& device);

// Every peak of stats() starts again from now. PeakScopes are not affected.
void reset_peaks(const Device& device);

// Who holds most allocated bytes: operators with the source lines that called them, largest first,
// at most `most` of them. Walks every block.
std::vector<Holder> holders(const Device& device, std::size_t most = 10);

}  // namespace memory

// What PeakScope(device) measures.
memory::Ledger& ledger_of(const Device& device) noexcept;

}  // namespace ebb
