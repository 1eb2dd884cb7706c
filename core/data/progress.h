#pragma once
#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

#include "ebb/core/base/call_site.h"

namespace ebb {

struct ProgressOptions {
  std::string label = {};       // what each line begins with
  std::ostream* out = nullptr;  // that lives longer; none: the standard error
  std::optional<bool> terminal =
      {};  // whether that is one; else found out, false for other streams
  std::optional<double> seconds = {};  // between two lines; else 0.1 on a terminal, 10 elsewhere
};

// How far a loop is, for whoever looks on: on a terminal one line that is written over, elsewhere
// plain lines, far between, and in the end one that stays.
//
//   Progress progress(epochs * batches.size(), {.label = "training"});
//   ...
//     progress.step(loss.item<float>());
//
//   training 1200/4500  27 %  loss 0.3123  512 steps/s  6.4 s left
//
// A step costs a look at the clock. One thread at a time.
class Progress {
 public:
  // Of so many steps; 0: nobody knows how many, and neither percents nor what is left are shown.
  // Throws Error for fewer than 0, and for seconds below 0.
  explicit Progress(std::int64_t steps, const ProgressOptions& options = {},
                    CallSite site = CallSite::here());
  ~Progress();  // finishes
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // One more is done.
  void step(std::optional<double> loss = {});
  // Writes the last line, once: how many steps there were, at what rate and in what time.
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
