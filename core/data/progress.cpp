#include "ebb/core/data/progress.h"

#include <unistd.h>

#include <iostream>
#include <string_view>

#include "ebb/core/base/error.h"
#include "ebb/core/base/formatted.h"

namespace ebb {

namespace {

constexpr std::size_t kColumns = 79;  // some terminals break the line in the eightieth column

double since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

// Cuts the line to kColumns, at whole UTF-8 characters. A character of three or more bytes may be
// two columns wide.
std::string_view cut(std::string_view line) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto byte = static_cast<unsigned char>(line[i]);
    if (byte >= 0x80 && byte < 0xc0) continue;  // continues a character
    columns += byte < 0xe0 ? 1 : 2;
    if (columns > kColumns) return line.substr(0, i);
  }
  return line;
}

}  // namespace

std::string detail::duration_text(double seconds) {
  if (seconds < 9.95) return formatted("%.1f s", seconds);
  if (seconds < 119.5) return formatted("%.0f s", seconds);
  if (seconds < 7170) return formatted("%.0f min", seconds / 60);
  return formatted("%.1f h", seconds / 3600);
}

Progress::Progress(std::int64_t steps, const ProgressOptions& options, CallSite site)
    : out_(options.out ? *options.out : std::cerr),
      terminal_(options.terminal.value_or(!options.out && isatty(STDERR_FILENO) == 1)),
      between_(options.seconds.value_or(terminal_ ? 0.1 : 10)),
      label_(options.label.empty() ? "" : options.label + ' '),
      steps_(steps) {
  const detail::CallSiteScope at(site);
  if (steps < 0) detail::refuse("progress", "steps = " + std::to_string(steps) + " is below 0");
  if (!(between_ >= 0))
    detail::refuse("progress", "seconds = " + std::to_string(between_) + " is not at least 0");
}

Progress::~Progress() {
  try {
    finish();
  } catch (...) {  // a stream that throws shows nothing
  }
}

std::string Progress::line(double seconds, bool is_last) const {
  std::string text = label_ + std::to_string(done_);
  if (steps_ > 0) {
    const double part = static_cast<double>(done_) / static_cast<double>(steps_);
    text += '/' + std::to_string(steps_) + detail::formatted("  %.0f %%", 100 * part);
  }
  if (loss_) text += detail::formatted("  loss %.4g", *loss_);
  const double rate = seconds > 0 ? static_cast<double>(done_) / seconds : 0;
  if (rate > 0) text += detail::formatted(rate < 10 ? "  %.2f steps/s" : "  %.0f steps/s", rate);
  if (is_last)
    text += "  " + detail::duration_text(seconds);
  else if (rate > 0 && steps_ > done_)
    text += "  " + detail::duration_text(static_cast<double>(steps_ - done_) / rate) + " left";
  return text;
}

void Progress::write(const std::string& line, bool ends) {
  if (terminal_)
    out_ << "\r\033[K" << cut(line) << (ends ? "\n" : "") << std::flush;
  else
    out_ << line << '\n' << std::flush;
}

void Progress::step(std::optional<double> loss) {
  ++done_;
  if (loss) loss_ = loss;
  if (finished_ || since(shown_) < between_) return;
  write(line(since(start_), false), false);
  shown_ = Clock::now();
}

void Progress::finish() {
  if (finished_) return;
  finished_ = true;
  if (done_ > 0) write(line(since(start_), true), true);
}

}  // namespace ebb
