// Segments cut into blocks: only the data structure, without lock, source or figures.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "ebb/allocator/detail/block_node.h"
#include "ebb/allocator/detail/free_index.h"
#include "ebb/allocator/no_copy.h"
#include "ebb/allocator/profile.h"

namespace ebb::memory::detail {

/// Recycled objects of one type. Objects keep their addresses and are reused in the state in which
/// they came back, without a call of their constructors. Only reserve() allocates, so only it can
/// throw.
template <class T>
class Slab {
 public:
  /// Makes sure that the next `count` calls of take() succeed.
  void reserve(std::size_t count) {
    if (spares_ < count) [[unlikely]]
      grow();
  }
  T* take() noexcept { return spare_[--spares_]; }
  void give(T* object) noexcept { spare_[spares_++] = object; }

 private:
  static constexpr std::size_t kChunk = 64;

  void grow() {
    chunks_.reserve(chunks_.size() + 1);
    spare_.resize(chunks_.capacity() * kChunk);
    auto chunk = std::make_unique<T[]>(kChunk);
    for (std::size_t i = kChunk; i-- > 0;) give(&chunk[i]);
    chunks_.push_back(std::move(chunk));
  }

  std::vector<std::unique_ptr<T[]>> chunks_;
  std::vector<T*> spare_;  // has room for every object; the first `spares_` are available
  std::size_t spares_ = 0;
};

/// Blocks are cut to the exact byte, and idle neighbours of a kind are merged at once. A function
/// that throws leaves everything as it was. Small and larger requests are kept apart: a long-lived
/// small block in a gap that the next step needs whole would make that step take more memory.
class Heap : NoCopy {
 public:
  explicit Heap(const Profile& profile) noexcept : profile_(profile) {}

  /// Returns a live node of exactly `bytes` (rounded, positive), cut from the best free one; null
  /// on a miss.
  BlockNode* take(std::size_t bytes);
  /// For a large request, before more memory is requested: cuts it from the free memory for small
  /// ones, if it takes at most a quarter of the largest free node there.
  BlockNode* take_spare(std::size_t bytes);
  /// As take(), from segments of either kind.
  BlockNode* take_any(std::size_t bytes);
  void give(BlockNode* node) noexcept;

  /// Returns a live node without memory, for a zero-byte block. Goes back through give().
  BlockNode* take_empty();

  /// Adds a segment for requests of the size class of `bytes`: addresses only, or with free memory.
  void add_segment(void* base, std::size_t segment_bytes, std::size_t bytes, bool has_memory);
  /// Drops a segment that is one idle node; the caller owns its range again.
  void drop(Segments::iterator segment) noexcept;

  /// A hole and its free neighbours, where a block would fit once the hole has memory.
  struct Row {
    BlockNode* hole = nullptr;  // null: no addresses are left
    BlockNode* first = nullptr;
    BlockNode* last = nullptr;
    std::size_t bytes = 0;       // to be committed, in whole pages,
    std::size_t with_step = 0;   // and rounded up to the end of a growth step
    BlockNode* spare = nullptr;  // node for the remainder
  };
  /// Finds the smallest row that fits, or the row with the largest key if that has fewer bytes to
  /// commit.
  Row find_row(std::size_t bytes) noexcept;
  /// Hides the row from other threads while `commit_bytes` are committed: its `bytes` or
  /// `with_step`.
  void claim(Row& row, std::size_t commit_bytes);
  /// After the commit: returns a live node of exactly `bytes`.
  BlockNode* finish(const Row& row, std::size_t bytes) noexcept;
  /// After a failed commit: restores the previous state.
  void abandon(const Row& row) noexcept;

  /// Hides `bytes` (whole pages) from other threads while they are committed: the start of the
  /// oldest hole for large requests that is large enough. Null if there is none.
  BlockNode* claim_hole(std::size_t bytes);

  /// Hides whole free pages from other threads, largest free nodes first, until they add up to at
  /// least `most` bytes, and returns them linked by `chain`. Ends early if the host has no memory
  /// for the nodes.
  BlockNode* claim_pages(std::size_t most) noexcept;
  /// Hides a segment that is one idle node.
  void claim(const Segment& segment) noexcept { unlist(segment.first); }
  /// Makes a claimed node idle again, with memory or without.
  void settle(BlockNode* node) noexcept;

  /// Free bytes: all of them, and the part in whole pages. The rest shares pages with live
  /// neighbours.
  struct FreeBytes {
    std::size_t in_pages = 0, all = 0, pieces = 0;
  };
  const FreeBytes& free_bytes() const noexcept { return free_bytes_; }
  std::size_t largest_free_bytes() noexcept;
  std::size_t segments_with_memory() const noexcept;

  Segments& segments() noexcept { return segments_; }
  const Segments& segments() const noexcept { return segments_; }

  /// Visits the live nodes in several calls; changes between two calls move it on.
  class Walk : NoCopy {
   public:
    explicit Walk(Heap& heap) noexcept;
    ~Walk();
    /// Returns the next live node after looking at no more than `nodes` nodes, and counts them
    /// down. Null when the count is used up or at the end.
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
  BlockNode* take_from(FreeIndex& index, std::size_t bytes);
  BlockNode* cut_from(FreeIndex& index, BlockNode* node, std::size_t bytes);
  std::size_t claim_pages_of(FreeIndex& index, std::size_t most, BlockNode*& chain) noexcept;
  void cut(BlockNode* node, std::size_t bytes, BlockNode* rest) noexcept;
  void cut_off(BlockNode* node, std::size_t bytes) noexcept;  // cut(), and lists the remainder
  void list(BlockNode* node) noexcept;                        // puts an idle node into its index
  void unlist(BlockNode* node) noexcept;                      // takes it out
  void insert(BlockNode* node) noexcept;  // as list(), but does not tell neighbouring holes
  void erase(BlockNode* node) noexcept;
  void insert_free(BlockNode* node, FreeIndex& index) noexcept;
  void erase_free(BlockNode* node, FreeIndex& index) noexcept;
  // Notes that a free node beside this one, if it is a hole, has come, gone or changed its size.
  void tell(BlockNode* neighbour) noexcept;
  void set_aside(BlockNode* hole) noexcept;
  void index_holes() noexcept;  // gives the holes in the aside list their keys
  Row row_at(BlockNode* hole, std::size_t bytes) const noexcept;
  void absorb(BlockNode* node, BlockNode* after) noexcept;
  void retire(BlockNode* node, BlockNode* into) noexcept;

  const Profile& profile_;
  FreeIndex small_;
  FreeIndex large_;
  FreeIndex small_holes_;  // keyed by the bytes of each hole's row
  FreeIndex large_holes_;
  FreeBytes free_bytes_;        // of small_ and large_
  BlockNode* aside_ = nullptr;  // holes without a valid key, until the next search for a row
  Segments segments_;
  std::uint64_t next_age_ = 0;
  Slab<BlockNode> nodes_;
  Walk* walks_ = nullptr;
};

}  // namespace ebb::memory::detail
