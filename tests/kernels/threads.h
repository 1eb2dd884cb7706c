#pragma once
#include "ebb/core/kernels/workers.h"

namespace ebb::tests {

// So many threads compute while it lives.
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
