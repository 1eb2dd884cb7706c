#pragma once
#include <cstddef>

namespace ebb::tests {

// Counts calls of malloc and its kind, by any thread, while it is alive. Where a sanitizer has
// taken malloc over already, it counts nothing and `works` is false.
class HeapCount {
 public:
  HeapCount() noexcept;
  ~HeapCount();
  HeapCount(const HeapCount&) = delete;
  HeapCount& operator=(const HeapCount&) = delete;

  std::size_t allocations() const noexcept;
  static const bool works;
};

}  // namespace ebb::tests
