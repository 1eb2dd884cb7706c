#pragma once
#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

#include "ebb/core/base/call_site.h"
#include "ebb/core/device/device.h"

namespace ebb {

struct ProgressOptions {
  std::string label = {};       // beginning of each line
  std::ostream* out = nullptr;  // must outlive the Progress; none: standard error
  std::optional<bool> terminal =
      {};  // whether `out` is one; default: found out, false for other streams
  std::optional<double> seconds = {};  // between two lines; default: 0.1 on a terminal, else 10
  std::optional<Device> device = {};   // whose memory is shown too
};

// Progress of a loop: on a terminal one line that is overwritten, elsewhere plain lines at long
// intervals. The last line stays.
//
//   Progress progress(epochs * batches.size(), {.label = "training"});
//   ...
//     progress.step(loss.item<float>());
//
//   training 1200/4500  27 %  loss 0.3123  512 steps/s  6.4 s left
//
// With a device a second line has its allocated bytes as a bar of categories, one colour each (with
// NO_COLOR in the environment their initials), on the scale of the most ever reserved. Lines have
// at most 79 columns, and fit a narrower terminal.
//
// A step costs a look at the clock. One thread at a time.
class Progress {
 public:
  // `steps`: their total; 0 if it is unknown, then neither per cent nor time left are shown. Throws
  // Error for negative steps or seconds.
  explicit Progress(std::int64_t steps, const ProgressOptions& options = {},
                    CallSite site = CallSite::here());
  ~Progress();  // finishes
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Counts one step.
  void step(std::optional<double> loss = {});
  // Takes the lines off a terminal until the next step: for other output.
  void clear();
  // Writes the last line, once: number of steps, rate and time.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  std::string line(double seconds, bool is_last) const;
  void write(const std::string& line, bool ends);

  std::ostream& out_;
  const bool terminal_;
  const double between_;
  const std::string label_;
  const std::int64_t steps_;
  const std::optional<Device> device_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point shown_ = start_;
  std::int64_t done_ = 0;
  std::optional<double> loss_;
  bool finished_ = false;
};

namespace detail {
// "6.4 s", "90 s", "12 min", "2.5 h".
std::string duration_text(double seconds);
}  // namespace detail

}  // namespace ebb
