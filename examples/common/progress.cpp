#include "ebb/examples/common/progress.h"

#include <unistd.h>

#include <cstdio>

#include "ebb/core/memory/figures.h"
#include "ebb/core/memory/memory.h"

namespace examples {

Progress::Progress(std::string label, bool epochs)
    : label_(std::move(label)), line_(isatty(STDOUT_FILENO) == 1), epochs_(epochs) {}

void Progress::step(const ebb::Device& device, std::int64_t epoch, std::int64_t epochs,
                    std::span<const double> losses) {
  if (!line_) return;
  ++steps_;
  const auto now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - then_).count();
  if (seconds < 0.1) return;
  const ebb::memory::Stats stats = ebb::memory::stats(device);
  std::printf("\r\033[K%s %lld/%lld", label_.c_str(), static_cast<long long>(epoch),
              static_cast<long long>(epochs));
  if (!losses.empty()) std::printf("  loss %.4g", losses.back());
  std::printf("  %.0f steps/s  allocated %s, peak %s",
              static_cast<double>(steps_ - steps_then_) / seconds,
              ebb::memory::figure(stats.allocated.current).c_str(),
              ebb::memory::figure(stats.allocated.peak).c_str());
  std::fflush(stdout);
  then_ = now;
  steps_then_ = steps_;
  shown_ = true;
}

void Progress::epoch(std::int64_t epoch, std::int64_t epochs, std::optional<double> loss,
                     const std::string& metric, std::optional<double> value, double seconds) {
  if (!epochs_ || !loss) return;  // a simulated device has nothing to tell
  clear();
  std::printf("epoch %3lld/%lld", static_cast<long long>(epoch), static_cast<long long>(epochs));
  std::printf("   loss %8.5f", *loss);
  if (value) std::printf("   held-out %s %.4f", metric.c_str(), *value);
  std::printf("   %.2f s\n", seconds);
  std::fflush(stdout);
}

void Progress::clear() {
  if (!shown_) return;
  std::fputs("\r\033[K", stdout);
  std::fflush(stdout);
  shown_ = false;
}

}  // namespace examples
