#include "ebb/allocator/biased_lock.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace ebb::memory {
namespace {

bool membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

// For waits that are usually shorter than a microsecond, but as long as an munmap at worst.
class Backoff {
 public:
  void wait() noexcept {
    ++waits_;
    if (waits_ <= kPauses) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    } else if (waits_ <= kPauses + kYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

 private:
  static constexpr int kPauses = 64;
  static constexpr int kYields = 64;
  int waits_ = 0;
};

}  // namespace

BiasedLock::BiasedLock() noexcept {
  if (!membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)) owner_ = &kNobody;
}

void BiasedLock::enter_by_flag() noexcept {
  Backoff backoff;
  while (flag_.load(std::memory_order_relaxed) || flag_.exchange(true, std::memory_order_acquire)) {
    backoff.wait();
  }
  const char* owner = owner_.load(std::memory_order_relaxed);
  if (owner == nullptr) {
    owner_.store(this_thread(), std::memory_order_relaxed);  // ours from the next entry on
  } else if (owner != &kNobody && owner != this_thread()) {
    revoke();
  }
}

// Under flag_, so at most one thread revokes, and later ones find the owner out for good.
void BiasedLock::revoke() noexcept {
  owner_.store(&kNobody, std::memory_order_seq_cst);
  membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  Backoff backoff;
  while (inside_.load(std::memory_order_acquire)) backoff.wait();
}

}  // namespace ebb::memory
