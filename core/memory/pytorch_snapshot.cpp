// The pickle that torch.cuda.memory._dump_snapshot writes, as torch/cuda/_memory_viz.py and
// pytorch.org/memory_viz read it.
#include <concepts>
#include <iterator>
#include <map>
#include <string_view>

#include "ebb/core/memory/json.h"
#include "ebb/core/memory/writers.h"

namespace ebb::memory::detail {

namespace {

using ebb::detail::little_endian;

// Writes Python values, with the opcodes of pickle's second protocol that PyTorch's page knows.
class Pickle {
 public:
  explicit Pickle(const std::string& path) : file_(path) { file_.text() = "\x80\x02"; }

  void begin_list() { file_.text() += ']'; }
  void append() { file_.text() += 'a'; }  // the last value to the list before it
  template <class... Values>
  void dict(const Values&... keys_and_values) {
    file_.text() += "}(";
    (value(keys_and_values), ...);
    file_.text() += 'u';
  }

  void value(const std::integral auto& number) {
    file_.text() += "\x8a\x08" + little_endian(static_cast<std::uint64_t>(number), 8);
  }
  void value(std::string_view text) {
    once("text " + std::string(text), [&] {
      const std::string valid = utf8(text);
      file_.text() += 'X' + little_endian(valid.size(), 4) + valid;
    });
  }
  void value(const std::invocable auto& write) { write(); }

  // Writes a value and names it; with the same key again, only that name.
  void once(const std::string& key, const auto& write) {
    const auto [place, is_new] = names_.try_emplace(key, names_.size());
    const std::size_t name = place->second;
    if (is_new) {
      write();
      file_.text() += 'r' + little_endian(name, 4);
    } else {
      file_.text() += name < 1 << 8 ? 'h' + little_endian(name, 1) : 'j' + little_endian(name, 4);
    }
  }

  void commit() {
    file_.text() += '.';
    file_.commit();
  }

 private:
  PieceFile file_;
  std::map<std::string, std::size_t> names_;
};

// Memory of a run after its last event.
struct EndState {
  std::size_t device;
  std::vector<Tag> tags = {};
  std::map<std::uintptr_t, Part> parts = {};
  std::map<std::uintptr_t, bool> is_mapped{{0, false}};  // from an address to the next one

  void map(std::uintptr_t begin, std::size_t bytes, bool comes = true) {
    const std::uintptr_t end = begin + bytes;
    const bool beyond = std::prev(is_mapped.upper_bound(end))->second;
    is_mapped.erase(is_mapped.lower_bound(begin), is_mapped.upper_bound(end));
    is_mapped[begin] = comes;
    is_mapped[end] = beyond;
  }

  // Calls visit(begin, end) for each mapped range, the adjacent ones joined.
  void for_each_range(const auto& visit) const {
    std::uintptr_t begin = 0;
    bool was_mapped = false;
    for (const auto& [address, mapped] : is_mapped) {
      if (was_mapped && !mapped) visit(begin, address);
      if (!was_mapped) begin = address;
      was_mapped = mapped;
    }
  }
};

class Snapshot {
 public:
  explicit Snapshot(const std::string& path) : pickle_(path) {}

  void write(const std::vector<Run>& runs) {
    std::vector<EndState> states;
    const auto traces = [&] {
      pickle_.begin_list();
      for (const Run& run : runs) {
        write_trace(run, states.emplace_back(EndState{.device = states.size()}));
        pickle_.append();
      }
    };
    const auto segments = [&] {
      pickle_.begin_list();
      for (const EndState& state : states)
        state.for_each_range([&](std::uintptr_t begin, std::uintptr_t end) {
          write_segment(state, begin, end);
          pickle_.append();
        });
    };
    pickle_.dict(
        "device_traces", traces, "segments", segments, "allocator_settings",
        [&] { pickle_.dict(); }, "external_annotations", [&] { pickle_.begin_list(); });
    pickle_.commit();
  }

 private:
  void write_trace(const Run& run, EndState& state) {
    const EventLog::Reading reading = run.log->read();
    state.tags = reading.tags;
    Held held = reading.before;
    Parts parts;
    unsigned steps = 0;
    pickle_.begin_list();
    // Names the run. PyTorch's page fails on categories without an unknown one.
    write_moment("run", 0, run.name, 0);
    for (const Event& event : reading.events) {
      held.apply(event);
      const auto [gone, come, continues] = parts.after(event);
      if (gone) {
        state.map(gone->address, gone->bytes);
        state.parts.erase(gone->address);
        for (const char* const action : {"free_requested", "free_completed"})
          write_part(action, event.nanoseconds, state, *gone);
      }
      if (come) {
        state.map(come->address, come->bytes);
        state.parts.insert_or_assign(come->address, *come);
        write_part("alloc", event.nanoseconds, state, *come);
      }
      if (event.kind == EventKind::map || event.kind == EventKind::unmap) {
        const bool comes = event.kind == EventKind::map;
        const auto address = reinterpret_cast<std::uintptr_t>(event.address);
        state.map(address, event.bytes, comes);
        write_entry(comes ? "segment_map" : "segment_unmap", event.nanoseconds, address,
                    event.bytes, "unknown", [&] { pickle_.begin_list(); });
      }
      if (event.kind == EventKind::mark)
        write_moment("mark", 0, reading.tags[event.tag].operator_name, event.nanoseconds);
      if (event.kind == EventKind::step) write_moment("step", ++steps, "ended", event.nanoseconds);
    }
    add_unknown(held, state);
  }

