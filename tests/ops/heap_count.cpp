#include "ebb/tests/ops/heap_count.h"

#include <atomic>
#include <cerrno>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EBB_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define EBB_SANITIZED 1
#endif
#endif

namespace ebb::tests {
namespace {
std::atomic<bool> counting{false};
std::atomic<std::size_t> allocations_seen{0};

[[maybe_unused]] void count() noexcept {
  if (counting.load(std::memory_order_relaxed))
    allocations_seen.fetch_add(1, std::memory_order_relaxed);
}
}  // namespace

HeapCount::HeapCount() noexcept {
  allocations_seen = 0;
  counting = true;
}
HeapCount::~HeapCount() { counting = false; }
std::size_t HeapCount::allocations() const noexcept { return allocations_seen; }

#if defined(__GLIBC__) && !defined(EBB_SANITIZED)
const bool HeapCount::works = true;
#else
const bool HeapCount::works = false;
#endif

}  // namespace ebb::tests

#if defined(__GLIBC__) && !defined(EBB_SANITIZED)
// The C library's own names for what is taken over here (glibc manual, "Replacing malloc").
// operator new ends in malloc.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
  ebb::tests::count();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  ebb::tests::count();
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, std::size_t bytes) {
  ebb::tests::count();
  return __libc_realloc(old, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  ebb::tests::count();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  ebb::tests::count();
  *out = __libc_memalign(alignment, bytes);
  return *out ? 0 : ENOMEM;
}
}
#endif
