// Chrome's Trace Event Format, which ui.perfetto.dev and chrome://tracing open.
#include <spdlog/fmt/fmt.h>

#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "ebb/core/memory/json.h"
#include "ebb/core/memory/writers.h"

namespace ebb::memory::detail {

namespace {
constexpr std::size_t kSamples = 20'000;

// Writes one run as a process.
class Process {
 public:
  Process(PieceFile& file, std::size_t id, EventLog::Reading reading)
      : file_(file),
        id_(id),
        reading_(std::move(reading)),
        begin_(reading_.events.empty() ? 0 : reading_.events.front().nanoseconds) {}

  void write(const std::string& name) {
    std::string label = name;
    if (reading_.dropped > 0) label += fmt::format(", without {} earlier events", reading_.dropped);
    add('M', 0, R"("name":"process_name","args":{{"name":{}}})", json_string(label));
    add('M', 0, R"("name":"thread_name","args":{{"name":"steps"}})");
    write_allocated();
    std::size_t reserved = reading_.before.reserved;
    write_reserved(begin_, reserved);
    std::int64_t step_begin = begin_;
    std::size_t steps = 0;
    for (const Event& event : reading_.events) {
      const auto [gone, come] = parts_.after(event);
      if (gone) {
        if (open_.erase(gone->address) == 0) open(*gone, begin_);
        add('e', event.nanoseconds, "{}", text_of(*gone));
      }
      if (come) {
        open(*come, event.nanoseconds);
        open_.insert(come->address);
      }
      if (event.kind == EventKind::map || event.kind == EventKind::unmap) {
        event.kind == EventKind::map ? reserved += event.bytes : reserved -= event.bytes;
        write_reserved(event.nanoseconds, reserved);
      }
      if (event.kind == EventKind::mark)
        add('i', event.nanoseconds, R"("s":"p","name":{})",
            json_string(reading_.tags[event.tag].operator_name));
      if (event.kind == EventKind::step)
        add('X', step_begin, R"("dur":{},"name":"step {}")",
            microseconds(event.nanoseconds - step_begin), ++steps);
      if (event.kind == EventKind::mark || event.kind == EventKind::step)
        step_begin = event.nanoseconds;
    }
  }

 private:
  static std::string microseconds(std::int64_t nanoseconds) {
    return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
  }

  template <class... Args>
  void add(char phase, std::int64_t nanoseconds, fmt::format_string<Args...> text, Args&&... args) {
    std::string& to = file_.text();
    fmt::format_to(std::back_inserter(to), R"({}{{"ph":"{}","pid":{},"tid":{},"ts":{},)",
                   to.ends_with('[') ? "\n" : ",\n", phase, id_, id_, microseconds(nanoseconds));
    fmt::format_to(std::back_inserter(to), text, std::forward<Args>(args)...);
    to += '}';
  }

  // Writes samples. A group of many events has two: where it had most, and at its end.
  void write_allocated() {
    const std::vector<Event>& events = reading_.events;
    const std::size_t group = 1 + events.size() / kSamples;
    Held held = reading_.before;
    ByCategory written = held.allocated;
    write_allocated(begin_, held);
    Held most;
    std::int64_t when = 0;
    for (std::size_t i = 0; i < events.size(); ++i) {
      held.apply(events[i]);
      if (i % group == 0 || held.allocated_bytes() > most.allocated_bytes()) {
        most = held;
        when = events[i].nanoseconds;
      }
      if (i % group + 1 < group && i + 1 < events.size()) continue;
      if (most.allocated != written) write_allocated(when, most);
      if (held.allocated != most.allocated) write_allocated(events[i].nanoseconds, held);
      written = held.allocated;
    }
  }

  void write_allocated(std::int64_t nanoseconds, const Held& held) {
    std::string split;
    for (std::size_t i = 0; i < kCategoryCount; ++i)
      split += fmt::format(R"({}"{}":{})", i == 0 ? "" : ",",
                           memory::name(static_cast<Category>(i)), held.allocated[i]);
    add('C', nanoseconds, R"("name":"allocated by category","args":{{{}}})", split);
    add('C', nanoseconds, R"("name":"allocated","args":{{"bytes":{}}})", held.allocated_bytes());
  }

  void write_reserved(std::int64_t nanoseconds, std::size_t bytes) {
    add('C', nanoseconds, R"("name":"reserved","args":{{"bytes":{}}})", bytes);
  }

  void open(const Part& part, std::int64_t nanoseconds) {
    add('b', nanoseconds, R"({},"args":{{"bytes":{}{}}})", text_of(part), part.bytes,
        text_of(part.tag).arguments);
  }

  // Perfetto makes a track of each identity in a category, named after its first slice.
  std::string text_of(const Part& part) {
    const TagText& text = text_of(part.tag);
    return fmt::format(R"("cat":"{}","id2":{{"local":"{:#x} {}"}},"name":{})",
                       memory::name(part.category), part.address, text.index, text.name);
  }

  struct TagText {
    std::size_t index;
    std::string name, arguments;
  };
  const TagText& text_of(const Tag& tag) {
    const auto [place, is_new] =
        tags_.try_emplace({tag.operator_name, tag.file, tag.line, tag.layer});
    if (is_new) {
      const std::string line = json_string(fmt::format("{}:{}", tag.file, tag.line));
      place->second = {tags_.size(), json_string(tag.operator_name),
                       R"(,"line":)" + line + R"(,"layer":)" + json_string(tag.layer)};
    }
    return place->second;
  }

  PieceFile& file_;
  const std::size_t id_;
  const EventLog::Reading reading_;
  const std::int64_t begin_;
  Parts parts_{reading_.tags};
  std::set<std::uintptr_t> open_;
  std::map<std::tuple<const char*, const char*, unsigned, const char*>, TagText> tags_;
};

}  // namespace

void write_perfetto(const std::string& path, const std::vector<Run>& runs) {
  PieceFile file(path);
  file.text() = R"({"traceEvents":[)";
  for (std::size_t i = 0; i < runs.size(); ++i)
    Process(file, i + 1, runs[i].log->read()).write(runs[i].name);
  file.text() += "\n]}\n";
  file.commit();
}

}  // namespace ebb::memory::detail