  // Adds what no event is about: it was there before the first and is still there. Its place is not
  // known, so it gets a segment at address 0.
  static void add_unknown(Held rest, EndState& state) {
    for (const auto& [address, part] : state.parts)
      rest.allocated[static_cast<std::size_t>(part.category)] -= part.bytes;
    state.for_each_range(
        [&](std::uintptr_t begin, std::uintptr_t end) { rest.reserved -= end - begin; });
    if (rest.reserved > 0) state.map(0, rest.reserved);
    state.tags.push_back({.operator_name = "allocated before the recording"});
    const auto tag = static_cast<std::uint32_t>(state.tags.size() - 1);
    std::uintptr_t address = 0;
    for (std::size_t i = 0; i < kCategoryCount; address += rest.allocated[i++])
      if (rest.allocated[i] > 0)
        state.parts[address] = {address, rest.allocated[i], static_cast<Category>(i), tag};
  }

  void write_entry(std::string_view action, std::int64_t nanoseconds, std::uintptr_t address,
                   std::size_t bytes, std::string_view category, const auto& frames) {
    pickle_.dict("action", action, "stream", 0, "time_us", nanoseconds / 1000, "addr", address,
                 "size", bytes, "category", category, "frames", frames);
    pickle_.append();
  }

  void write_part(std::string_view action, std::int64_t nanoseconds, const EndState& state,
                  const Part& part) {
    write_entry(action, nanoseconds, part.address, part.bytes, memory::name(part.category),
                [&] { write_frames(state, part); });
  }

  void write_moment(std::string_view kind, unsigned number, std::string_view name,
                    std::int64_t nanoseconds) {
    write_entry("snapshot", nanoseconds, 0, 0, "unknown", [&] {
      pickle_.begin_list();
      write_frame(kind, number, name);
    });
  }

  void write_segment(const EndState& state, std::uintptr_t begin, std::uintptr_t end) {
    const auto first = state.parts.lower_bound(begin), last = state.parts.lower_bound(end);
    std::size_t allocated = 0;
    for (auto part = first; part != last; ++part) allocated += part->second.bytes;
    const auto blocks = [&] {
      pickle_.begin_list();
      std::uintptr_t at = begin;
      for (auto part = first; part != last; ++part) {
        write_block(at, part->first - at, "inactive", [&] { pickle_.begin_list(); });
        write_block(part->first, part->second.bytes, "active_allocated",
                    [&] { write_frames(state, part->second); });
        at = part->first + part->second.bytes;
      }
      write_block(at, end - at, "inactive", [&] { pickle_.begin_list(); });
    };
    pickle_.dict("device", state.device, "address", begin, "total_size", end - begin,
                 "allocated_size", allocated, "stream", 0, "blocks", blocks);
  }

  void write_block(std::uintptr_t address, std::size_t bytes, std::string_view state,
                   const auto& frames) {
    if (bytes == 0) return;
    pickle_.dict("address", address, "size", bytes, "requested_size", bytes, "state", state,
                 "frames", frames);
    pickle_.append();
  }

  // Writes operator, layer and category as though each called the one before.
  void write_frames(const EndState& state, const Part& part) {
    const Tag& tag = state.tags[part.tag];
    const char* const category = memory::name(part.category);
    pickle_.once(
        "frames " + std::to_string(state.device) + ' ' + std::to_string(part.tag) + ' ' + category,
        [&] {
          pickle_.begin_list();
          write_frame(tag.file, tag.line, tag.operator_name);
          if (*tag.layer != '\0') write_frame("layer", 0, tag.layer);
          write_frame("category", 0, category);
        });
  }

  void write_frame(std::string_view file, unsigned line, std::string_view name) {
    pickle_.dict("filename", file, "line", line, "name", name);
    pickle_.append();
  }

  Pickle pickle_;
};

}  // namespace

void write_pytorch_snapshot(const std::string& path, const std::vector<Run>& runs) {
  Snapshot(path).write(runs);
}

}  // namespace ebb::memory::detail
