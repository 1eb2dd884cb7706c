#include "ebb/core/storage.h"

namespace ebb::detail {

using memory::Category;

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
