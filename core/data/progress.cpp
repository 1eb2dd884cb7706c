#include "ebb/core/data/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "ebb/core/base/error.h"
#include "ebb/core/base/formatted.h"
#include "ebb/core/device/runtime.h"

namespace ebb {

namespace {

// Columns for a line on this stream: at most 79, and one fewer than the terminal has, since some
// break a line in their last column.
std::size_t columns_of(const std::ostream& out) {
  winsize size = {};
  const int file = &out == &std::cout ? STDOUT_FILENO : &out == &std::cerr ? STDERR_FILENO : -1;
  if (ioctl(file, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 79;
  return std::min<std::size_t>(79, size.ws_col - 1u);
}

double since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

// Cuts the line to so many columns, at whole UTF-8 characters. A character of three or more bytes
// may be two columns wide.
std::string_view cut(std::string_view line, std::size_t most) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto byte = static_cast<unsigned char>(line[i]);
    if (byte >= 0x80 && byte < 0xc0) continue;  // continues a character
    columns += byte < 0xe0 ? 1 : 2;
    if (columns > most) return line.substr(0, i);
  }
  return line;
}

// The bytes by category, then those reserved alone, in so many columns.
std::string bar(const memory::Stats& stats, std::size_t columns) {
  constexpr const char* colours[] = {"34", "33", "35", "32", "36", "90", "31"};
  constexpr const char* initials[] = {"P", "G", "O", "A", "I", "W", "T"};
  static_assert(std::size(colours) == memory::kCategoryCount);
  const char* const no_color = std::getenv("NO_COLOR");
  const bool coloured = !no_color || !*no_color;
  const std::size_t most = std::max<std::size_t>(stats.reserved.peak, 1);
  const auto column = [&](std::size_t bytes) { return (2 * columns * bytes + most) / (2 * most); };
  std::string text;
  std::size_t bytes = 0, at = 0;
  for (std::size_t i = 0; i < memory::kCategoryCount; ++i) {
    bytes += stats.by_category[i].current;
    if (column(bytes) <= at) continue;
    if (coloured) text += std::string("\033[") + colours[i] + 'm';
    for (; at < column(bytes); ++at) text += coloured ? "\u2588" : initials[i];
  }
  if (coloured) text += "\033[0m";
  for (; at < column(stats.reserved.current); ++at) text += '.';
  return text + std::string(columns - std::min(at, columns), ' ');
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
      steps_(steps),
      device_(options.device) {
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
  const memory::Stats stats = device_ ? device_->runtime().allocator().stats() : memory::Stats{};
  std::string memory = memory::format_bytes(stats.allocated.current) + " of " +
                       memory::format_bytes(stats.reserved.current) + " reserved, peak " +
                       memory::format_bytes(stats.allocated.peak);
  if (!terminal_) {
    out_ << line << (device_ ? "  " + memory : "") << '\n' << std::flush;
    return;
  }
  const std::size_t columns = columns_of(out_);
  out_ << "\r\033[K" << cut(line, columns);
  if (device_ && !ends) {  // below; the cursor goes back, and to the left for an echoed ^C
    if (memory.size() + 2 < columns) memory = "  " + memory;
    out_ << "\n\033[K" << bar(stats, columns - std::min(columns, memory.size()))
         << cut(memory, columns) << "\033[A\r";
  }
  out_ << (!ends ? "" : device_ ? "\n\033[K" : "\n") << std::flush;
}

void Progress::clear() {
  if (terminal_) out_ << "\r\033[J" << std::flush;
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
