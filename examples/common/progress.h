#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "ebb/core/device/device.h"

namespace examples {

// What a user sees of a training under way: a line that changes on a terminal, none in a pipe, and
// where it is asked for a line per epoch in both.
class Progress {
 public:
  // Shows nothing.
  Progress() = default;
  // On the standard output.
  Progress(std::string label, bool epochs);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(const ebb::Device& device, std::int64_t epoch, std::int64_t epochs,
            std::span<const double> losses);
  void epoch(std::int64_t epoch, std::int64_t epochs, std::optional<double> loss,
             const std::string& metric, std::optional<double> value, double seconds);
  void clear();  // the changing line

 private:
  using Clock = std::chrono::steady_clock;

  const std::string label_;
  const bool line_ = false, epochs_ = false;
  bool shown_ = false;  // the line is on the screen
  std::int64_t steps_ = 0, steps_then_ = 0;
  Clock::time_point then_ = Clock::now();  // when it was last written, at steps_then_
};

}  // namespace examples
