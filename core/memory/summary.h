#pragma once
#include <cstddef>
#include <string>

#include "ebb/core/device/device.h"

namespace ebb::memory {

// Figures of stats(device) and its largest holders, for people: at most 80 columns wide, ending in
// a line break. Columns: bytes now; when most was allocated since reset_peaks() (the peak); the
// most that the line itself had since then; all bytes that it ever took.
//
// Besides the device's own bytes, where there are any: page-locked memory of the host that copies
// to and from the device reserve; in the CPU's summary, copies of values on the host
// (EarlyStopping, suspended sessions, files while they load); memory that from_dlpack() borrows.
// docs/statistics.md lists what no figure has.
std::string summary(const Device& device, std::size_t most_holders = 5);

// The figures of summary() for programs, with all holders. {"device", "simulated",
// "requested_bytes", "allocated_bytes", "reserved_bytes": each {"current", "peak", "total"},
// "by_category": {category: {"current", "peak", "total", "at_peak"}}, "device_free_bytes",
// "device_total_bytes", "limit_bytes", "allocations", "segments", "page_locked_bytes": {"current",
// "peak", "total"}, "host_copies_bytes", "borrowed_bytes", "holders": [{"operator", "file", "line",
// "bytes", "blocks"}]}; "at_peak" is the category's part of the allocated bytes at their peak,
// "limit_bytes" is null without a limit.
std::string summary_json(const Device& device);

}  // namespace ebb::memory
