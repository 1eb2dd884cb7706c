#include "ebb/core/storage.h"

namespace ebb::detail {

using memory::Category;

void Storage::keep() noexcept {
  if (keepers_.fetch_add(1, std::memory_order_relaxed) == 0 && category() == Category::temporary)
    recategorise(Category::activation);
}

void Storage::unkeep() noexcept {
  if (keepers_.fetch_sub(1, std::memory_order_relaxed) == 1 && category() == Category::activation)
    recategorise(Category::temporary);
}

}  // namespace ebb::detail
