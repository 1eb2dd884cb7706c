#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ebb/allocator/event_log.h"
#include "ebb/core/device/device.h"

namespace ebb::memory {

struct RecordingOptions {
  std::size_t max_events = 1'000'000;  // 48 bytes each; beyond, the oldest go and are counted, and
                                       // the names of their marks go, unless events() gave them
};

// An event, and what was held after it on the device as a whole. The names of its marks live as
// long as the recording.
struct RecordedEvent : Event {
  std::size_t allocated_bytes = 0;
  std::size_t reserved_bytes = 0;
};

// Everything that happens to a device's memory while it lives: each allocation and free with the
// operator and the source line that asked, each segment that came from the device or went back,
// sessions included, and what the program says of itself.
//
//   memory::Recording recording(device);
//   for (...) {
//     ... one training step ...
//     recording.step();
//   }
//   recording.mark("trained");
//   recording.write_json("memory.json");
//
// May be used from any thread. A device has one recording at a time. Without one nothing is
// written down and nothing is paid for.
class Recording {
 public:
  // Throws Error while there is another one of this device, and for less than one event.
  explicit Recording(const Device& device, const RecordingOptions& options = {});
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  void mark(std::string_view name);  // this moment
  void step() noexcept;              // a training step is over

  // So far, the oldest first.
  std::vector<RecordedEvent> events() const;
  std::size_t dropped() const noexcept;  // that were before the first of these

  // What was recorded so far, as one JSON object; a file of that name is replaced whole or not at
  // all. Throws FileError.
  //
  //   {"format": "ebb memory recording", "version": 1, "device": name,
  //    "dropped": events that are missing before the first,
  //    "before": {"allocated_bytes": {category: bytes, ...}, "reserved_bytes": bytes},
  //    "kinds": [name, ...], "categories": [name, ...],
  //    "tags": [{"operator": name, "file": name, "line": number}, ...],
  //    "columns": ["nanoseconds", "kind", "address", "bytes", "category", "old_category", "tag"],
  //    "events": [[number, ...], ...]}
  //
  // A row holds its columns in that order: nanoseconds since the recording began; kind, categories
  // and tag as places in their lists; bytes as allocated (rounded), or of the segment. The old
  // category differs from the new one where a block changed it. A mark's tag has its name as the
  // operator. What is held after a row is what was held before the first, changed by all rows up to
  // it: "allocate" and "map" add, "free" and "unmap" take away.
  void write_json(const std::string& path) const;

 private:
  const Device device_;
  const std::shared_ptr<EventLog> log_;
};

}  // namespace ebb::memory
