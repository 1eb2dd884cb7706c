#pragma once
#include "ebb/core/kernels/workers.h"

namespace ebb::tests {

// Sets the number of compute threads for its lifetime.
class Threads {
 public:
  explicit Threads(int threads) : before_(Workers::instance().threads()) {
    Workers::instance().set_threads(threads);
  }
  ~Threads() { Workers::instance().set_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

}  // namespace ebb::tests
