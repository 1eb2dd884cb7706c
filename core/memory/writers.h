// Recordings in the formats of other tools.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ebb/allocator/event_log.h"
#include "ebb/core/files/output_file.h"

namespace ebb::memory::detail {

struct Run {
  std::string name;  // with the device's
  std::shared_ptr<const EventLog> log;
  std::size_t limit_bytes = kNoLimit;
  std::size_t predicted_peak_bytes = 0;  // above the bytes held before; 0: not known
};

// Write the files described at Recording. Throw FileError.
void write_perfetto(const std::string& path, const std::vector<Run>& runs);
void write_pytorch_snapshot(const std::string& path, const std::vector<Run>& runs);
void write_tensorboard(const std::string& folder, const std::vector<Run>& runs);

// Bytes of a block that are of one category. Other tools know blocks of one category only, so the
// parts of an arena are shown as blocks that lie one behind the other.
struct Part {
  std::uintptr_t address = 0;
  std::size_t bytes = 0;
  Category category = Category::temporary;
  std::uint32_t tag = 0;  // as an event's
};

// Translates events, given in their order, to parts that go and come. A block that changes its
// category goes and comes.
class Parts {
 public:
  struct Change {
    std::optional<Part> gone = {}, come = {};
    bool continues = false;  // the block of the change before
  };

  Change after(const Event& event) noexcept {
    const bool comes = event.kind == EventKind::allocate, goes = event.kind == EventKind::free;
    const bool changes = event.kind == EventKind::recategorise;
    if (event.bytes == 0 || !(comes || goes || changes)) return {};
    const bool is_next = event.address == block_ && event.kind == kind_ && !changes;
    block_ = event.address;
    kind_ = event.kind;
    const std::uintptr_t address = is_next ? end_ : reinterpret_cast<std::uintptr_t>(block_);
    end_ = address + event.bytes;
    Change change{.continues = is_next};
    if (!comes)
      change.gone = {address, event.bytes, changes ? event.before : event.category, event.tag};
    if (!goes) change.come = {address, event.bytes, event.category, event.tag};
    return change;
  }

 private:
  const void* block_ = nullptr;  // of the last event
  EventKind kind_ = EventKind::mark;
  std::uintptr_t end_ = 0;  // of the last part
};

// A file of which at most a piece is in memory.
class PieceFile {
 public:
  explicit PieceFile(const std::string& path) : file_(path) {}

  // Returns the text to append to.
  std::string& text() {
    if (text_.size() > kPieceBytes) flush();
    return text_;
  }
  void commit() {
    flush();
    file_.commit();
  }

 private:
  static constexpr std::size_t kPieceBytes = 1 << 20;

  void flush() {
    file_.write(text_.data(), text_.size());
    text_.clear();
  }

  ebb::detail::OutputFile file_;
  std::string text_;
};

}  // namespace ebb::memory::detail
