// Segments cut into blocks: the data structure alone, without lock, source or figures.
#pragma once

#include <cstddef>
#include <functional>

#include "ebb/allocator/detail/block_node.h"
#include "ebb/allocator/detail/free_index.h"
#include "ebb/allocator/detail/slab.h"
#include "ebb/allocator/profile.h"

namespace ebb::memory::detail {

/// Blocks are always cut to the byte asked for, and idle neighbours of a kind are merged at once.
/// What throws leaves everything as it was. Small requests and larger ones keep apart: a small
/// block that lives long, in a gap that the next step needs whole, makes that step take more.
class Heap {
 public:
  explicit Heap(const Profile& profile) noexcept : profile_(profile) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  /// A live node of exactly so many bytes (rounded, positive) from the best free one; null on a
  /// miss.
  BlockNode* take(std::size_t bytes);
  /// For a large request, before more memory is asked for: of what small ones have left over, where
  /// it takes no more than a quarter of the largest stretch.
  BlockNode* take_spare(std::size_t bytes);
  /// A node of either kind of segments.
  BlockNode* take_any(std::size_t bytes);
  void give(BlockNode* node) noexcept;

  /// A live node that has no memory: for blocks of zero bytes. Goes back through give().
  BlockNode* take_empty();

  /// Adds a segment, of addresses alone or free, for requests of the kind of `bytes`.
  void adopt_addresses(void* base, std::size_t segment_bytes, std::size_t bytes);
  void adopt(void* base, std::size_t segment_bytes, std::size_t bytes);
  /// Drops a segment that is one idle node; its range is the caller's again.
  Segments::iterator drop(Segments::iterator segment) noexcept;

  /// A hole and what is free beside it, where a block would fit once the hole has memory.
  struct Row {
    BlockNode* hole = nullptr;  // null: no addresses are left
    BlockNode* first = nullptr;
    BlockNode* last = nullptr;
    std::size_t bytes = 0;       // that have to be committed, in whole pages,
    std::size_t with_step = 0;   // and rounded up to the end of a step of growth
    BlockNode* spare = nullptr;  // for what remains
  };
  /// The smallest row that suffices or the largest there is, whichever has fewer bytes to commit.
  Row find_row(std::size_t bytes) noexcept;
  /// Takes it out of everybody's reach, to commit `bytes` or `with_step` of it.
  void claim(Row& row, std::size_t commit_bytes);
  /// It has memory now: a live node of exactly so many bytes.
  BlockNode* finish(const Row& row, std::size_t bytes) noexcept;
  /// It has none: everything is what it was.
  void abandon(const Row& row) noexcept;

  /// Takes so many bytes, whole pages, out of everybody's reach, to commit them: of the oldest hole
  /// for large requests that has them, its beginning. Null where none has.
  BlockNode* claim_hole(std::size_t bytes);

  /// Takes whole free pages out of everybody's reach, of the largest free nodes first, until they
  /// are at least `most` bytes. Returns them through `chain`. Ends early where the host has no
  /// memory for its nodes.
  BlockNode* claim_pages(std::size_t most) noexcept;
  /// They, or nodes of a row, are idle again, with memory or without.
  void settle(BlockNode* node) noexcept;

  /// Free bytes in whole pages, and all of them: the others are in pages that a neighbour uses.
  struct FreeBytes {
    std::size_t in_pages = 0, all = 0, pieces = 0;
  };
  const FreeBytes& free_bytes() const noexcept { return free_bytes_; }
  std::size_t largest_free_bytes() noexcept;
  std::size_t segments_with_memory() const noexcept;

  Segments& segments() noexcept { return segments_; }
  const Segments& segments() const noexcept { return segments_; }

  /// Visits the live nodes, some at a time: what happens between two calls moves it on.
  class Walk {
   public:
    explicit Walk(Heap& heap) noexcept;
    ~Walk();
    Walk(const Walk&) = delete;
    Walk& operator=(const Walk&) = delete;
    /// The next live node, having looked at no more than `nodes`, which it counts down; null when
    /// they are used up, or at the end.
    const BlockNode* next(std::size_t& nodes) noexcept;
    bool is_done() const noexcept { return at_ == nullptr; }

   private:
    friend class Heap;
    void enter(Segments::const_iterator segment) noexcept;
    Heap& heap_;
    const BlockNode* at_ = nullptr;
    Walk* other_ = nullptr;
  };

 private:
  FreeIndex& free_index(const BlockNode& node) noexcept {
    return node.segment->small ? small_ : large_;
  }
  FreeIndex& hole_index(const BlockNode& node) noexcept {
    return node.segment->small ? small_holes_ : large_holes_;
  }
  bool is_small(std::size_t bytes) const noexcept { return bytes <= profile_.small_request; }
  std::size_t page_after(const BlockNode& node, std::size_t offset) const noexcept;
  std::size_t bytes_in_pages(const BlockNode& free) const noexcept;
  Segment& add_segment(void* base, std::size_t bytes, bool small);
  BlockNode* take_from(FreeIndex& index, std::size_t bytes);
  BlockNode* cut_from(FreeIndex& index, BlockNode* node, std::size_t bytes);
  std::size_t claim_pages_of(FreeIndex& index, std::size_t most, BlockNode*& chain) noexcept;
  void cut(BlockNode* node, std::size_t bytes, BlockNode* rest) noexcept;
  void list(BlockNode* node) noexcept;    // puts an idle node where it is found
  void unlist(BlockNode* node) noexcept;  // and takes it out
  void insert(BlockNode* node) noexcept;  // the same, but for what holes beside it know of it
  void erase(BlockNode* node) noexcept;
  void insert_free(BlockNode* node, FreeIndex& index) noexcept;
  void erase_free(BlockNode* node, FreeIndex& index) noexcept;
  // A free node beside this one, if it is a hole, has come, gone or changed its size.
  void tell(BlockNode* neighbour) noexcept;
  void set_aside(BlockNode* hole) noexcept;
  void index_holes() noexcept;  // those that were set aside
  Row row_at(BlockNode* hole, std::size_t bytes) const noexcept;
  void absorb(BlockNode* node, BlockNode* after) noexcept;
  void retire(BlockNode* node, BlockNode* into) noexcept;

  const Profile& profile_;
  FreeIndex small_;
  FreeIndex large_;
  FreeIndex small_holes_;  // by the bytes of the row that each is in
  FreeIndex large_holes_;
  FreeBytes free_bytes_;        // of what is in the first two
  BlockNode* aside_ = nullptr;  // holes whose keys are not known, until someone looks for one
  Segments segments_;
  std::uint64_t next_age_ = 0;
  Slab<BlockNode> nodes_;
  Walk* walks_ = nullptr;
};

}  // namespace ebb::memory::detail
