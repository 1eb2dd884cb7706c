// The host's heap, with failures on request and counts.
#pragma once
#include <cstddef>

namespace ebb::tests {

// Makes operator new throw std::bad_alloc once, in the thread that asked for it.
struct HeapFault {
  static void arm(std::size_t successes = 0) noexcept;  // after so many that still succeed
  static bool disarm() noexcept;                        // whether it was still armed
  // Objects of operator new that live, of all threads.
  static std::ptrdiff_t live() noexcept;
};

// Counts calls of malloc and its relatives by any thread, while it lives. If a sanitizer has
// replaced malloc, `works` is false and nothing is counted.
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
