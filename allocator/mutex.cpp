#include "ebb/allocator/mutex.h"

#include <pthread.h>

namespace ebb::memory {
namespace detail {

// Mutexes in order of construction, which is also the order in which a thread takes several.
struct ForkList {
  static ForkList& get() noexcept {
    static ForkList* const list = new ForkList;  // never destroyed: mutexes with static storage may
                                                 // outlive it
    return *list;
  }

  ForkList() noexcept { ::pthread_atfork(&before, &in_parent, &in_child); }

  static void before() {
    get().mutex.lock();
    for (ForkSafe* each = get().first; each; each = each->next_) each->lock();
  }
  static void in_parent() {
    for (ForkSafe* each = get().last; each; each = each->previous_) each->unlock();
    get().mutex.unlock();
  }
  static void in_child() {
    for (ForkSafe* each = get().last; each; each = each->previous_) each->free_in_child();
    get().mutex.unlock();
  }

  void add(ForkSafe& one) noexcept {
    const std::lock_guard guard(mutex);
    one.previous_ = last;
    (last ? last->next_ : first) = &one;
    last = &one;
  }
  void remove(ForkSafe& one) noexcept {
    const std::lock_guard guard(mutex);
    (one.previous_ ? one.previous_->next_ : first) = one.next_;
    (one.next_ ? one.next_->previous_ : last) = one.previous_;
  }

  std::mutex mutex;
  ForkSafe* first = nullptr;
  ForkSafe* last = nullptr;
};

ForkSafe::ForkSafe() noexcept { ForkList::get().add(*this); }
ForkSafe::~ForkSafe() { ForkList::get().remove(*this); }

}  // namespace detail

void FairMutex::lock() noexcept {
  const std::uint32_t mine = next_.fetch_add(1, std::memory_order_relaxed);
  std::uint32_t now = serving_.load(std::memory_order_acquire);
  while (now != mine) {
    serving_.wait(now, std::memory_order_acquire);
    now = serving_.load(std::memory_order_acquire);
  }
}

void FairMutex::unlock() noexcept {
  serving_.fetch_add(1, std::memory_order_release);
  serving_.notify_all();
}

}  // namespace ebb::memory
