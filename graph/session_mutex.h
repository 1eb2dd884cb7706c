#pragma once
#include <atomic>
#include <mutex>
#include <thread>

#include "ebb/allocator/watch.h"
#include "ebb/core/base/error.h"

namespace ebb::detail {

// A session's lock. An allocation in the middle of a run may make watch calls (allocator/watch.h).
// A watch call that would wait for ever gets an Error instead.
class SessionMutex {
 public:
  // Throws Error if this thread is already inside the session, and if a watch call would wait for
  // another thread, whose run may be waiting for that call.
  void lock() {
    if (is_mine())
      throw Error(
          "[Session] this session is in the middle of something on this thread; what is called "
          "because memory is short may use other sessions, but not this one");
    if (!mutex_.try_lock()) {
      if (memory::is_in_watch_call())
        throw Error(
            "[Session] another thread is using this session, and what is called because memory "
            "is short must not wait for it");
      mutex_.lock();
    }
    owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  // Takes the lock if it is free.
  bool try_lock() noexcept {
    if (is_mine() || !mutex_.try_lock()) return false;
    owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    return true;
  }
  void unlock() noexcept {
    owner_.store({}, std::memory_order_relaxed);
    mutex_.unlock();
  }
  bool is_mine() const noexcept {
    return owner_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }

 private:
  std::mutex mutex_;
  std::atomic<std::thread::id> owner_;
};

}  // namespace ebb::detail
