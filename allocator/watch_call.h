// Detects code that runs inside a watch's callback.
#pragma once

namespace ebb::memory {

/// Whether a WatchFunction runs on this thread. Waiting there for another thread may deadlock,
/// since that thread may be waiting for the call to end.
bool is_in_watch_call() noexcept;

}  // namespace ebb::memory
