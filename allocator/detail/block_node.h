// What stands behind a Block: its place in a segment and, while free, in an index.
#pragma once

#include <cstdint>
#include <map>

#include "ebb/allocator/block.h"

namespace ebb::memory::detail {

struct Segment;

/// Live or free. The nodes of a segment tile it: each begins where the one before it ends, and no
/// two neighbours are both free. A zero-byte block has no segment and no neighbours.
struct BlockNode final : Block {
  Segment* segment = nullptr;
  BlockNode* before = nullptr;  // neighbours in the segment
  BlockNode* after = nullptr;
  BlockNode* left = nullptr;  // children in the index, while free
  BlockNode* right = nullptr;
  std::uint32_t priority = 0;
  bool is_free = false;

  std::byte* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return allocated_bytes_; }
  void cover(std::byte* data, std::size_t bytes) noexcept {
    data_ = data;
    allocated_bytes_ = bytes;
  }
  void serve(const Request& request) noexcept {
    requested_bytes_ = request.bytes;
    category_ = request.category;
    tag_ = request.tag;
  }
  void set_last_user(User user) noexcept { last_user_ = user; }
  /// Takes in a neighbour's memory.
  void add_last_user(User user) noexcept {
    if (user == last_user_ || user == nullptr) return;
    last_user_ = last_user_ == nullptr ? user : many_users();
  }
  void set_category(Category category) noexcept { category_ = category; }
};

inline BlockNode* node_of(Block* block) noexcept { return static_cast<BlockNode*>(block); }

/// A mapped range. Ages count up in the order of mapping and stand in for addresses wherever an
/// order is needed, because addresses differ between a device and its twin.
struct Segment {
  std::byte* base = nullptr;
  std::size_t bytes = 0;
  std::uint64_t age = 0;
  bool small = false;          // serves small requests only
  BlockNode* first = nullptr;  // the node at base

  bool is_free() const noexcept { return first->is_free && first->after == nullptr; }
};

using Segments = std::map<std::uint64_t, Segment>;  // by age; stable addresses

}  // namespace ebb::memory::detail
