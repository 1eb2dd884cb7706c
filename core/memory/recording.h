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
  std::size_t max_events = 1'000'000;  // 32 bytes each; beyond, the oldest are condensed into at
                                       // most 4096 samples
};

// An event, its tag, and the bytes held on the whole device after it. The operator of a mark is its
// name, which lives as long as the recording; after 65,536 different names, further ones are left
// out.
struct RecordedEvent : Event, Tag {
  std::size_t allocated_bytes = 0;
  std::size_t reserved_bytes = 0;
};

// Recording of a device's memory while the object lives: each allocation and free with its operator
// and source line, each segment mapped and unmapped, sessions included, and the program's own
// marks. The library marks "close" (of a session or a compiled step), "save" (of a checkpoint) and
// "refused: 512 MiB by matmul" (an OutOfMemory).
//
//   memory::Recording recording(device);
//   for (...) {
//     ... one training step ...
//     recording.step();
//   }
//   recording.mark("trained");
//   recording.write_json("memory.json");
//
// May be used from any thread. A device has at most one recording at a time; without one, recording
// costs nothing.
class Recording {
 public:
  // Throws Error if the device is being recorded already, and for a maximum of zero events.
  explicit Recording(const Device& device, const RecordingOptions& options = {});
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  void mark(std::string_view name) noexcept;  // names this moment
  void step() noexcept;                       // ends a training step

  // Events so far, oldest first.
  std::vector<RecordedEvent> events() const;
  std::size_t dropped() const noexcept;  // events before the first, condensed into samples

  // Writes the recording so far as one JSON object, replacing a file of that name as a whole or not
  // at all. Throws FileError.
  //
  //   {"format": "ebb memory recording", "version": 2, "device": name,
  //    "kinds": [name, ...], "categories": [name, ...],
  //    "tags": [{"operator": name, "file": name, "line": number, "layer": name}, ...],
  //    "sample_columns": ["begin", "end", "events", "steps", "peak", "peak_reserved", "held",
  //                       "reserved"],
  //    "samples": [[number, ..., [bytes, ...], ...], ...],
  //    "mark_columns": ["nanoseconds", "tag"], "marks": [[number, number], ...],
  //    "dropped": events that are missing before the first,
  //    "before": {"allocated_bytes": {category: bytes, ...}, "reserved_bytes": bytes},
  //    "columns": ["nanoseconds", "kind", "address", "bytes", "category", "old_category", "tag"],
  //    "events": [[number, ...], ...]}
  //
  // A row holds its columns in that order: nanoseconds since the recording began; kind, categories
  // and tag as indices into their lists; bytes as allocated (rounded), or of the segment. The old
  // category differs from the new one if a block changed it. A mark's tag has its name as the
  // operator. The bytes held after a row are those before the first, changed by all rows up to it:
  // "allocate" and "map" add, "free" and "unmap" subtract.
  //
  // Samples are the dropped events, oldest first: nanoseconds of the first and last of them, their
  // number, steps that ended, most allocated bytes (by category at that moment), most reserved
  // bytes, and what was held after the last (allocated by category, reserved). The maxima include
  // the moment before the first event. "marks" are the marks among them, the first 65,536.
  void write_json(const std::string& path) const;

  // Writes the page: a file that opens in any browser and loads nothing else. It shows the bytes
  // held over the steps by category, each step's blocks in their places, who held the peak, and
  // which moments held more than others. Spans of steps that repeat others are written once. Beyond
  // about 5 MB the blocks of the rarest are left out and neighbouring spans are joined; some
  // 400,000 blocks alive at once still take more. Totals and peaks are exact. Replaces a file of
  // that name as a whole or not at all. Throws FileError.
  void write_html(const std::string& path) const;

  // Writes the recording so far for ui.perfetto.dev and chrome://tracing, as JSON of Chrome's Trace
  // Event Format. Counters of allocated bytes, by category and in all, and of reserved bytes; a
  // slice for each step and for each block, with operator, line, layer and bytes; an instant for
  // each mark. Beyond 20,000 events the counters of allocated bytes have fewer samples, with every
  // highest point of the sum. A file of that name is replaced as a whole or not at all. Throws
  // FileError.
  void write_perfetto(const std::string& path) const;

  // Writes the recording so far for pytorch.org/memory_viz and `python -m torch.cuda._memory_viz`,
  // as torch.cuda.memory._dump_snapshot() would. A block has the frames operator, layer and
  // category; marks and steps are entries with the action "snapshot". Bytes from before the
  // recording that no event is about are one segment at address 0. A file of that name is replaced
  // as a whole or not at all. Throws FileError.
  void write_pytorch_snapshot(const std::string& path) const;

  // Writes the steps so far for TensorBoard, like a SummaryWriter of folder + "/" + the device's
  // name. Each step has "memory/allocated" and "memory/reserved" at its end, "memory/peak" since
  // the step before, its split "peak/activation" and so on, and "memory/limit" if the device has
  // one now. Events after the last step count as one more; the steps of a sample are one point, at
  // the last of them. Each call makes a file, and TensorBoard mixes those of one folder. Throws
  // FileError, and Error in a build without protobuf.
  void write_tensorboard(const std::string& folder) const;

  // For the library's own reports: the events, which outlive the recording.
  std::shared_ptr<const EventLog> log() const noexcept { return log_; }

 private:
  const Device device_;
  const std::shared_ptr<EventLog> log_;
};

}  // namespace ebb::memory
