#include "ebb/allocator/detail/heap.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace ebb::memory::detail {

using State = BlockNode::State;

namespace {

// A hole of this size fits any request without its neighbours: the rest of a range.
constexpr std::size_t kVastBytes = std::size_t{1} << 32;

std::size_t free_bytes_of(const BlockNode* node) noexcept {
  return node && node->is_free() ? node->bytes() : 0;
}

bool depends_on_neighbours(const BlockNode& node) noexcept {
  return !node.has_memory && node.bytes() < kVastBytes;
}

}  // namespace

// Rounds an offset in a node up to the end of a page of its segment.
std::size_t Heap::page_after(const BlockNode& node, std::size_t offset) const noexcept {
  const auto before = static_cast<std::size_t>(node.data() - node.segment->base);
  return profile_.in_pages(before + offset) - before;
}

// Bytes that could go back to the device: whole pages, or without growth the whole segment.
inline std::size_t Heap::bytes_in_pages(const BlockNode& free) const noexcept {
  if (!profile_.grows) return free.bytes() == free.segment->bytes ? free.bytes() : 0;
  const auto begin = static_cast<std::size_t>(free.data() - free.segment->base);
  const std::size_t first = profile_.in_pages(begin);
  const std::size_t last = profile_.whole_pages(begin + free.bytes());
  return last > first ? last - first : 0;
}

inline void Heap::insert_free(BlockNode* node, FreeIndex& index) noexcept {
  node->key = node->bytes();
  index.insert(node);
  free_bytes_.all += node->bytes();
  free_bytes_.in_pages += bytes_in_pages(*node);
  ++free_bytes_.pieces;
}

inline void Heap::erase_free(BlockNode* node, FreeIndex& index) noexcept {
  index.erase(node);
  free_bytes_.all -= node->bytes();
  free_bytes_.in_pages -= bytes_in_pages(*node);
  --free_bytes_.pieces;
}

inline void Heap::insert(BlockNode* node) noexcept {
  if (node->has_memory) return insert_free(node, free_index(*node));
  if (depends_on_neighbours(*node)) return set_aside(node);
  node->key = node->bytes();
  hole_index(*node).insert(node);
}

void Heap::erase(BlockNode* node) noexcept {
  if (node->has_memory) return erase_free(node, free_index(*node));
  if (!node->is_aside) return hole_index(*node).erase(node);
  node->is_aside = false;
  (node->left ? node->left->right : aside_) = node->right;
  if (node->right) node->right->left = node->left;
}

void Heap::set_aside(BlockNode* hole) noexcept {
  hole->is_aside = true;
  hole->left = nullptr;
  hole->right = aside_;
  if (aside_) aside_->left = hole;
  aside_ = hole;
}

// Moves a hole whose row changed to the list, so that frequent changes beside it cost nothing until
// the next search for a row.
inline void Heap::tell(BlockNode* neighbour) noexcept {
  // The state comes first: a moving node belongs to a thread that does not hold the lock.
  if (!neighbour || !neighbour->is_hole() || !depends_on_neighbours(*neighbour)) return;
  if (neighbour->is_aside) return;
  hole_index(*neighbour).erase(neighbour);
  set_aside(neighbour);
}

void Heap::index_holes() noexcept {
  while (BlockNode* hole = aside_) {
    erase(hole);
    hole->key = free_bytes_of(hole->before) + hole->bytes() + free_bytes_of(hole->after);
    hole_index(*hole).insert(hole);
  }
}

inline void Heap::list(BlockNode* node) noexcept {
  node->state = State::idle;
  insert(node);
  if (!node->has_memory) return;
  tell(node->before);
  tell(node->after);
}

// Takes a node out of its index and marks it as moving.
void Heap::unlist(BlockNode* node) noexcept {
  erase(node);
  node->state = State::moving;
  if (!node->has_memory) return;
  tell(node->before);
  tell(node->after);
}

// Recycles a node; walks that stand on it continue from `into`.
inline void Heap::retire(BlockNode* node, BlockNode* into) noexcept {
  for (Walk* walk = walks_; walk; walk = walk->other_)
    if (walk->at_ == node) walk->at_ = into;
  nodes_.give(node);
}

// Merges a node with the one behind it.
inline void Heap::absorb(BlockNode* node, BlockNode* after) noexcept {
  node->cover(node->data(), node->bytes() + after->bytes());
  node->add_last_user(after->last_user());
  node->after = after->after;
  if (node->after) node->after->before = node;
  retire(after, node);
}

// Shortens a node to `bytes`; `rest` becomes the remainder, of the same state and in no index.
inline void Heap::cut(BlockNode* node, std::size_t bytes, BlockNode* rest) noexcept {
  rest->cover(node->data() + bytes, node->bytes() - bytes);
  rest->segment = node->segment;
  rest->state = node->state;
  rest->has_memory = node->has_memory;
  rest->set_last_user(node->last_user());
  rest->before = node;
  rest->after = node->after;
  if (rest->after) rest->after->before = rest;
  node->after = rest;
  node->cover(node->data(), bytes);
}

