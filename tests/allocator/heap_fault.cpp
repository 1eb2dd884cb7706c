#include "ebb/tests/allocator/heap_fault.h"

#include <cstdlib>
#include <new>
#include <utility>

namespace {
thread_local bool armed = false;
}  // namespace

namespace ebb::tests {
void HeapFault::arm() noexcept { armed = true; }
bool HeapFault::disarm() noexcept { return std::exchange(armed, false); }
}  // namespace ebb::tests

// What takes memory by one of these gives it back by another. (Arrays and aligned memory keep their
// own.)
void* operator new(std::size_t bytes) {
  if (std::exchange(armed, false)) throw std::bad_alloc();
  void* memory = std::malloc(bytes ? bytes : 1);
  if (!memory) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes ? bytes : 1);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
