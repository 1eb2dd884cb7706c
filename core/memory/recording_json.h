#pragma once
#include <functional>
#include <string_view>

#include "ebb/allocator/event_log.h"

namespace ebb::memory::detail {

// The object that Recording::write_json() describes, in pieces: a million events are 50 MB of text.
void write_recording(std::string_view device, const EventLog::Reading& reading,
                     const std::function<void(std::string_view)>& write);

}  // namespace ebb::memory::detail