void Heap::cut_off(BlockNode* node, std::size_t bytes) noexcept {
  BlockNode* const rest = nodes_.take();
  cut(node, bytes, rest);
  list(rest);
}

BlockNode* Heap::take_from(FreeIndex& index, std::size_t bytes) {
  BlockNode* const node = index.best_fit(bytes);
  if (!node || (!profile_.cuts && node->bytes() != bytes)) return nullptr;
  return cut_from(index, node, bytes);
}

inline BlockNode* Heap::cut_from(FreeIndex& index, BlockNode* node, std::size_t bytes) {
  nodes_.reserve(1);  // for the remainder
  erase_free(node, index);
  BlockNode* last = node;
  if (node->bytes() > bytes) {
    last = nodes_.take();
    cut(node, bytes, last);
    insert_free(last, index);
  }
  node->state = State::live;
  tell(node->before);
  tell(last->after);
  return node;
}

BlockNode* Heap::take(std::size_t bytes) {
  return take_from(is_small(bytes) ? small_ : large_, bytes);
}

BlockNode* Heap::take_spare(std::size_t bytes) {
  constexpr std::size_t kShare = 4;
  if (is_small(bytes)) return nullptr;
  BlockNode* const largest = small_.last();
  return largest && largest->bytes() / kShare >= bytes ? cut_from(small_, largest, bytes) : nullptr;
}

BlockNode* Heap::take_any(std::size_t bytes) {
  if (BlockNode* node = take_from(large_, bytes)) return node;
  return take_from(small_, bytes);
}

void Heap::settle(BlockNode* node) noexcept {
  node->state = State::idle;
  if (BlockNode* after = node->after; after && after->is_kin(*node)) {
    erase(after);
    absorb(node, after);
  }
  if (BlockNode* before = node->before; before && before->is_kin(*node)) {
    erase(before);
    absorb(before, node);
    node = before;
  }
  list(node);
}

void Heap::give(BlockNode* node) noexcept {
  assert(node->state == State::live && "freed twice");
  if (node->segment)
    settle(node);
  else
    nodes_.give(node);
}

BlockNode* Heap::take_empty() {
  nodes_.reserve(1);
  BlockNode* node = nodes_.take();
  node->cover(nullptr, 0);
  node->set_last_user(nullptr);
  node->segment = nullptr;
  node->before = node->after = nullptr;
  node->state = State::live;
  return node;
}

void Heap::add_segment(void* base, std::size_t segment_bytes, std::size_t bytes, bool has_memory) {
  nodes_.reserve(2);  // one for this range, one for the remainder when a block is cut
  Segment& segment = segments_.try_emplace(next_age_).first->second;
  BlockNode* node = nodes_.take();
  node->cover(static_cast<std::byte*>(base), segment_bytes);
  node->set_last_user(nullptr);
  node->segment = &segment;
  node->before = node->after = nullptr;
  node->has_memory = has_memory;
  segment = {.base = static_cast<std::byte*>(base),
             .bytes = segment_bytes,
             .age = next_age_++,
             .small = is_small(bytes),
             .first = node};
  list(node);
}

void Heap::drop(Segments::iterator segment) noexcept {
  assert(segment->second.is_idle());
  BlockNode* node = segment->second.first;
  unlist(node);
  const auto next = segments_.erase(segment);
  retire(node, next == segments_.end() ? nullptr : next->second.first);
}

Heap::Row Heap::find_row(std::size_t bytes) noexcept {
  index_holes();
  FreeIndex& holes = is_small(bytes) ? small_holes_ : large_holes_;
  BlockNode* const fitting = holes.best_fit(bytes);
  if (!fitting) return {};
  const Row best = row_at(fitting, bytes), largest = row_at(holes.last(), bytes);
  return largest.bytes < best.bytes ? largest : best;
}

// The row of a hole: the free node before it, if any, and as much as is needed of the hole and the
// node after it.
Heap::Row Heap::row_at(BlockNode* hole, std::size_t bytes) const noexcept {
  Row row;
  row.hole = hole;
  row.first = hole->before && hole->before->is_free() ? hole->before : hole;
  std::size_t missing = bytes - std::min(bytes, free_bytes_of(hole->before));
  if (hole->bytes() < missing) {
    row.last = hole->after;  // free, and large enough: the key says so
    row.bytes = row.with_step = hole->bytes();
    return row;
  }
  row.last = hole;
  row.bytes = page_after(*hole, missing);  // holes are whole pages
  const auto begin = static_cast<std::size_t>(hole->data() - hole->segment->base);
  const std::size_t step = profile_.growth_step;
  row.with_step = std::min((begin + missing + step - 1) / step * step - begin, hole->bytes());
  return row;
}

