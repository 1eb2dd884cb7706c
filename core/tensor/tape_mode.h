#pragma once
#include <cstdint>

#include "ebb/allocator/category.h"

namespace ebb {

class Recorder;

namespace detail {

class EdgeCollector;
class LaunchRow;

// Values that an operator is not to write.
enum class Unwanted : std::uint8_t { nothing, nan, not_finite };

// How the calling thread's eager operators run at the moment.
struct TapeMode {
  bool records = true;                                      // false under NoGrad
  memory::Category category = memory::Category::temporary;  // of what operators allocate
  EdgeCollector* collector = nullptr;    // while recompute runs its function unrecorded
  Recorder* tracing = nullptr;           // the graph that all operators are recorded in, if any
  Unwanted detects = Unwanted::nothing;  // of what operators write, in runs too: DetectNan
  LaunchRow* row = nullptr;              // where updates wait to be run as one, if they do
};

inline TapeMode& tape_mode() noexcept {
  thread_local constinit TapeMode mode;
  return mode;
}

// The mode of what has no history.
inline TapeMode without_history() noexcept {
  TapeMode mode = tape_mode();
  mode.records = false;
  mode.collector = nullptr;
  return mode;
}

// Sets the mode for a scope.
class TapeModeScope {
 public:
  explicit TapeModeScope(TapeMode mode) noexcept : previous_(tape_mode()) { tape_mode() = mode; }
  ~TapeModeScope() { tape_mode() = previous_; }
  TapeModeScope(const TapeModeScope&) = delete;
  TapeModeScope& operator=(const TapeModeScope&) = delete;

 private:
  const TapeMode previous_;
};

}  // namespace detail
}  // namespace ebb
