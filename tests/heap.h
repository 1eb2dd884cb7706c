// The heap of the host, which fails when a test says so, and counts.
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
