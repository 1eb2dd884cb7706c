// A request for memory, and the block that answers it.
#pragma once

#include <cstddef>

#include "ebb/allocator/category.h"

namespace ebb::memory {

/// Whoever uses memory in an order of its own: a stream. Compared, never looked into; null: nobody.
using User = const void*;

struct Request {
  std::size_t bytes = 0;
  Category category = Category::temporary;
  Tag tag = {};
  const char* purpose = "";  ///< of a block for several nodes: "the arena of a session", static
};

/// The handle of a live piece of memory. It stays where it is until it is freed, so whoever owns
/// the memory keeps the pointer: freeing needs no map from addresses. Made and destroyed by an
/// allocator or a pool only, and freed exactly once by the one that made it.
///
/// Reading is free of locks. A change of category is seen by other threads once the caller has made
/// it happen before their reading, like a change of any plain value.
class Block {
 public:
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  /// Aligned to the profile's rounding; null for a block of zero bytes.
  void* data() const noexcept { return data_; }
  std::size_t requested_bytes() const noexcept { return requested_bytes_; }
  std::size_t allocated_bytes() const noexcept { return allocated_bytes_; }
  Category category() const noexcept { return category_; }
  const Tag& tag() const noexcept { return tag_; }
  /// Who had the memory before and may not be done with it, as free() was told; where pieces of
  /// several were merged, many_users().
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
