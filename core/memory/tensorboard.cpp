// Recordings as TensorBoard's event files.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>

#include "ebb/core/files/events.h"
#include "ebb/core/memory/writers.h"

namespace ebb::memory::detail {

namespace {

// Follows a recording from step to step.
class Steps {
 public:
  Steps(PieceFile& file, const Run& run, const EventLog::Reading& reading)
      : file_(file),
        run_(run),
        began_(reading.began),
        before_(reading.start.allocated_bytes()),
        held_(reading.start) {
    begin_step();
    for (const Sample& sample : reading.samples) {
      if (sample.peak.bytes > peak_.bytes) peak_ = sample.peak;
      held_ = sample.after;
      steps_ += sample.steps;
      if (sample.steps > 0) write(steps_, sample.end);
    }
    for (const Event& event : reading.events) {
      held_.apply(event);
      if (held_.allocated_bytes() > peak_.bytes) peak_ = {held_.allocated_bytes(), held_.allocated};
      if (event.kind == EventKind::step) write(++steps_, event.nanoseconds);
    }
    if (!reading.events.empty() && reading.events.back().kind != EventKind::step)
      write(steps_ + 1, reading.events.back().nanoseconds);
  }

 private:
  void begin_step() { peak_ = {held_.allocated_bytes(), held_.allocated}; }

  void write(std::int64_t step, std::int64_t nanoseconds) {
    const auto number = [](std::size_t bytes) { return static_cast<double>(bytes); };
    std::vector<ebb::detail::Scalar> scalars = {
        {"memory/allocated", number(held_.allocated_bytes())},
        {"memory/reserved", number(held_.reserved)},
        {"memory/peak", number(peak_.bytes)}};
    if (run_.predicted_peak_bytes > 0)
      scalars.push_back({"memory/predicted_peak", number(before_ + run_.predicted_peak_bytes)});
    if (run_.limit_bytes != kNoLimit) scalars.push_back({"memory/limit", number(run_.limit_bytes)});
    for (std::size_t i = 0; i < kCategoryCount; ++i)
      scalars.push_back({std::string("peak/") + memory::name(static_cast<Category>(i)),
                         number(peak_.by_category[i])});
    file_.text() +=
        ebb::detail::event_record(began_ + 1e-9 * static_cast<double>(nanoseconds), step, scalars);
    begin_step();
  }

  PieceFile& file_;
  const Run& run_;
  const double began_;
  const std::size_t before_;  // bytes
  Held held_;
  Peak peak_;  // of this step so far
  std::int64_t steps_ = 0;
};

}  // namespace

void write_tensorboard(const std::string& folder, const std::vector<Run>& runs) {
  std::map<std::string, std::size_t> names;  // and how often they were there
  for (const Run& run : runs) {
    const EventLog::Reading reading = run.log->read();
    std::string name = run.name;
    std::ranges::replace(name, '/', '_');
    if (const std::size_t count = ++names[name]; count > 1) name += fmt::format(" {}", count);
    PieceFile file(ebb::detail::event_file(folder + "/" + name, reading.began, "memory"));
    file.text() += ebb::detail::event_record(reading.began);
    Steps(file, run, reading);
    file.commit();
  }
}

}  // namespace ebb::memory::detail
