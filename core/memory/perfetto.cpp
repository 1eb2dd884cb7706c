// Recordings as traces for ui.perfetto.dev and chrome://tracing.
#include <set>

#include "ebb/core/memory/trace.h"

namespace ebb::memory::detail {

namespace {
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
  const auto trace = path.ends_with(".json") ? make_json_trace(path) : make_packet_trace(path);
  for (const Run& run : runs) write(*trace, run);
  trace->commit();
}

}  // namespace ebb::memory::detail