void Heap::claim(Row& row, std::size_t commit_bytes) {
  nodes_.reserve(2);
  row.spare = nodes_.take();
  row.bytes = commit_bytes;
  for (BlockNode* node = row.first;; node = node->after) {
    unlist(node);
    if (node == row.last) break;
  }
  if (row.hole->bytes() > commit_bytes) cut_off(row.hole, commit_bytes);
}

BlockNode* Heap::finish(const Row& row, std::size_t bytes) noexcept {
  row.hole->set_last_user(nullptr);
  row.hole->has_memory = true;
  BlockNode* const node = row.first;
  for (const BlockNode* last = row.last; node != last;) {
    if (node->after == last) last = node;
    absorb(node, node->after);
  }
  node->state = State::live;
  if (node->bytes() == bytes) {
    nodes_.give(row.spare);
    return node;
  }
  cut(node, bytes, row.spare);
  settle(row.spare);
  return node;
}

void Heap::abandon(const Row& row) noexcept {
  nodes_.give(row.spare);
  for (BlockNode* node = row.first;;) {
    BlockNode* const after = node->after;
    const bool is_last = node == row.last;
    settle(node);
    if (is_last) break;
    node = after;
  }
}

BlockNode* Heap::claim_hole(std::size_t bytes) {
  nodes_.reserve(1);
  index_holes();
  BlockNode* found = nullptr;
  for (BlockNode* hole = large_holes_.chain_of_at_least(bytes); hole; hole = hole->chain) {
    if (hole->bytes() < bytes) continue;
    if (!found || hole->segment->age < found->segment->age ||
        (hole->segment == found->segment && hole->data() < found->data()))
      found = hole;
  }
  if (!found) return nullptr;
  unlist(found);
  if (found->bytes() > bytes) cut_off(found, bytes);
  return found;
}

BlockNode* Heap::claim_pages(std::size_t most) noexcept {
  BlockNode* claimed = nullptr;
  for (FreeIndex* index : {&large_, &small_})
    most -= std::min(most, claim_pages_of(*index, most, claimed));
  return claimed;
}

// Claims pages in front of `chain`; returns their bytes.
std::size_t Heap::claim_pages_of(FreeIndex& index, std::size_t most, BlockNode*& chain) noexcept {
  std::size_t claimed = 0;
  BlockNode* next = nullptr;
  for (BlockNode* node = index.last(); node && claimed < most && free_bytes_.in_pages > 0;
       node = next) {
    next = index.before(node);
    const auto begin = static_cast<std::size_t>(node->data() - node->segment->base);
    const std::size_t lowest = profile_.in_pages(begin) - begin;
    const std::size_t end = begin + node->bytes();
    std::size_t behind = end % profile_.page_bytes;
    if (lowest + behind < node->bytes()) {
      try {
        nodes_.reserve(2);
      } catch (...) {
        break;
      }
      // From the end of the node: its lower part is more likely to be used again.
      const std::size_t pages = std::min(node->bytes() - lowest - behind,
                                         profile_.in_pages(std::min(most - claimed, end)));
      unlist(node);
      BlockNode* middle = node;
      if (const std::size_t ahead = node->bytes() - behind - pages; ahead > 0) {
        middle = nodes_.take();
        cut(node, ahead, middle);
        list(node);
      }
      if (behind > 0) cut_off(middle, pages);
      middle->state = State::moving;
      middle->chain = chain;
      chain = middle;
      claimed += pages;
    }
  }
  return claimed;
}

std::size_t Heap::segments_with_memory() const noexcept {
  if (!profile_.grows) return segments_.size();
  return static_cast<std::size_t>(std::count_if(
      segments_.begin(), segments_.end(),
      [](const auto& each) { return !each.second.is_idle() || each.second.first->has_memory; }));
}

std::size_t Heap::largest_free_bytes() noexcept {
  const BlockNode *small = small_.last(), *large = large_.last();
  return std::max(small ? small->bytes() : 0, large ? large->bytes() : 0);
}

Heap::Walk::Walk(Heap& heap) noexcept : heap_(heap), other_(std::exchange(heap.walks_, this)) {
  enter(heap.segments_.begin());
}

Heap::Walk::~Walk() {
  Walk** at = &heap_.walks_;
  while (*at != this) at = &(*at)->other_;
  *at = other_;
}

void Heap::Walk::enter(Segments::const_iterator segment) noexcept {
  at_ = segment == heap_.segments_.end() ? nullptr : segment->second.first;
}

const BlockNode* Heap::Walk::next(std::size_t& nodes) noexcept {
  while (at_ && nodes > 0) {
    --nodes;
    const BlockNode* const node = at_;
    if (node->after)
      at_ = node->after;
    else
      enter(std::next(heap_.segments_.find(node->segment->age)));
    if (node->state == State::live) return node;
  }
  return nullptr;
}

}  // namespace ebb::memory::detail
