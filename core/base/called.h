#pragma once
#include "ebb/allocator/no_copy.h"

namespace ebb::detail {

// Public function that the calling thread is in, if it is made of other public functions; otherwise
// null.
inline const char*& called() noexcept {
  thread_local constinit const char* function = nullptr;
  return function;
}

// Opened by a public function made of others, whose errors then carry its name (message() in
// error.h) but the shapes of the inner calls. So it should check the user's arguments first, by
// check() in core/ops/shape_rules.h.
class CalledScope : NoCopy {
 public:
  // A function that is already set stays. Null changes nothing.
  explicit CalledScope(const char* function) noexcept : previous_(called()) {
    if (!previous_) called() = function;
  }
  ~CalledScope() { called() = previous_; }

 private:
  const char* const previous_;
};

}  // namespace ebb::detail
