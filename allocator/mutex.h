// Locks of an allocator.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace ebb::memory {

namespace detail {
// A mutex known to the fork() handlers. They take every mutex before a fork and release it after,
// in parent and child. A child forked while another thread was inside finds the mutex free and the
// guarded state whole.
class ForkSafe {
 public:
  ForkSafe(const ForkSafe&) = delete;
  ForkSafe& operator=(const ForkSafe&) = delete;

  virtual void lock() noexcept = 0;
  virtual void unlock() noexcept = 0;
  /// Releases it in a child, whose only thread holds it: waiting threads do not exist there.
  virtual void free_in_child() noexcept { unlock(); }

 protected:
  ForkSafe() noexcept;
  ~ForkSafe();

 private:
  friend struct ForkList;
  ForkSafe* next_ = nullptr;
  ForkSafe* previous_ = nullptr;
};
}  // namespace detail

/// For sections of nanoseconds. Not recursive.
class Mutex final : detail::ForkSafe {
 public:
  Mutex() noexcept = default;

  void lock() noexcept override { mutex_.lock(); }
  void unlock() noexcept override { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

/// For sections that may take milliseconds: first come, first served, so that a thread that takes
/// it again and again lets others in between. Not recursive.
class FairMutex final : detail::ForkSafe {
 public:
  FairMutex() noexcept = default;

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
