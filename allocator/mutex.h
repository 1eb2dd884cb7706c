// Locks of an allocator.
#pragma once

#include <atomic>
#include <cstdint>

#include "ebb/allocator/no_copy.h"

namespace ebb::memory {

namespace detail {
// A mutex known to the fork() handlers. They take every mutex before a fork and release it after,
// in parent and child. A child forked while another thread was inside finds the mutex free and the
// guarded state whole.
class ForkSafe : NoCopy {
 public:
  virtual void lock() noexcept = 0;
  virtual void unlock() noexcept = 0;
  /// Releases it in a child, whose only thread holds it: waiting threads do not exist there.
  virtual void free_in_child() noexcept = 0;

 protected:
  ForkSafe();
  ~ForkSafe();
};
}  // namespace detail

/// For sections of nanoseconds: one compare-and-swap to lock, one exchange to unlock, inline. A
/// waiting thread tries less and less often for some microseconds and then sleeps. Not recursive.
class Mutex final : detail::ForkSafe {
 public:
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
  static constexpr std::uint32_t kFree = 0, kTaken = 1, kAwaited = 2;  // awaited: taken, and a
                                                                       // thread may sleep on it
  void wait() noexcept;
  void wake() noexcept;

  std::atomic<std::uint32_t> word_ = kFree;
};

/// For sections that may take milliseconds: first come, first served, so that a thread that takes
/// it again and again lets others in between. Not recursive.
class FairMutex final : detail::ForkSafe {
 public:
  void lock() noexcept override;
  void unlock() noexcept override;
  void free_in_child() noexcept override {
    serving_.store(next_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint32_t> next_ = 0;     // ticket of the next thread to come
  std::atomic<std::uint32_t> serving_ = 0;  // ticket that holds the lock
};

/// Holds a mutex for its scope.
template <class AnyMutex>
class [[nodiscard]] Guard : NoCopy {
 public:
  explicit Guard(AnyMutex& mutex) noexcept : mutex_(mutex) { mutex_.lock(); }
  ~Guard() { mutex_.unlock(); }

 private:
  AnyMutex& mutex_;
};

}  // namespace ebb::memory
