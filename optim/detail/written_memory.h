#pragma once
#include <unordered_set>

#include "ebb/core/tensor/tensor.h"

namespace ebb::optim {

// The memory that a step writes: storage of concrete tensors, or a graph's variables.
class WrittenMemory {
 public:
  void add(const Tensor& tensor) { written_.insert(memory_of(tensor)); }
  // Whether the step could change this value, so that it must be copied first.
  bool holds(const Tensor& value) const { return written_.contains(memory_of(value)); }
  // Whether the two are the same value already.
  static bool same(const Tensor& a, const Tensor& b) noexcept;

 private:
  static const void* memory_of(const Tensor& tensor) noexcept;
  std::unordered_set<const void*> written_;
};

}  // namespace ebb::optim
