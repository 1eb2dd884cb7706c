#include "ebb/tests/heap.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <utility>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EBB_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define EBB_SANITIZED 1
#endif
#endif

namespace {

thread_local bool armed = false;
thread_local std::size_t successes_left = 0;
std::atomic<std::ptrdiff_t> live_objects{0};
std::atomic<bool> counting{false};
std::atomic<std::size_t> allocations_seen{0};

bool fails_now() noexcept {
  if (!armed || successes_left-- > 0) return false;
  armed = false;
  return true;
}

void* counted(void* memory) {
  if (!memory) throw std::bad_alloc();
  live_objects.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

[[maybe_unused]] void count() noexcept {
  if (counting.load(std::memory_order_relaxed))
    allocations_seen.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

namespace ebb::tests {

void HeapFault::arm(std::size_t successes) noexcept {
  successes_left = successes;
  armed = true;
}
bool HeapFault::disarm() noexcept { return std::exchange(armed, false); }
std::ptrdiff_t HeapFault::live() noexcept { return live_objects.load(std::memory_order_relaxed); }

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

// Other forms, such as for arrays, call these, or come in pairs from a sanitizer.
void* operator new(std::size_t bytes) {
  if (fails_now()) throw std::bad_alloc();
  return counted(std::malloc(bytes ? bytes : 1));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  if (fails_now()) throw std::bad_alloc();
  const auto boundary = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(boundary, (bytes + boundary) / boundary * boundary));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept {
  if (memory) live_objects.fetch_sub(1, std::memory_order_relaxed);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { operator delete(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  operator delete(memory);
}

#if defined(__GLIBC__) && !defined(EBB_SANITIZED)
// The C library's own names of the functions replaced here (glibc manual, "Replacing malloc").
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
  count();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t number, std::size_t bytes) {
  count();
  return __libc_calloc(number, bytes);
}
void* realloc(void* old, std::size_t bytes) {
  count();
  return __libc_realloc(old, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  count();
  *out = __libc_memalign(alignment, bytes);
  return *out ? 0 : ENOMEM;
}
}
#endif
