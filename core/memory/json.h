#pragma once
#include <functional>
#include <string_view>
#include <vector>

#include "ebb/allocator/error.h"
#include "ebb/allocator/event_log.h"

namespace ebb::memory::detail {

// Takes a text piece by piece.
using Writer = std::function<void(std::string_view)>;

// The object that Recording::write_json() describes, in pieces: a million events are 50 MB of text.
void write_recording(std::string_view device, const EventLog::Reading& reading,
                     const Writer& write);

// The object that snapshot_on_out_of_memory() describes; without a recorder its recording is null.
void write_snapshot(const OutOfMemory::Facts& facts, const std::vector<Holder>& holders,
                    const EventLog* recorder, const Writer& write);

}  // namespace ebb::memory::detail
