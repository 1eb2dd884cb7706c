#pragma once
#include <string>

namespace ebb::memory {

// Writes a file at every refused request for memory, on any device of this process, before the
// OutOfMemory is thrown. It has the request, its requester, the reason, all figures, all holders by
// source line, and the events of the device's recording, if there is one. Each refusal replaces the
// previous file. If the file cannot be written, the log says so, and the OutOfMemory is thrown as
// always. An empty path ends this.
//
//   {"format": "ebb out of memory", "version": 1, "message": the error's text
//    but for the batch that a session says would fit, "reason":
//    "device_refused", "addresses", "device_limit", "pool_limit" or "injected", "device": name,
//    "pool": name or null, "request": {"bytes", "category", "purpose", "operator", "file", "line"},
//    "reserve_bytes", "room_bytes", "free_bytes", "free_pieces", "largest_free_bytes",
//    "pinned_bytes", "stats": {...}, "pool_stats": {...} or null, "holders": [...], "recording": as
//    Recording::write_json() has it, or null}
//
// Stats and holders are as in summary_json().
void snapshot_on_out_of_memory(std::string path);

}  // namespace ebb::memory
