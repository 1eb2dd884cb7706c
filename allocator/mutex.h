// The locks of an allocator.
#pragma once

#include <atomic>
#include <cstdint>

namespace ebb::memory {

namespace detail {
// Known to the handlers of fork(), which take every mutex before and give it back after, in parent
// and child: a child that was made while another thread was inside finds it free, and what it
// guards whole.
class ForkSafe {
 public:
  ForkSafe(const ForkSafe&) = delete;
  ForkSafe& operator=(const ForkSafe&) = delete;

  virtual void lock() noexcept = 0;
  virtual void unlock() noexcept = 0;
  /// In a child, whose only thread has it: those who waited are not there.
  virtual void free_in_child() noexcept = 0;

 protected:
  ForkSafe() noexcept;
  ~ForkSafe();

 private:
  friend struct ForkList;
  ForkSafe* next_ = nullptr;
  ForkSafe* previous_ = nullptr;
};
}  // namespace detail

/// For what takes nanoseconds: one compare-and-swap in, one exchange out, inline. Whoever has to
/// wait tries for about a microsecond and then sleeps. Not recursive.
class Mutex final : detail::ForkSafe {
 public:
  Mutex() noexcept = default;

  void lock() noexcept override {
    std::uint32_t expected = kFree;
    if (!word_.compare_exchange_strong(expected, kTaken, std::memory_order_acquire,
                                       std::memory_order_relaxed)) [[unlikely]]
      wait();
  }
  void unlock() noexcept override {
    if (word_.exchange(kFree, std::memory_order_release) == kAwaited) [[unlikely]]
      wake();
  }
  void free_in_child() noexcept override { word_.store(kFree, std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kFree = 0, kTaken = 1, kAwaited = 2;  // awaited: taken as well
  void wait() noexcept;
  void wake() noexcept;

  std::atomic<std::uint32_t> word_ = kFree;
};

/// For what may take milliseconds: those who wait get it in the order in which they came, so that
/// one who takes it again and again lets others in between. Not recursive.
class FairMutex final : detail::ForkSafe {
 public:
  FairMutex() noexcept = default;

  void lock() noexcept override;
  void unlock() noexcept override;
  void free_in_child() noexcept override {
    serving_.store(next_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint32_t> next_ = 0;     // number for whoever comes next
  std::atomic<std::uint32_t> serving_ = 0;  // whose turn it is
};

/// Holds one of them for its scope.
template <class AnyMutex>
class [[nodiscard]] Guard {
 public:
  explicit Guard(AnyMutex& mutex) noexcept : mutex_(mutex) { mutex_.lock(); }
  ~Guard() { mutex_.unlock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  AnyMutex& mutex_;
};

}  // namespace ebb::memory
