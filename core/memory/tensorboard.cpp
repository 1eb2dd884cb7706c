// Recordings as TensorBoard's event files.
#include <algorithm>
#include <map>

#include "ebb/core/files/summary_writer.h"
#include "ebb/core/memory/writers.h"

namespace ebb::memory::detail {

namespace {

void write(SummaryWriter& writer, const Run& run) {
  const EventLog::Reading reading = run.log->read();
  const auto peak_of = [](const Held& held) -> Peak {
    return {held.allocated_bytes(), held.allocated};
  };
  // Sums over all events so far; the peak is of the step alone.
  Sample all{.peak = peak_of(reading.start), .after = reading.start};
  const auto end_step = [&](std::size_t step, std::int64_t nanoseconds) {
    const Held& held = all.after;
    const auto add = [&](const std::string& tag, std::size_t bytes) {
      writer.add_scalar(tag, static_cast<double>(bytes), static_cast<std::int64_t>(step),
                        reading.began + 1e-9 * static_cast<double>(nanoseconds));
    };
    add("memory/allocated", held.allocated_bytes());
    add("memory/reserved", held.reserved);
    add("memory/peak", all.peak.bytes);
    for (std::size_t i = 0; i < kCategoryCount; ++i)
      add(std::string("peak/") + memory::name(static_cast<Category>(i)), all.peak.by_category[i]);
    if (run.predicted_peak_bytes > 0)
      add("memory/predicted_peak", reading.start.allocated_bytes() + run.predicted_peak_bytes);
    if (run.limit_bytes != kNoLimit) add("memory/limit", run.limit_bytes);
    all.peak = peak_of(held);
  };
  for (const Sample& sample : reading.samples) {
    all.add(sample);
    if (sample.steps > 0) end_step(all.steps, sample.end);
  }
  for (const Event& event : reading.events) {
    all.add(event);
    if (event.kind == EventKind::step) end_step(all.steps, event.nanoseconds);
  }
  if (!reading.events.empty() && reading.events.back().kind != EventKind::step)
    end_step(all.steps + 1, reading.events.back().nanoseconds);
}

}  // namespace

void write_tensorboard(const std::string& folder, const std::vector<Run>& runs) {
  std::map<std::string, std::size_t> counts;
  for (const Run& run : runs) {
    std::string name = run.name;
    std::ranges::replace(name, '/', '_');
    if (const std::size_t count = ++counts[name]; count > 1) name += ' ' + std::to_string(count);
    SummaryWriter writer(folder + "/" + name);
    write(writer, run);
    writer.flush();
  }
}

}  // namespace ebb::memory::detail
