#include "ebb/core/tensor/storage.h"

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
  const Lock lock(*this);
  if (keepers_++ == 0 && block_->category() == Category::temporary)
    set_category(Category::activation);
}

void Storage::unkeep() noexcept {
  const Lock lock(*this);
  if (--keepers_ == 0 && block_->category() == Category::activation)
    set_category(Category::temporary);
}

}  // namespace ebb::detail
