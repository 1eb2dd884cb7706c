// Figures of a device or of one of its pools.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "ebb/allocator/category.h"

namespace ebb::memory {

inline constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

/// Bytes now, the most since the peaks were last reset, and the sum of everything ever added.
struct Figure {
  std::size_t current = 0;
  std::size_t peak = 0;
  std::size_t total = 0;
  bool operator==(const Figure&) const = default;
};

using ByCategory = std::array<std::size_t, kCategoryCount>;

/// A consistent snapshot: all figures are of the same moment, except the device's free bytes.
struct Stats {
  Figure requested;  ///< as asked for
  Figure allocated;  ///< rounded up to the profile's rounding; independent of the cache's state
  Figure reserved;   ///< held from the device
  std::array<Figure, kCategoryCount> by_category;  ///< split of the allocated bytes; a change of
                                                   ///< category adds to the total of the new one
  ByCategory at_peak{};         ///< split of `allocated` when it first reached its peak
  std::size_t device_free = 0;  ///< as the device itself reports
  std::size_t device_total = 0;
  std::size_t limit = kNoLimit;  ///< on `reserved`
  std::size_t allocations = 0;   ///< live blocks, also empty ones
  std::size_t segments = 0;      ///< ranges of addresses that have memory
  bool operator==(const Stats&) const = default;

  /// Device memory that is neither free nor reserved here: contexts, modules, library handles,
  /// other processes. For a whole device, not for a pool.
  std::size_t device_other() const noexcept {
    const std::size_t known = device_free + reserved.current;
    return device_total > known ? device_total - known : 0;
  }
};

/// Live blocks that were requested under one tag.
struct Holder {
  Tag tag;
  std::size_t bytes = 0;  ///< allocated
  std::size_t blocks = 0;
};

/// Split of a block that serves several categories: an arena, a session's variables.
struct Composition {
  ByCategory split{};           ///< adds up to the rounded bytes
  std::vector<Holder> holders;  ///< largest requesters inside the block, as far as known
};

/// Why more is reserved than was requested: reserved = requested + rounding + page_rounding + free
/// + reserved_ahead.
struct Fragmentation {
  std::size_t rounding_bytes = 0;        ///< allocated but not requested
  std::size_t page_rounding_bytes = 0;   ///< unused ends of the last pages of pools' blocks
  std::size_t reserved_ahead_bytes = 0;  ///< unused bytes of sessions that preallocate
  std::size_t free_bytes = 0;            ///< cached for the next request
  std::size_t pinned_bytes = 0;          ///< part of free_bytes: in pages that a live neighbour
                                         ///< uses, so that they cannot go back
  std::size_t largest_free_bytes = 0;    ///< in one piece
  std::size_t free_pieces = 0;
};

/// Result of release_cached(). A page goes back to the device when no live block uses any of it.
struct ReleaseReport {
  std::size_t returned_bytes = 0;
  std::size_t pinned_bytes = 0;        ///< free, but in a page that a live block uses (or in a
                                       ///< segment, on a device without ranges)
  std::size_t preallocated_bytes = 0;  ///< free, but kept because it was preallocated
  std::size_t refused_bytes = 0;       ///< free, but the device did not take it back
};

/// Result of closing a pool.
struct CloseReport {
  std::size_t freed_blocks = 0;
  std::size_t freed_bytes = 0;     ///< allocated bytes of the blocks still alive at the close
  std::size_t returned_bytes = 0;  ///< reserved bytes that went back to the device
};

/// "512 bytes", "20 MiB", "1.5 KiB": a decimal means that the figure is rounded.
std::string format_bytes(std::size_t bytes);

/// Parses "4096", "512M" or "8GiB" into bytes; units are powers of 1024 with or without "iB".
/// Returns 0 for anything else, and for more than can be addressed.
std::size_t parse_bytes(std::string_view text) noexcept;

/// "FILE:LINE" or "layer LAYER, FILE:LINE" in at most `columns` characters. Where that is too long,
/// the path loses its beginning, and a layer that takes more than half loses its own.
std::string source_line(const Tag& tag, std::size_t columns);

/// One line for people: bytes returned, bytes kept, and why.
std::string describe(const ReleaseReport& report);

}  // namespace ebb::memory
