#include "ebb/core/storage.h"

namespace ebb::detail {

using memory::Category;

namespace {
// The upper bits are the thread's, so that no serial of another thread lies between two of one.
std::uint64_t first_serial() noexcept {
  static std::atomic<std::uint64_t> threads{0};
  return threads.fetch_add(1, std::memory_order_relaxed) << 40;
}
}  // namespace

std::uint64_t Storage::next_serial() noexcept {
  thread_local std::uint64_t next = first_serial();
  return next++;
}

void Storage::keep() noexcept {
  if (keepers_.fetch_add(1, std::memory_order_relaxed) == 0 && category() == Category::temporary)
    recategorise(Category::activation);
}

void Storage::unkeep() noexcept {
  if (keepers_.fetch_sub(1, std::memory_order_relaxed) == 1 && category() == Category::activation)
    recategorise(Category::temporary);
}

}  // namespace ebb::detail
