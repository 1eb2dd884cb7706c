// Recordings as traces for ui.perfetto.dev and chrome://tracing.
#include <spdlog/fmt/fmt.h>

#include <map>
#include <set>
#include <tuple>

#include "ebb/core/memory/trace.h"

namespace ebb::memory::detail {

namespace {
constexpr std::size_t kSamples = 20'000;

// Writes one run as a process.
class Process {
 public:
  Process(Trace& trace, EventLog::Reading reading)
      : trace_(trace),
        reading_(std::move(reading)),
        begin_(reading_.events.empty() ? 0 : reading_.events.front().nanoseconds) {}

  void write(const std::string& name) {
    std::string label = name;
    if (reading_.dropped > 0) label += fmt::format(", without {} earlier events", reading_.dropped);
    trace_.begin_process(label);
    write_allocated();
    std::size_t reserved = reading_.before.reserved;
    trace_.reserved(begin_, reserved);
    std::int64_t step_begin = begin_;
    std::size_t steps = 0;
    for (const Event& event : reading_.events) {
      const std::int64_t now = event.nanoseconds;
      const auto [gone, come] = parts_.after(event);
      if (gone) {
        if (open_.erase(gone->address) == 0) trace_.open(begin_, numbered(*gone));
        trace_.close(now, numbered(*gone));
      }
      if (come) {
        trace_.open(now, numbered(*come));
        open_.insert(come->address);
      }
      if (event.kind == EventKind::map || event.kind == EventKind::unmap) {
        event.kind == EventKind::map ? reserved += event.bytes : reserved -= event.bytes;
        trace_.reserved(now, reserved);
      }
      if (event.kind == EventKind::mark) trace_.mark(now, reading_.tags[event.tag].operator_name);
      if (event.kind == EventKind::step) trace_.step(step_begin, now, ++steps);
      if (event.kind == EventKind::mark || event.kind == EventKind::step) step_begin = now;
    }
  }

 private:
  // Writes samples. A group of many events has two: where it had most, and at its end.
  void write_allocated() {
    const std::vector<Event>& events = reading_.events;
    const std::size_t group = 1 + events.size() / kSamples;
    Held held = reading_.before;
    ByCategory written = held.allocated;
    trace_.allocated(begin_, held.allocated);
    Held most;
    std::int64_t when = 0;
    for (std::size_t i = 0; i < events.size(); ++i) {
      held.apply(events[i]);
      if (i % group == 0 || held.allocated_bytes() > most.allocated_bytes()) {
        most = held;
        when = events[i].nanoseconds;
      }
      if (i % group + 1 < group && i + 1 < events.size()) continue;
      if (most.allocated != written) trace_.allocated(when, most.allocated);
      if (held.allocated != most.allocated) trace_.allocated(events[i].nanoseconds, held.allocated);
      written = held.allocated;
    }
  }

  Trace::Block numbered(const Part& part) {
    const Tag& tag = part.tag;
    const auto [place, is_new] =
        tags_.try_emplace({tag.operator_name, tag.file, tag.line, tag.layer}, tags_.size() + 1);
    return {part, place->second};
  }

  Trace& trace_;
  const EventLog::Reading reading_;
  const std::int64_t begin_;
  Parts parts_{reading_.tags};
  std::set<std::uintptr_t> open_;
  std::map<std::tuple<const char*, const char*, unsigned, const char*>, std::size_t> tags_;
};

}  // namespace

void write_perfetto(const std::string& path, const std::vector<Run>& runs) {
  const auto trace = path.ends_with(".json") ? make_json_trace(path) : make_packet_trace(path);
  for (const Run& run : runs) Process(*trace, run.log->read()).write(run.name);
  trace->commit();
}

}  // namespace ebb::memory::detail
