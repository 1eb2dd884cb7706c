#pragma once

namespace ebb::detail {

// The public function that the calling thread is in, where it is made of others; else null.
inline const char*& called() noexcept {
  thread_local constinit const char* function = nullptr;
  return function;
}

// In a public function that applies others: what they refuse is said in its name (message() in
// error.h), whose shapes are then those that they were given. What the user gave is best checked
// before, by check() in core/ops/shape_rules.h.
class CalledScope {
 public:
  // A function that is set already stays. Null changes nothing.
  explicit CalledScope(const char* function) noexcept : previous_(called()) {
    if (!previous_) called() = function;
  }
  ~CalledScope() { called() = previous_; }
  CalledScope(const CalledScope&) = delete;
  CalledScope& operator=(const CalledScope&) = delete;

 private:
  const char* const previous_;
};

}  // namespace ebb::detail
