#include "ebb/core/memory/snapshot.h"

#include <exception>
#include <utility>

#include "ebb/allocator/out_of_memory_observer.h"
#include "ebb/core/base/log.h"
#include "ebb/core/files/output_file.h"
#include "ebb/core/memory/recording_json.h"

namespace ebb::memory {

void detail::write_snapshot(const std::string& path, const OutOfMemory::Facts& facts,
                            const std::vector<Holder>& holders, const EventLog* recorder) {
  ebb::detail::OutputFile file(path);
  const auto write = [&](std::string_view text) { file.write(text.data(), text.size()); };
  std::string text = out_of_memory_json(facts, holders);
  text.resize(text.size() - 2);  // the object goes on
  write(text + ",\n  \"recording\": ");
  if (recorder)
    write_recording(facts.device, recorder->read(), write);
  else
    write("null\n");
  write("}\n");
  file.commit();
}

namespace {
// In the middle of an OutOfMemory, nothing else may be thrown.
void log_failure(const std::exception& problem) noexcept {
  try {
    ebb::detail::log_warning("the snapshot of an out-of-memory error was not written: " +
                             std::string(problem.what()));
  } catch (...) {  // NOLINT: there is nobody left to tell
  }
}
}  // namespace

void snapshot_on_out_of_memory(std::string path) {
  if (path.empty()) {
    detail::set_out_of_memory_observer({});
    return;
  }
  detail::set_out_of_memory_observer(
      [path = std::move(path)](const detail::OutOfMemoryReport& report) {
        try {
          detail::write_snapshot(path, report.facts, report.holders, report.recorder.get());
        } catch (const std::exception& problem) {
          log_failure(problem);
        }
      });
}

}  // namespace ebb::memory
