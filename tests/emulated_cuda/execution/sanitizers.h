// Announces switches of stacks to the address and thread sanitizers.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
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

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThread = true;
inline void* own_shadow() { return __tsan_get_current_fiber(); }
inline void* make_shadow() { return __tsan_create_fiber(0); }
inline void drop_shadow(void* shadow) { __tsan_destroy_fiber(shadow); }
inline void switch_shadow(void* shadow) { __tsan_switch_to_fiber(shadow, 0); }
#else
inline constexpr bool kThread = false;
inline void* own_shadow() { return nullptr; }
inline void* make_shadow() { return nullptr; }
inline void drop_shadow(void*) {}
inline void switch_shadow(void*) {}
#endif

}  // namespace ebb::emulated::sanitizers
