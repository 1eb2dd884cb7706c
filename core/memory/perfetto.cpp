// Chrome's Trace Event Format, which ui.perfetto.dev and chrome://tracing open.
#include <spdlog/fmt/fmt.h>

#include <iterator>
#include <set>

#include "ebb/core/memory/json.h"
#include "ebb/core/memory/writers.h"

namespace ebb::memory::detail {

namespace {

// Receives what a trace shows, in no order of time. Times are nanoseconds of a steady clock. Parts
// of one tag at one address never overlap.
class Trace {
 public:
  explicit Trace(const std::string& path) : file_(path) { file_.text() = R"({"traceEvents":[)"; }

  // All calls that follow are about this process, and its parts have these tags.
  void begin_process(const std::string& name, const std::vector<Tag>& tags) {
    ++id_;
    tags_.clear();
    for (const Tag& tag : tags)
      tags_.push_back({json_string(tag.operator_name),
                       json_string(fmt::format("{}:{}", tag.file, tag.line)),
                       json_string(tag.layer)});
    add('M', 0, R"("name":"process_name","args":{{"name":{}}})", json_string(name));
    add('M', 0, R"("name":"thread_name","args":{{"name":"steps"}})");
  }

  void allocated(std::int64_t at, const ByCategory& bytes) {
    std::string split;
    std::size_t sum = 0;
    for (std::size_t i = 0; i < kCategoryCount; ++i) {
      split += fmt::format(R"({}"{}":{})", i == 0 ? "" : ",",
                           memory::name(static_cast<Category>(i)), bytes[i]);
      sum += bytes[i];
    }
    add('C', at, R"("name":"allocated by category","args":{{{}}})", split);
    add('C', at, R"("name":"allocated","args":{{"bytes":{}}})", sum);
  }

  void reserved(std::int64_t at, std::size_t bytes) {
    add('C', at, R"("name":"reserved","args":{{"bytes":{}}})", bytes);
  }

  void step(std::int64_t begin, std::int64_t end, std::size_t number) {
    add('X', begin, R"("dur":{},"name":"step {}")", microseconds(end - begin), number);
  }

  void mark(std::int64_t at, const char* name) {
    add('i', at, R"("s":"p","name":{})", json_string(name));
  }

  void open(std::int64_t at, const Part& part) {
    const TagText& tag = tags_[part.tag];
    add('b', at, R"({},"args":{{"bytes":{},"line":{},"layer":{}}})", text_of(part), part.bytes,
        tag.line, tag.layer);
  }

  void close(std::int64_t at, const Part& part) { add('e', at, "{}", text_of(part)); }

  void commit() {
    file_.text() += "\n]}\n";
    file_.commit();
  }

 private:
  static std::string microseconds(std::int64_t nanoseconds) {
    return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
  }

  template <class... Args>
  void add(char phase, std::int64_t at, fmt::format_string<Args...> text, Args&&... args) {
    std::string& to = file_.text();
    fmt::format_to(std::back_inserter(to), R"({}{{"ph":"{}","pid":{},"tid":{},"ts":{},)",
                   to.ends_with('[') ? "\n" : ",\n", phase, id_, id_, microseconds(at));
    fmt::format_to(std::back_inserter(to), text, std::forward<Args>(args)...);
    to += '}';
  }

  // Perfetto makes a track of each identity in a category, named after its first slice.
  std::string text_of(const Part& part) {
    return fmt::format(R"("cat":"{}","id2":{{"local":"{:#x} {}"}},"name":{})",
                       memory::name(part.category), part.address, part.tag, tags_[part.tag].name);
  }

  struct TagText {
    std::string name, line, layer;  // in quotes
  };

  PieceFile file_;
  std::size_t id_ = 0;
  std::vector<TagText> tags_;
};

constexpr std::size_t kSamples = 20'000;

// Writes samples. A group of many events has two: where it had most, and at its end.
void write_allocated(Trace& trace, const EventLog::Reading& reading, std::int64_t begin) {
  const std::vector<Event>& events = reading.events;
  const std::size_t group = 1 + events.size() / kSamples;
  Held held = reading.before;
  ByCategory written = held.allocated;
  trace.allocated(begin, held.allocated);
  Held most;
  std::int64_t when = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    held.apply(events[i]);
    if (i % group == 0 || held.allocated_bytes() > most.allocated_bytes()) {
      most = held;
      when = events[i].nanoseconds;
    }
    if (i % group + 1 < group && i + 1 < events.size()) continue;
    if (most.allocated != written) trace.allocated(when, most.allocated);
    if (held.allocated != most.allocated) trace.allocated(events[i].nanoseconds, held.allocated);
    written = held.allocated;
  }
}

// Writes one run as a process.
void write(Trace& trace, const Run& run) {
  const EventLog::Reading reading = run.log->read();
  const std::int64_t begin = reading.events.empty() ? 0 : reading.events.front().nanoseconds;
  std::string name = run.name;
  if (reading.dropped > 0)
    name += ", without " + std::to_string(reading.dropped) + " earlier events";
  trace.begin_process(name, reading.tags);
  write_allocated(trace, reading, begin);
  Held held = reading.before;
  trace.reserved(begin, held.reserved);
  Parts parts;
  std::set<std::uintptr_t> open;
  std::int64_t step_begin = begin;
  std::size_t steps = 0;
  for (const Event& event : reading.events) {
    const std::int64_t now = event.nanoseconds;
    held.apply(event);
    const auto [gone, come, continues] = parts.after(event);
    if (gone) {
      if (open.erase(gone->address) == 0) trace.open(begin, *gone);
      trace.close(now, *gone);
    }
    if (come) {
      trace.open(now, *come);
      open.insert(come->address);
    }
    if (event.kind == EventKind::map || event.kind == EventKind::unmap)
      trace.reserved(now, held.reserved);
    if (event.kind == EventKind::mark) trace.mark(now, reading.tags[event.tag].operator_name);
    if (event.kind == EventKind::step) trace.step(step_begin, now, ++steps);
    if (event.kind == EventKind::mark || event.kind == EventKind::step) step_begin = now;
  }
}

}  // namespace

void write_perfetto(const std::string& path, const std::vector<Run>& runs) {
  Trace trace(path);
  for (const Run& run : runs) write(trace, run);
  trace.commit();
}

}  // namespace ebb::memory::detail
