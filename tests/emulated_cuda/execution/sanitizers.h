// Announces switches of stacks to the address and thread sanitizers.
#pragma once
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
// This folder is compiled without the thread sanitizer, so that it does not see how threads take
// turns. EBB_EMULATED_RACES says that it is there.
#if defined(__SANITIZE_THREAD__)
#define EBB_EMULATED_RACES 1
#endif
#if defined(EBB_EMULATED_RACES)
#include <sanitizer/tsan_interface.h>
extern "C" void __tsan_java_init(std::uintptr_t begin, std::uintptr_t bytes);
extern "C" void __tsan_java_alloc(std::uintptr_t at, std::uintptr_t bytes);
extern "C" void AnnotateIgnoreReadsBegin(const char* file, int line);
extern "C" void AnnotateIgnoreReadsEnd(const char* file, int line);
extern "C" void AnnotateIgnoreWritesBegin(const char* file, int line);
extern "C" void AnnotateIgnoreWritesEnd(const char* file, int line);
#endif

namespace ebb::emulated::sanitizers {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddress = true;
inline void leave_stack(void** keep, const void* bottom, unsigned long bytes) {
  __sanitizer_start_switch_fiber(keep, bottom, bytes);
}
inline void enter_stack(void* kept) { __sanitizer_finish_switch_fiber(kept, nullptr, nullptr); }
inline void allow(void* at, unsigned long bytes) { __asan_unpoison_memory_region(at, bytes); }
inline void forbid(void* at, unsigned long bytes) { __asan_poison_memory_region(at, bytes); }
#else
inline constexpr bool kAddress = false;
inline void leave_stack(void**, const void*, unsigned long) {}
inline void enter_stack(void*) {}
inline void allow(void*, unsigned long) {}
inline void forbid(void*, unsigned long) {}
#endif

// To the thread sanitizer each fiber is a thread, and a switch orders nothing. What CUDA orders is
// told: all that was done before release(at) comes before what follows acquire(at).
#if defined(EBB_EMULATED_RACES)
inline constexpr bool kThread = true;
inline void* own_shadow() { return __tsan_get_current_fiber(); }
inline void* make_shadow() { return __tsan_create_fiber(0); }
inline void drop_shadow(void* shadow) { __tsan_destroy_fiber(shadow); }
inline void switch_shadow(void* shadow) {
  __tsan_switch_to_fiber(shadow, __tsan_switch_to_fiber_no_sync);
}
inline void release(void* at) { __tsan_release(at); }
inline void acquire(void* at) { __tsan_acquire(at); }
// Whether the running fiber's accesses count. They do at first.
inline void count_accesses(bool counts) {
  (counts ? AnnotateIgnoreReadsEnd : AnnotateIgnoreReadsBegin)(__FILE__, __LINE__);
  (counts ? AnnotateIgnoreWritesEnd : AnnotateIgnoreWritesBegin)(__FILE__, __LINE__);
}
// Forgets earlier accesses to the memory. It must lie inside the one range announced before.
inline void announce(void* at, unsigned long bytes) {
  __tsan_java_init(reinterpret_cast<std::uintptr_t>(at), bytes);
}
inline void forget(void* at, unsigned long bytes) {
  __tsan_java_alloc(reinterpret_cast<std::uintptr_t>(at), bytes);
}
#else
inline constexpr bool kThread = false;
inline void* own_shadow() { return nullptr; }
inline void* make_shadow() { return nullptr; }
inline void drop_shadow(void*) {}
inline void switch_shadow(void*) {}
inline void release(void*) {}
inline void acquire(void*) {}
inline void count_accesses(bool) {}
inline void announce(void*, unsigned long) {}
inline void forget(void*, unsigned long) {}
#endif

}  // namespace ebb::emulated::sanitizers
