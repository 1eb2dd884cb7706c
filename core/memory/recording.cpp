#include "ebb/core/memory/recording.h"

#include <exception>
#include <utility>

#include "ebb/allocator/out_of_memory_observer.h"
#include "ebb/core/base/error.h"
#include "ebb/core/base/log.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/json.h"
#include "ebb/core/memory/snapshot.h"
#include "ebb/core/memory/writers.h"

namespace ebb::memory {

Recording::Recording(const Device& device, const RecordingOptions& options)
    : device_(device), log_(std::make_shared<EventLog>(options.max_events)) {
  if (!device_.runtime().allocator().set_recorder(log_))
    throw Error("[Recording] " + device_.name() +
                " is being recorded already; that recording has to end first");
}

Recording::~Recording() { device_.runtime().allocator().set_recorder(nullptr); }

void Recording::mark(std::string_view name) noexcept { log_->mark(name); }

void Recording::step() noexcept { log_->step(); }

std::vector<RecordedEvent> Recording::events() const {
  const EventLog::Reading reading = log_->read();
  std::vector<RecordedEvent> events;
  events.reserve(reading.events.size());
  Held held = reading.before;
  for (const Event& event : reading.events) {
    held.apply(event);
    events.push_back({event, reading.tags[event.tag], held.allocated_bytes(), held.reserved});
  }
  return events;
}

std::size_t Recording::dropped() const noexcept { return log_->dropped(); }

void Recording::write_json(const std::string& path) const {
  detail::PieceFile file(path);
  detail::write_recording(device_.name(), log_->read(), file);
  file.commit();
}

void Recording::write_perfetto(const std::string& path) const {
  detail::write_perfetto(path, {{device_.name(), log_}});
}

void Recording::write_pytorch_snapshot(const std::string& path) const {
  detail::write_pytorch_snapshot(path, {{device_.name(), log_}});
}

void Recording::write_tensorboard(const std::string& folder) const {
  const std::size_t limit = device_.runtime().allocator().limit_bytes();
  detail::write_tensorboard(folder, {{device_.name(), log_, limit}});
}

void snapshot_on_out_of_memory(std::string path) {
  if (path.empty()) {
    detail::set_out_of_memory_observer({});
    return;
  }
  detail::set_out_of_memory_observer(
      [path = std::move(path)](const detail::OutOfMemoryReport& report) {
        try {
          detail::PieceFile file(path);
          detail::write_snapshot(report.facts, report.holders, report.recorder.get(), file);
          file.commit();
        } catch (const std::exception& problem) {
          ebb::detail::log_warning("the snapshot of an out-of-memory error was not written: " +
                                   std::string(problem.what()));
        }
      });
}

}  // namespace ebb::memory
