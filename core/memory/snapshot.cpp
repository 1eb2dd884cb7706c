#include "ebb/core/memory/snapshot.h"

#include <exception>
#include <utility>

#include "ebb/allocator/out_of_memory_observer.h"
#include "ebb/core/base/log.h"
#include "ebb/core/files/output_file.h"
#include "ebb/core/memory/json.h"

namespace ebb::memory {

namespace {
// Does not throw, as an OutOfMemory is about to be thrown.
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
  detail::set_out_of_memory_observer([path = std::move(path)](
                                         const detail::OutOfMemoryReport& report) {
    try {
      ebb::detail::OutputFile file(path);
      detail::write_snapshot(report.facts, report.holders, report.recorder.get(),
                             [&](std::string_view text) { file.write(text.data(), text.size()); });
      file.commit();
    } catch (const std::exception& problem) {
      log_failure(problem);
    }
  });
}

}  // namespace ebb::memory
