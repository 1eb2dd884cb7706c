#include "ebb/allocator/biased_lock.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

namespace ebb::memory {
namespace {

bool membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

// Most waits end within a microsecond, some only with the munmap of a large segment. Never sleeps:
// a sleeper is starved by a thread that comes back as fast as it can.
class Backoff {
 public:
  void wait() noexcept {
    if (pauses_ == kPauses) {
      std::this_thread::yield();
      return;
    }
    ++pauses_;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

 private:
  static constexpr int kPauses = 64;
  int pauses_ = 0;
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
