// Finds the best free node.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "ebb/allocator/detail/block_node.h"

namespace ebb::memory::detail {

/// Nodes in the order (key, age of segment, offset), which is total and independent of addresses
/// and history. A key stays what it is while its node is in the index.
///
/// Bins split each power of two into 32, so that a bin rarely holds more than a few nodes; two
/// levels of bitmap find the next bin that holds any. Within a bin a treap keeps the order, so that
/// the answer is exact, and logarithmic when thousands of nodes share a bin. The node that came
/// last stays in hand until another comes: often it is the next to go. No call allocates.
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
  /// The first node, in the order above, whose key is at least so many bytes; null if there is
  /// none.
  BlockNode* best_fit(std::size_t bytes) const noexcept;
  /// The last one; null if there is none.
  BlockNode* last() noexcept;
  /// The one before it in that order, or null; it need not be there any more.
  BlockNode* before(const BlockNode* node) noexcept;
  /// Links every node whose key is at least so many bytes through `chain`, largest first, and
  /// returns the first.
  BlockNode* chain_of_at_least(std::size_t bytes) noexcept;

 private:
  static constexpr unsigned kFractionBits = 5;
  static constexpr std::size_t kBins = (64 - kFractionBits + 1) << kFractionBits;
  static constexpr std::size_t kWords = kBins / 64;

  // Monotone in bytes: the position of the leading one, then the bits behind it.
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
