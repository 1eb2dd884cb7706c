#pragma once

#include "ebb/core/base/half.h"
#include "ebb/core/tensor/tensor.h"

namespace ebb::benchmarks {

// One element of an f32 or bf16 tensor.
inline float value_of(const Tensor& x, std::initializer_list<std::int64_t> index = {}) {
  return x.dtype() == DType::bf16 ? static_cast<float>(x.item<BFloat16>(index))
                                  : x.item<float>(index);
}

// Makes steps of the program being measured.
class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  virtual ~Worker() = default;
  // Starts a step. The returned tensor may not be ready yet: reading it waits for all steps started
  // before. Undefined if there is nothing to wait for.
  virtual Tensor step() = 0;
};

}  // namespace ebb::benchmarks
