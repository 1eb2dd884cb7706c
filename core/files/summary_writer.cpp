#include "ebb/core/files/summary_writer.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "ebb/core/base/error.h"
#include "ebb/core/base/log.h"
#include "ebb/core/files/events.h"

namespace ebb {

namespace {

double seconds_since_1970(std::chrono::system_clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

// Differs between all writers of this machine.
std::string ending() {
  static std::atomic<unsigned> count{0};
  return std::to_string(::getpid()) + "." + std::to_string(count++);
}

}  // namespace

SummaryWriter::SummaryWriter(const std::string& folder)
    : path_(detail::event_file(folder, seconds_since_1970(begin_), ending())),
      pending_(detail::event_record(seconds_since_1970(begin_))) {
  flush();
}

SummaryWriter::~SummaryWriter() {
  try {
    flush();
  } catch (const std::exception& problem) {
    detail::log_warning(problem.what());
  }
}

void SummaryWriter::add_scalar(const std::string& tag, double value, std::int64_t step) {
  const Clock::time_point now = Clock::now();
  pending_ += detail::event_record(seconds_since_1970(now), step, {{tag, value}});
  if (now - flushed_ >= std::chrono::seconds(2)) flush();
}

void SummaryWriter::flush() {
  flushed_ = Clock::now();
  std::ofstream file(path_, std::ios::binary | std::ios::app);
  file << pending_;
  file.close();
  if (!file) {
    const std::string cause = std::generic_category().message(errno);
    std::error_code ignored;
    std::filesystem::resize_file(path_, written_, ignored);  // readers stop at half a record
    detail::refuse_file(path_ + ": cannot be written: " + cause);
  }
  written_ += pending_.size();
  pending_.clear();
}

}  // namespace ebb
