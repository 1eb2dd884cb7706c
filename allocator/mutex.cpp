#include "ebb/allocator/mutex.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <mutex>
#include <vector>

namespace ebb::memory {
namespace {

void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void wake_up(std::atomic<std::uint32_t>& word, int sleepers) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, sleepers, nullptr, nullptr, 0);
}

void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

constexpr int kTries = 64;
constexpr int kMostPauses = 128;  // 255 in all: some 6 us, what a sleep would take

}  // namespace

namespace detail {

// Mutexes in order of construction, which is also the order in which a thread takes several.
struct ForkList {
  static ForkList& get() noexcept {
    static ForkList* const list = new ForkList;  // never destroyed: mutexes with static storage may
                                                 // outlive it
    return *list;
  }

  ForkList() noexcept {
    ::pthread_atfork(
        &before, [] { release([](ForkSafe& each) { each.unlock(); }); },
        [] { release([](ForkSafe& each) { each.free_in_child(); }); });
  }

  static void before() {
    get().mutex.lock();
    for (ForkSafe* each : get().all) each->lock();
  }
  template <class Release>
  static void release(const Release& one) {
    const std::vector<ForkSafe*>& all = get().all;
    for (auto each = all.rbegin(); each != all.rend(); ++each) one(**each);
    get().mutex.unlock();
  }

  std::mutex mutex;
  std::vector<ForkSafe*> all;
};

ForkSafe::ForkSafe() {
  const std::lock_guard guard(ForkList::get().mutex);
  ForkList::get().all.push_back(this);
}
ForkSafe::~ForkSafe() {
  const std::lock_guard guard(ForkList::get().mutex);
  std::erase(ForkList::get().all, this);
}

}  // namespace detail

// Each try takes the cache line from the holder, which usually wants the lock again at once. So the
// time between tries doubles: two threads that allocate all the time then take turns of several
// blocks.
void Mutex::wait() noexcept {
  for (int pauses = 1; pauses <= kMostPauses; pauses *= 2) {
    for (int i = 0; i < pauses; ++i) pause();
    std::uint32_t expected = kFree;
    if (word_.load(std::memory_order_relaxed) == kFree &&
        word_.compare_exchange_strong(expected, kTaken, std::memory_order_acquire,
                                      std::memory_order_relaxed))
      return;
  }
  while (word_.exchange(kAwaited, std::memory_order_acquire) != kFree) sleep_while(word_, kAwaited);
}

void Mutex::wake() noexcept { wake_up(word_, 1); }

void FairMutex::lock() noexcept {
  const std::uint32_t mine = next_.fetch_add(1, std::memory_order_relaxed);
  for (int tries = 0;; ++tries) {
    const std::uint32_t now = serving_.load(std::memory_order_acquire);
    if (now == mine) return;
    if (tries < kTries)
      pause();
    else
      sleep_while(serving_, now);
  }
}

void FairMutex::unlock() noexcept {
  const std::uint32_t next = serving_.load(std::memory_order_relaxed) + 1;
  serving_.store(next, std::memory_order_seq_cst);
  if (next_.load(std::memory_order_seq_cst) != next) wake_up(serving_, INT_MAX);
}

}  // namespace ebb::memory
