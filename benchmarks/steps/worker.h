#pragma once

#include "ebb/core/tensor/tensor.h"

namespace ebb::benchmarks {

// Makes steps, of whatever is measured.
class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  virtual ~Worker() = default;
  // The result, which may be still to come: reading it waits for all that was asked for until then.
  // Undefined where there is nothing to wait for.
  virtual Tensor step() = 0;
};

}  // namespace ebb::benchmarks
