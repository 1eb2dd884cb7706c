// Whether one is being told that memory runs short.
#pragma once

namespace ebb::memory {

/// Whether a WatchFunction runs on this thread: what waits there for another thread may wait for
/// ever, since that one may be waiting for the call to end.
bool is_in_watch_call() noexcept;

}  // namespace ebb::memory
