#pragma once
#include "ebb/core/random/random.h"

namespace ebb::memory::detail {

// Restores the calling thread's random state at its end: a prediction must not change what the
// program computes afterwards.
class Undrawn {
 public:
  Undrawn() noexcept : before_(ebb::detail::generator()) {}
  ~Undrawn() { ebb::detail::generator() = before_; }
  Undrawn(const Undrawn&) = delete;
  Undrawn& operator=(const Undrawn&) = delete;

 private:
  const ebb::detail::Generator before_;
};

}  // namespace ebb::memory::detail
