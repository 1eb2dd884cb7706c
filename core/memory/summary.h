#pragma once
#include <cstddef>
#include <string>

#include "ebb/core/device/device.h"

namespace ebb::memory {

// The figures of stats(device) and who holds most, for people: a text of at most 80 columns that
// ends in a line break.
std::string summary(const Device& device, std::size_t most_holders = 5);

// The same for programs, holders all of them. {"device", "simulated", "requested_bytes",
// "allocated_bytes", "reserved_bytes": each {"current", "peak", "total"}, "by_category": {category:
// {"current", "peak", "total", "at_peak"}}, "device_free_bytes", "device_total_bytes",
// "limit_bytes", "allocations", "segments", "holders": [{"operator", "file", "line", "bytes",
// "blocks"}]}; "at_peak" is the category's part of the allocated bytes at their peak, "limit_bytes"
// null where there is none.
std::string summary_json(const Device& device);

}  // namespace ebb::memory
