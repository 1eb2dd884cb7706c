// A stack of its own that the executing thread can switch to.
#pragma once
#include <cstddef>

namespace ebb::emulated {

class Fiber {
 public:
  // Stands for the calling thread's own stack.
  Fiber();
  // Makes a new stack whose first step is entry(), which must never return. The page below the
  // stack faults when it overflows.
  explicit Fiber(void (*entry)());
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Suspends this fiber, which is running, and continues `other`.
  void go_to(Fiber& other) noexcept;
  // Must be the first call in entry().
  static void arrived() noexcept;
  // Makes the fiber begin anew, wherever it was.
  void reset() noexcept;
  // For the thread sanitizer: whether the accesses of this fiber, which runs, count.
  void count_accesses(bool counts) noexcept;
  // Releases in the name of this fiber while another one runs, and lets its accesses count.
  void release(void* at, const Fiber& running) noexcept;
  // Tells the address sanitizer that all frames on this stack are dead.
  void abandon() noexcept;

  bool is_below(const void* address) const noexcept;  // in the guard page
  void* top() const noexcept { return bottom_ + bytes_; }

 private:
  std::byte* bottom_ = nullptr;
  std::size_t bytes_ = 0;
  void* stands_ = nullptr;
  void (*entry_)() = nullptr;
  void* fake_stack_ = nullptr;  // of the address sanitizer
  void* shadow_ = nullptr;      // of the thread sanitizer
  bool accesses_count_ = true;
};

}  // namespace ebb::emulated
