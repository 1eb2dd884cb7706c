// Recordings as TensorBoard's event files.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>

#include "ebb/core/files/summary_writer.h"
#include "ebb/core/memory/writers.h"

namespace ebb::memory::detail {

namespace {

void write(SummaryWriter& writer, const Run& run) {
  const EventLog::Reading reading = run.log->read();
  Held held = reading.start;
  Peak peak;  // of the step so far
  const auto reach = [&](const Peak& other) {
    if (other.bytes > peak.bytes) peak = other;
  };
  const auto end_step = [&](std::int64_t step, std::int64_t nanoseconds) {
    const auto add = [&](const std::string& tag, std::size_t bytes) {
      writer.add_scalar(tag, static_cast<double>(bytes), step,
                        reading.began + 1e-9 * static_cast<double>(nanoseconds));
    };
    add("memory/allocated", held.allocated_bytes());
    add("memory/reserved", held.reserved);
    add("memory/peak", peak.bytes);
    for (std::size_t i = 0; i < kCategoryCount; ++i)
      add(std::string("peak/") + memory::name(static_cast<Category>(i)), peak.by_category[i]);
    if (run.predicted_peak_bytes > 0)
      add("memory/predicted_peak", reading.start.allocated_bytes() + run.predicted_peak_bytes);
    if (run.limit_bytes != kNoLimit) add("memory/limit", run.limit_bytes);
    peak = {held.allocated_bytes(), held.allocated};
  };
  std::int64_t steps = 0;
  for (const Sample& sample : reading.samples) {
    reach(sample.peak);
    held = sample.after;
    steps += static_cast<std::int64_t>(sample.steps);
    if (sample.steps > 0) end_step(steps, sample.end);
  }
  reach({held.allocated_bytes(), held.allocated});
  for (const Event& event : reading.events) {
    held.apply(event);
    reach({held.allocated_bytes(), held.allocated});
    if (event.kind == EventKind::step) end_step(++steps, event.nanoseconds);
  }
  if (!reading.events.empty() && reading.events.back().kind != EventKind::step)
    end_step(steps + 1, reading.events.back().nanoseconds);
}

}  // namespace

void write_tensorboard(const std::string& folder, const std::vector<Run>& runs) {
  std::map<std::string, std::size_t> counts;
  for (const Run& run : runs) {
    std::string name = run.name;
    std::ranges::replace(name, '/', '_');
    if (const std::size_t count = ++counts[name]; count > 1) name += fmt::format(" {}", count);
    SummaryWriter writer(folder + "/" + name);
    write(writer, run);
    writer.flush();
  }
}

}  // namespace ebb::memory::detail
