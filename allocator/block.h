// A request for memory, and the block that answers it.
#pragma once

#include <cstddef>

#include "ebb/allocator/category.h"
#include "ebb/allocator/no_copy.h"

namespace ebb::memory {

/// A stream, or another user of memory whose work happens in an order of its own. Only compared,
/// never dereferenced; null means nobody.
using User = const void*;

struct Request {
  std::size_t bytes = 0;
  Category category = Category::temporary;
  Tag tag = {};
  const char* purpose = "";  ///< why a block serves several nodes: "the arena of a session"; static
                             ///< text
};

/// Handle of a live piece of memory. It does not move until it is freed, so the owner keeps the
/// pointer and freeing needs no map from addresses. Allocators and pools make blocks, and each
/// frees its own, exactly once; memory that somebody else owns has a block of its holder's.
///
/// Reading takes no lock. A change of category must be ordered before another thread's reading by
/// the caller, like a change of any plain value.
class Block : NoCopy {
 public:
  /// Aligned to the profile's rounding; null for a block of zero bytes.
  void* data() const noexcept { return data_; }
  std::size_t requested_bytes() const noexcept { return requested_bytes_; }
  std::size_t allocated_bytes() const noexcept { return allocated_bytes_; }
  Category category() const noexcept { return category_; }
  const Tag& tag() const noexcept { return tag_; }
  /// Previous user of the memory, as given to free(), which may not be done with it. many_users()
  /// if pieces of several users were merged.
  User last_user() const noexcept { return last_user_; }
  static User many_users() noexcept { return &kMany; }

 protected:
  Block() = default;
  ~Block() = default;

  std::byte* data_ = nullptr;
  std::size_t allocated_bytes_ = 0;
  std::size_t requested_bytes_ = 0;
  Tag tag_ = {};
  Category category_ = Category::temporary;
  User last_user_ = nullptr;

 private:
  static constexpr char kMany = 0;
};

}  // namespace ebb::memory
