// Segments cut into blocks: the data structure alone, without lock, source or figures.
#pragma once

#include <cstddef>

#include "ebb/allocator/detail/block_node.h"
#include "ebb/allocator/detail/free_index.h"
#include "ebb/allocator/detail/slab.h"

namespace ebb::memory::detail {

/// Small requests and larger ones never share a segment. Blocks are always cut to the byte asked
/// for, and free neighbours are merged at once. What throws leaves everything as it was.
class Heap {
 public:
  explicit Heap(std::size_t small_request) noexcept : small_request_(small_request) {}

  /// A live node of exactly so many bytes (rounded, positive) from the best free one; null on a
  /// miss.
  BlockNode* take(std::size_t bytes);
  void give(BlockNode* node) noexcept;

  /// A live node that has no memory: for blocks of zero bytes. Goes back through give().
  BlockNode* take_empty();

  /// Adds a mapped range, free, for requests of the kind of `bytes`.
  void adopt(void* base, std::size_t segment_bytes, std::size_t bytes);
  /// Drops a segment that is wholly free; its range is the caller's again.
  Segments::iterator drop(Segments::iterator segment) noexcept;

  Segments& segments() noexcept { return segments_; }
  const Segments& segments() const noexcept { return segments_; }

 private:
  FreeIndex& index_of(const Segment& segment) noexcept { return segment.small ? small_ : large_; }

  const std::size_t small_request_;
  FreeIndex small_;
  FreeIndex large_;
  Segments segments_;
  std::uint64_t next_age_ = 0;
  Slab<BlockNode> nodes_;
};

}  // namespace ebb::memory::detail
