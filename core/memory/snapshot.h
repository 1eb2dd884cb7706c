#pragma once
#include <string>

namespace ebb::memory {

// From now on, whenever a request for memory is refused on any device of this process, a file of
// this name says what was known at that moment, before the OutOfMemory is thrown: what was asked,
// by whom and why it was refused, all figures, everybody who holds memory by source line, and the
// events of the device's recording, if there is one. The last refusal replaces the file of the one
// before. Where the file cannot be written the log says so, and the OutOfMemory is thrown as
// always. An empty path ends it.
//
//   {"format": "ebb out of memory", "version": 1, "message": the error's text
//    but for the batch that a session says would fit, "reason":
//    "device_refused", "device_limit", "pool_limit" or "injected", "device": name, "pool": name or
//    null, "request": {"bytes", "category", "purpose", "operator", "file", "line"},
//    "reserve_bytes", "room_bytes", "free_bytes", "free_pieces", "largest_free_bytes",
//    "pinned_bytes", "stats": {...}, "pool_stats": {...} or null, "holders": [...], "recording": as
//    Recording::write_json() has it, or null}
//
// Stats and holders are those of summary_json().
void snapshot_on_out_of_memory(std::string path);

}  // namespace ebb::memory
