#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ebb/allocator/error.h"
#include "ebb/allocator/event_log.h"
#include "ebb/core/memory/writers.h"

namespace ebb::memory::detail {

// Replaces bytes that are not UTF-8, which file names may contain.
std::string utf8(std::string_view text);
// Returns a JSON string of utf8(text).
std::string json_string(std::string_view text);

// Writes the object described at Recording::write_json(): a million events are 50 MB of text.
void write_recording(std::string_view device, const EventLog::Reading& reading, PieceFile& file);

// Writes the object described at snapshot_on_out_of_memory(). Its recording is null without a
// recorder.
void write_snapshot(const OutOfMemory::Facts& facts, const std::vector<Holder>& holders,
                    const EventLog* recorder, PieceFile& file);

}  // namespace ebb::memory::detail
