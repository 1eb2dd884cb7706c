#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ebb/allocator/error.h"
#include "ebb/allocator/event_log.h"

namespace ebb::memory::detail {

// Receives a text piece by piece.
using Writer = std::function<void(std::string_view)>;

// Replaces bytes that are not UTF-8, which file names may contain.
std::string utf8(std::string_view text);
// Returns a JSON string of utf8(text).
std::string json_string(std::string_view text);

// Writes the object described at Recording::write_json(), in pieces: a million events are 50 MB of
// text.
void write_recording(std::string_view device, const EventLog::Reading& reading,
                     const Writer& write);

// Writes the object described at snapshot_on_out_of_memory(). Its recording is null without a
// recorder.
void write_snapshot(const OutOfMemory::Facts& facts, const std::vector<Holder>& holders,
                    const EventLog* recorder, const Writer& write);

}  // namespace ebb::memory::detail
