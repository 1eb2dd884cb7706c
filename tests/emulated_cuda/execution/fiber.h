// A stack of its own, on which the executing thread goes on when it is told to.
#pragma once
#include <cstddef>

namespace ebb::emulated {

class Fiber {
 public:
  // Of the calling thread's own stack.
  Fiber();
  // Its first step is entry(), which never returns. A page below the stack ends what overflows.
  explicit Fiber(void (*entry)());
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // This one, which runs, stands still until somebody goes to it.
  void go_to(Fiber& other) noexcept;
  // The first thing that entry() does.
  static void arrived() noexcept;
  // Forgets where it stood: it begins anew.
  void reset() noexcept;
  // What stands on the stack is over: the address sanitizer need not guard it.
  void abandon() noexcept;

  bool is_below(const void* address) const noexcept;  // in the page that ends an overflow
  void* top() const noexcept { return bottom_ + bytes_; }

 private:
  std::byte* bottom_ = nullptr;
  std::size_t bytes_ = 0;
  void* stands_ = nullptr;
  void (*entry_)() = nullptr;
  void* fake_stack_ = nullptr;  // of the address sanitizer
  void* shadow_ = nullptr;      // of the thread sanitizer
};

}  // namespace ebb::emulated
