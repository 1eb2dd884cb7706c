// The pickle that torch.cuda.memory._dump_snapshot writes, as torch/cuda/_memory_viz.py and
// pytorch.org/memory_viz read it.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <tuple>

#include "ebb/core/memory/json.h"
#include "ebb/core/memory/writers.h"

namespace ebb::memory::detail {

namespace {

// Writes Python values, with the opcodes of pickle's second protocol that PyTorch's page knows.
class Pickle {
 public:
  explicit Pickle(const std::string& path) : file_(path) { file_.text() = "\x80\x02"; }

  void begin_list() { file_.text() += ']'; }
  void append() { file_.text() += 'a'; }  // the last value to the list before it
  void begin_dict() { file_.text() += "}("; }
  void end_dict() { file_.text() += 'u'; }

  void number(std::uint64_t value) {
    if (value < 1 << 8)
      file_.text() += 'K' + bytes(value, 1);
    else if (value < 1 << 16)
      file_.text() += 'M' + bytes(value, 2);
    else
      file_.text() += "\x8a\x08" + bytes(value, 8);
  }
  void text(std::string_view value) {
    const auto known = texts_.find(value);
    if (known != texts_.end()) return get(known->second);
    const std::string valid = utf8(value);
    file_.text() += 'X' + bytes(valid.size(), 4) + valid;
    texts_.emplace(value, put());
  }
  void item(std::string_view key, std::uint64_t value) {
    text(key);
    number(value);
  }
  void item(std::string_view key, std::string_view value) {
    text(key);
    text(value);
  }

  // Names the last value, and repeats it.
  std::uint32_t put() {
    file_.text() += 'r' + bytes(named_, 4);
    return named_++;
  }
  void get(std::uint32_t index) {
    file_.text() += index < 1 << 8 ? 'h' + bytes(index, 1) : 'j' + bytes(index, 4);
  }

  void commit() {
    file_.text() += '.';
    file_.commit();
  }

 private:
  static std::string bytes(std::uint64_t value, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += static_cast<char>(value >> 8 * i);
    return text;
  }

  PieceFile file_;
  std::map<std::string, std::uint32_t, std::less<>> texts_;
  std::uint32_t named_ = 0;
};

// Ranges of addresses, the adjacent ones joined.
class Ranges {
 public:
  void add(std::uintptr_t begin, std::size_t bytes) {
    std::uintptr_t end = begin + bytes;
    auto next = ends_.upper_bound(begin);
    if (next != ends_.begin() && std::prev(next)->second >= begin) begin = (--next)->first;
    while (next != ends_.end() && next->first <= end) {
      end = std::max(end, next->second);
      next = ends_.erase(next);
    }
    ends_.emplace_hint(next, begin, end);
  }
  void remove(std::uintptr_t begin, std::size_t bytes) {
    add(begin, bytes);
    const auto range = std::prev(ends_.upper_bound(begin));
    const std::uintptr_t end = std::exchange(range->second, begin);
    if (range->first == begin) ends_.erase(range);
    if (end > begin + bytes) ends_.emplace(begin + bytes, end);
  }
  // begin -> end
  const std::map<std::uintptr_t, std::uintptr_t>& ends() const noexcept { return ends_; }

 private:
  std::map<std::uintptr_t, std::uintptr_t> ends_;
};

class Snapshot {
 public:
  explicit Snapshot(const std::string& path) : pickle_(path) {}

  void write(const std::vector<Run>& runs) {
    std::vector<End> ends;
    pickle_.begin_dict();
    pickle_.text("device_traces");
    pickle_.begin_list();
    for (const Run& run : runs) {
      ends.push_back(write_trace(run));
      pickle_.append();
    }
    pickle_.text("segments");
    pickle_.begin_list();
    for (std::size_t device = 0; device < ends.size(); ++device)
      for (const auto& [begin, end] : ends[device].ranges.ends())
        write_segment(device, ends[device].parts, begin, end);
    pickle_.text("allocator_settings");
    pickle_.begin_dict();
    for (std::size_t device = 0; device < runs.size(); ++device)
      pickle_.item(fmt::format("device {}", device), runs[device].name);
    pickle_.end_dict();
    pickle_.text("external_annotations");
    pickle_.begin_list();
    pickle_.end_dict();
    pickle_.commit();
  }

 private:
  // State after the last event.
  struct End {
    std::map<std::uintptr_t, Part> parts;
    Ranges ranges;
  };

  End write_trace(const Run& run) {
    const EventLog::Reading reading = run.log->read();
    End end;
    Held held = reading.before;
    Parts parts(reading.tags);
    unsigned steps = 0;
    pickle_.begin_list();
    // Names the run. PyTorch's page fails on categories without an unknown one.
    write_moment("run", 0, run.name, 0);
    for (const Event& event : reading.events) {
      held.apply(event);
      const auto address = reinterpret_cast<std::uintptr_t>(event.address);
      const auto [gone, come] = parts.after(event);
      if (gone) {
        end.ranges.add(gone->address, gone->bytes);
        end.parts.erase(gone->address);
        for (const char* const action : {"free_requested", "free_completed"})
          write_entry(action, event.nanoseconds, gone->address, gone->bytes, &*gone);
      }
      if (come) {
        end.ranges.add(come->address, come->bytes);
        end.parts.insert_or_assign(come->address, *come);
        write_entry("alloc", event.nanoseconds, come->address, come->bytes, &*come);
      }
      if (event.kind == EventKind::map || event.kind == EventKind::unmap) {
        const bool comes = event.kind == EventKind::map;
        comes ? end.ranges.add(address, event.bytes) : end.ranges.remove(address, event.bytes);
        write_entry(comes ? "segment_map" : "segment_unmap", event.nanoseconds, address,
                    event.bytes);
      }
      if (event.kind == EventKind::mark)
        write_moment("mark", 0, reading.tags[event.tag].operator_name, event.nanoseconds);
      if (event.kind == EventKind::step) write_moment("step", ++steps, "ended", event.nanoseconds);
    }
    add_unknown(held, end);
    return end;
  }

