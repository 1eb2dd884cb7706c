#pragma once
#include <atomic>
#include <mutex>
#include <string>
#include <thread>

#include "ebb/allocator/watch.h"
#include "ebb/core/base/error.h"

namespace ebb::detail {

// The lock of a session or compiled step. An allocation in the middle of a run may make watch calls
// (allocator/watch.h). A watch call that would wait for ever gets an Error instead.
class SessionMutex {
 public:
  // Names for messages, static text: "Session", "this session".
  SessionMutex(const char* what, const char* it) noexcept : what_(what), it_(it) {}
  // Throws Error if this thread is already inside the session, and if a watch call would wait for
  // another thread, whose run may be waiting for that call.
  void lock() {
    if (is_mine())
      throw Error('[' + std::string(what_) + "] " + it_ +
                  " is in the middle of something on this thread; what is called because memory is "
                  "short may use others, but not this one");
    if (!mutex_.try_lock()) {
      if (memory::is_in_watch_call())
        throw Error('[' + std::string(what_) + "] another thread is using " + it_ +
                    ", and what is called because memory is short must not wait for it");
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
  const char* const what_;
  const char* const it_;
  std::mutex mutex_;
  std::atomic<std::thread::id> owner_;
};

}  // namespace ebb::detail
