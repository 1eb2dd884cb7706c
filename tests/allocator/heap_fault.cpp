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

// The other forms of new and delete end in these.
void* operator new(std::size_t bytes) {
  if (std::exchange(armed, false)) throw std::bad_alloc();
  void* memory = std::malloc(bytes ? bytes : 1);
  if (!memory) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
