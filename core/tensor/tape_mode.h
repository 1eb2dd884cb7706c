#pragma once
#include <cstdint>
#include <utility>

#include "ebb/allocator/category.h"
#include "ebb/core/base/no_copy.h"

namespace ebb {

class Recorder;

namespace detail {

class EdgeCollector;
class LaunchRow;
class Trace;

// Values that an operator must not write.
enum class NanCheck : std::uint8_t { none, nan, not_finite };

// Mode of the calling thread's eager operators.
struct TapeMode {
  bool records = true;   // false under NoGrad, and where ebb's own code records nothing
  bool no_grad = false;  // under NoGrad
  memory::Category category = memory::Category::temporary;  // of what operators allocate
  EdgeCollector* collector = nullptr;   // set while recompute runs its function unrecorded
  Recorder* tracing = nullptr;          // graph that records all operators, or null
  Trace* trace = nullptr;               // compile() traces a function into that graph; else null
  NanCheck nan_check = NanCheck::none;  // values that operators must not write, in runs too:
                                        // DetectNan
  LaunchRow* row = nullptr;             // updates wait here to run as one step; null: they run at
                                        // once
};

inline TapeMode& tape_mode() noexcept {
  thread_local constinit TapeMode mode;
  return mode;
}

// The mode for results without a history.
inline TapeMode without_history(memory::Category category = tape_mode().category) noexcept {
  TapeMode mode = tape_mode();
  mode.category = category;
  mode.records = false;
  mode.collector = nullptr;
  return mode;
}

// Puts the mode back at the end of a scope, which may set another or change tape_mode().
class TapeModeScope : NoCopy {
 public:
  explicit TapeModeScope(TapeMode mode = tape_mode()) noexcept
      : previous_(std::exchange(tape_mode(), mode)) {}
  ~TapeModeScope() { tape_mode() = previous_; }

 private:
  const TapeMode previous_;
};

}  // namespace detail
}  // namespace ebb