  // Adds what no event is about: it was there before the first and is still there. Its place is not
  // known, so it gets a segment at address 0.
  static void add_unknown(Held rest, End& end) {
    for (const auto& [address, part] : end.parts)
      rest.allocated[static_cast<std::size_t>(part.category)] -= part.bytes;
    for (const auto& [begin, stop] : end.ranges.ends()) rest.reserved -= stop - begin;
    if (rest.reserved > 0) end.ranges.add(0, rest.reserved);
    std::uintptr_t address = 0;
    for (std::size_t i = 0; i < kCategoryCount; address += rest.allocated[i++])
      if (rest.allocated[i] > 0)
        end.parts[address] = {address,
                              rest.allocated[i],
                              static_cast<Category>(i),
                              {.operator_name = "allocated before the recording"}};
  }

  void write_entry(std::string_view action, std::int64_t nanoseconds, std::uintptr_t address,
                   std::size_t bytes, const Part* part = nullptr) {
    begin_entry(action, nanoseconds);
    pickle_.item("addr", address);
    pickle_.item("size", bytes);
    if (part) pickle_.item("category", memory::name(part->category));
    write_frames(part);
    end_entry();
  }

  void write_moment(std::string_view kind, unsigned number, std::string_view name,
                    std::int64_t nanoseconds) {
    begin_entry("snapshot", nanoseconds);
    pickle_.item("category", "unknown");
    pickle_.text("frames");
    pickle_.begin_list();
    write_frame(kind, number, name);
    end_entry();
  }

  void begin_entry(std::string_view action, std::int64_t nanoseconds) {
    pickle_.begin_dict();
    pickle_.item("action", action);
    pickle_.item("stream", 0);
    pickle_.item("time_us", static_cast<std::uint64_t>(nanoseconds / 1000));
  }
  void end_entry() {
    pickle_.end_dict();
    pickle_.append();
  }

  void write_segment(std::size_t device, const std::map<std::uintptr_t, Part>& parts,
                     std::uintptr_t begin, std::uintptr_t end) {
    const auto first = parts.lower_bound(begin), last = parts.lower_bound(end);
    std::size_t allocated = 0;
    for (auto part = first; part != last; ++part) allocated += part->second.bytes;
    pickle_.begin_dict();
    pickle_.item("device", device);
    pickle_.item("address", begin);
    pickle_.item("total_size", end - begin);
    pickle_.item("allocated_size", allocated);
    pickle_.item("active_size", allocated);
    pickle_.item("stream", 0);
    pickle_.item("segment_type", "large");
    write_frames(nullptr);
    pickle_.text("blocks");
    pickle_.begin_list();
    std::uintptr_t at = begin;
    for (auto part = first; part != last; ++part) {
      write_block({at, part->first - at}, "inactive");
      write_block(part->second, "active_allocated");
      at = part->first + part->second.bytes;
    }
    write_block({at, end - at}, "inactive");
    end_entry();
  }

  void write_block(const Part& part, std::string_view state) {
    if (part.bytes == 0) return;
    pickle_.begin_dict();
    pickle_.item("address", part.address);
    pickle_.item("size", part.bytes);
    pickle_.item("requested_size", part.bytes);
    pickle_.item("state", state);
    write_frames(state == "inactive" ? nullptr : &part);
    end_entry();
  }

  // Writes operator, layer and category as though each called the one before.
  void write_frames(const Part* part) {
    pickle_.text("frames");
    if (!part) return pickle_.begin_list();
    const Tag& tag = part->tag;
    const auto [known, is_new] =
        frames_.try_emplace({tag.operator_name, tag.file, tag.line, tag.layer, part->category});
    if (!is_new) return pickle_.get(known->second);
    pickle_.begin_list();
    write_frame(tag.file, tag.line, tag.operator_name);
    if (*tag.layer != '\0') write_frame("layer", 0, tag.layer);
    write_frame("category", 0, memory::name(part->category));
    known->second = pickle_.put();
  }

  void write_frame(std::string_view file, unsigned line, std::string_view name) {
    pickle_.begin_dict();
    pickle_.item("filename", file);
    pickle_.item("line", line);
    pickle_.item("name", name);
    pickle_.end_dict();
    pickle_.append();
  }

  Pickle pickle_;
  std::map<std::tuple<const char*, const char*, unsigned, const char*, Category>, std::uint32_t>
      frames_;
};

}  // namespace

void write_pytorch_snapshot(const std::string& path, const std::vector<Run>& runs) {
  Snapshot(path).write(runs);
}

}  // namespace ebb::memory::detail
