#include "ebb/allocator/detail/heap.h"

#include <cassert>

namespace ebb::memory::detail {

BlockNode* Heap::take(std::size_t bytes) {
  nodes_.reserve(1);  // for the remainder
  FreeIndex& index = bytes <= small_request_ ? small_ : large_;
  BlockNode* node = index.best_fit(bytes);
  if (!node) return nullptr;
  index.erase(node);
  node->is_free = false;
  if (node->bytes() > bytes) {
    BlockNode* rest = nodes_.take();
    rest->cover(node->data() + bytes, node->bytes() - bytes);
    rest->segment = node->segment;
    rest->is_free = true;
    rest->set_last_user(node->last_user());
    rest->before = node;
    rest->after = node->after;
    if (rest->after) rest->after->before = rest;
    node->after = rest;
    node->cover(node->data(), bytes);
    index.insert(rest);
  }
  return node;
}

void Heap::give(BlockNode* node) noexcept {
  assert(!node->is_free && "freed twice");
  if (!node->segment) {
    nodes_.give(node);
    return;
  }
  FreeIndex& index = index_of(*node->segment);
  if (BlockNode* after = node->after; after && after->is_free) {
    index.erase(after);
    node->cover(node->data(), node->bytes() + after->bytes());
    node->add_last_user(after->last_user());
    node->after = after->after;
    if (node->after) node->after->before = node;
    nodes_.give(after);
  }
  node->is_free = true;
  if (BlockNode* before = node->before; before && before->is_free) {
    index.erase(before);
    before->cover(before->data(), before->bytes() + node->bytes());
    before->add_last_user(node->last_user());
    before->after = node->after;
    if (before->after) before->after->before = before;
    nodes_.give(node);
    node = before;
  }
  index.insert(node);
}

BlockNode* Heap::take_empty() {
  nodes_.reserve(1);
  BlockNode* node = nodes_.take();
  node->cover(nullptr, 0);
  node->set_last_user(nullptr);
  node->segment = nullptr;
  node->before = node->after = nullptr;
  node->is_free = false;
  return node;
}

void Heap::adopt(void* base, std::size_t segment_bytes, std::size_t bytes) {
  nodes_.reserve(2);  // for this range, and for the remainder when a block is cut from it
  Segment& segment = segments_.try_emplace(next_age_).first->second;
  BlockNode* node = nodes_.take();
  node->cover(static_cast<std::byte*>(base), segment_bytes);
  node->set_last_user(nullptr);
  node->segment = &segment;
  node->before = node->after = nullptr;
  node->is_free = true;
  segment = {.base = static_cast<std::byte*>(base),
             .bytes = segment_bytes,
             .age = next_age_++,
             .small = bytes <= small_request_,
             .first = node};
  index_of(segment).insert(node);
}

Segments::iterator Heap::drop(Segments::iterator segment) noexcept {
  assert(segment->second.is_free());
  BlockNode* node = segment->second.first;
  index_of(segment->second).erase(node);
  nodes_.give(node);
  return segments_.erase(segment);
}

}  // namespace ebb::memory::detail
