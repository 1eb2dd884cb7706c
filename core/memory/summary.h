#pragma once
#include <cstddef>
#include <string>

#include "ebb/core/device/device.h"

namespace ebb::memory {

// Figures of stats(device) and its largest holders, for people: at most 80 columns wide, ending in
// a line break.
std::string summary(const Device& device, std::size_t most_holders = 5);

// The figures of summary() for programs, with all holders. {"device", "simulated",
// "requested_bytes", "allocated_bytes", "reserved_bytes": each {"current", "peak", "total"},
// "by_category": {category: {"current", "peak", "total", "at_peak"}}, "device_free_bytes",
// "device_total_bytes", "limit_bytes", "allocations", "segments", "holders": [{"operator", "file",
// "line", "bytes", "blocks"}]}; "at_peak" is the category's part of the allocated bytes at their
// peak, "limit_bytes" is null without a limit.
std::string summary_json(const Device& device);

}  // namespace ebb::memory
