// A lock that costs its first thread no atomic read-modify-write.
#pragma once

#include <atomic>

namespace ebb::memory {

/// Guards an allocator. Exact peaks need one order of all allocations, so there is one lock; most
/// programs allocate from one thread, so that thread should not pay for the others.
///
/// The first thread to enter becomes the *owner*. It enters by storing `inside_` and then reading
/// `owner_` again: two plain moves. The first *visitor* revokes the bias, once and for good, and
/// from then on everybody takes `flag_`, an ordinary test-and-test-and-set spinlock that pauses,
/// then yields.
///
/// Why owner and visitor are never both inside:
///   owner:    inside_ = true;    compiler barrier;   is owner_ still me?
///   visitor:  owner_ = nobody;   membarrier();       is inside_ false?
/// The owner's store and load may be reordered by its processor. membarrier() makes every running
/// thread of the process execute a full barrier, so the owner passes one somewhere in its sequence:
/// before its load, and then the load sees that it lost the bias; or after it, and then its store
/// is visible to the visitor, who waits until the owner has left. The visitor's acquire load of
/// `inside_` meets the owner's release store on leaving, which orders the owner's past before the
/// visitor. Where the kernel offers no membarrier the lock starts without a bias.
///
/// Not recursive. Entered through Guard only.
class BiasedLock {
 public:
  BiasedLock() noexcept;
  BiasedLock(const BiasedLock&) = delete;
  BiasedLock& operator=(const BiasedLock&) = delete;

  class [[nodiscard]] Guard {
   public:
    explicit Guard(BiasedLock& lock) noexcept : lock_(lock), by_bias_(lock.enter_by_bias()) {
      if (!by_bias_) [[unlikely]]
        lock_.enter_by_flag();
    }
    ~Guard() { (by_bias_ ? lock_.inside_ : lock_.flag_).store(false, std::memory_order_release); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    BiasedLock& lock_;
    const bool by_bias_;
  };

  /// Whether some thread still enters for nothing. For tests and benchmarks.
  bool biased() const noexcept { return owner_.load(std::memory_order_relaxed) != &kNobody; }

 private:
  // Identifies the calling thread. A thread may get the mark of one that has ended, and with it the
  // bias; see the acquire load below.
  static const char* this_thread() noexcept {
    static thread_local constinit char mark = 0;
    return &mark;
  }

  bool enter_by_bias() noexcept {
    const char* self = this_thread();
    if (owner_.load(std::memory_order_relaxed) != self) return false;
    // What an owner that has ended did under the same mark comes before us.
    (void)inside_.load(std::memory_order_acquire);
    inside_.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (owner_.load(std::memory_order_acquire) == self) [[likely]]
      return true;
    inside_.store(false, std::memory_order_release);
    return false;
  }
  void enter_by_flag() noexcept;
  void revoke() noexcept;

  static constexpr char kNobody = 0;  // the owner once the bias is revoked

  std::atomic<const char*> owner_ = nullptr;  // set under flag_; null until the first entry
  std::atomic<bool> inside_ = false;          // by the owner only: it is in, or about to find out
  std::atomic<bool> flag_ = false;            // everybody else's lock
};

}  // namespace ebb::memory
