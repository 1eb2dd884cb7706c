// A Block's place in a segment and, while it is not live, in an index.
#pragma once

#include <cstdint>
#include <map>

#include "ebb/allocator/block.h"

namespace ebb::memory::detail {

struct Segment;

/// The nodes of a segment tile it: each begins where the one before it ends. An idle node with
/// memory is free; one without, of whole pages, is a hole. No two neighbours are both free, or both
/// holes. A zero-byte block has no segment and no neighbours.
struct BlockNode : Block {
  enum class State : std::uint8_t {
    live,
    idle,
    moving,  // changing between hole and memory; belongs to one thread until it settles
  };

  Segment* segment = nullptr;
  BlockNode* before = nullptr;  // neighbours in the segment
  BlockNode* after = nullptr;
  BlockNode* left = nullptr;  // children in an index or neighbours in a list, while idle
  BlockNode* right = nullptr;
  std::size_t key = 0;         // sort key there: the bytes that the node could provide
  BlockNode* chain = nullptr;  // next node in a temporary list
  std::uint32_t priority = 0;
  State state = State::live;
  bool has_memory = true;
  bool is_aside = false;  // a hole in the list of holes without a key, instead of an index

  bool is_free() const noexcept { return state == State::idle && has_memory; }
  bool is_hole() const noexcept { return state == State::idle && !has_memory; }
  bool is_kin(const BlockNode& other) const noexcept {
    return state == State::idle && other.state == State::idle && has_memory == other.has_memory;
  }
  std::byte* data() const noexcept { return data_; }
  std::byte* end() const noexcept { return data_ + allocated_bytes_; }
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
  /// Adds the last user of a neighbour that is merged into this node.
  void add_last_user(User user) noexcept {
    if (user == last_user_ || user == nullptr) return;
    last_user_ = last_user_ == nullptr ? user : many_users();
  }
  void set_category(Category category) noexcept { category_ = category; }
};

inline BlockNode* node_of(Block* block) noexcept { return static_cast<BlockNode*>(block); }
inline const BlockNode* node_of(const Block* block) noexcept {
  return static_cast<const BlockNode*>(block);
}

/// A range of addresses. Ages count up in order of reservation. They replace addresses in every
/// comparison, because addresses differ between a device and its twin.
struct Segment {
  std::byte* base = nullptr;
  std::size_t bytes = 0;
  std::uint64_t age = 0;
  bool small = false;          // for small requests only, unless all of the cache is searched
  BlockNode* first = nullptr;  // the node at base

  bool is_idle() const noexcept {
    return first->state == BlockNode::State::idle && first->after == nullptr;
  }
};

using Segments = std::map<std::uint64_t, Segment>;  // by age; stable addresses

}  // namespace ebb::memory::detail
