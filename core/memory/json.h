#pragma once
#include <functional>
#include <string_view>
#include <vector>

#include "ebb/allocator/error.h"
#include "ebb/allocator/event_log.h"

namespace ebb::memory::detail {

// Receives a text piece by piece.
using Writer = std::function<void(std::string_view)>;

// Writes the object described at Recording::write_json(), in pieces: a million events are 50 MB of
// text.
void write_recording(std::string_view device, const EventLog::Reading& reading,
                     const Writer& write);

// Writes the object described at snapshot_on_out_of_memory(). Its recording is null without a
// recorder.
void write_snapshot(const OutOfMemory::Facts& facts, const std::vector<Holder>& holders,
                    const EventLog* recorder, const Writer& write);

}  // namespace ebb::memory::detail
