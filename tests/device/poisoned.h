#pragma once
#include "ebb/core/device/runtime.h"

namespace ebb::tests {

// While it lives, Device::cpu() fills memory with NaN before and after its use, so that reading a
// freed buffer shows.
class Poisoned {
 public:
  Poisoned() : was_(runtime().poisons()) { runtime().set_poisons(true); }
  ~Poisoned() { runtime().set_poisons(was_); }
  Poisoned(const Poisoned&) = delete;
  Poisoned& operator=(const Poisoned&) = delete;

 private:
  static Runtime& runtime() { return Device::cpu().runtime(); }
  const bool was_;
};

}  // namespace ebb::tests
