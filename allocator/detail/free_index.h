// Best-fit index of nodes.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "ebb/allocator/detail/block_node.h"

namespace ebb::memory::detail {

/// Nodes ordered by (key, age of segment, offset): a total order, independent of addresses and
/// history. A node's key must not change while it is in the index.
///
/// Bins split each power of two into 32, so that most hold only a few nodes. Two levels of bitmap
/// find the next filled bin. Within a bin a treap keeps the order: exact, and logarithmic when
/// thousands of nodes share a bin. The newest node stays in hand, in no bin, until another comes,
/// as it is often the next to be taken. No call allocates.
class FreeIndex {
 public:
  void insert(BlockNode* node) noexcept {
    put_down();
    in_hand_ = node;
  }
  void erase(BlockNode* node) noexcept {
    if (node == in_hand_)
      in_hand_ = nullptr;
    else
      take_out(node);
  }
  /// First node in this order whose key is at least `bytes`; null if there is none.
  BlockNode* best_fit(std::size_t bytes) const noexcept;
  /// Last node; null if there is none.
  BlockNode* last() noexcept;
  /// Node before `node` in this order, or null; `node` itself may be gone already.
  BlockNode* before(const BlockNode* node) noexcept;
  /// Links all nodes with keys of at least `bytes` through `chain`, largest first, and returns the
  /// first.
  BlockNode* chain_of_at_least(std::size_t bytes) noexcept;

 private:
  static constexpr unsigned kFractionBits = 5;
  static constexpr std::size_t kBins = (64 - kFractionBits + 1) << kFractionBits;
  static constexpr std::size_t kWords = kBins / 64;

  // Monotone in bytes: the position of the leading one, then the bits after it.
  static std::size_t bin_of(std::size_t bytes) noexcept {
    constexpr std::size_t kExact = std::size_t{1} << kFractionBits;
    if (bytes < kExact) return bytes;
    const unsigned shift = static_cast<unsigned>(std::bit_width(bytes)) - 1 - kFractionBits;
    return (std::size_t{shift} << kFractionBits) + (bytes >> shift);
  }
  std::size_t next_filled_bin(std::size_t from) const noexcept;    // kBins if there is none
  std::size_t last_filled_bin(std::size_t before) const noexcept;  // kBins if there is none
  void put_down() noexcept {
    if (in_hand_) put_in(in_hand_);
    in_hand_ = nullptr;
  }
  void put_in(BlockNode* node) noexcept;
  void take_out(BlockNode* node) noexcept;

  std::array<BlockNode*, kBins> roots_{};
  std::array<std::uint64_t, kWords> filled_{};  // a bit for each bin
  std::uint64_t filled_words_ = 0;              // a bit for each word of filled_
  BlockNode* in_hand_ = nullptr;                // in no bin
  std::uint32_t random_ = 1;
  static_assert(kWords <= 64);
};

}  // namespace ebb::memory::detail
