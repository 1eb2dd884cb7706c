// The figures of a device or of one of its pools.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <string>
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

/// A consistent snapshot: all figures are of the same moment, except what the device says is free.
struct Stats {
  Figure requested;  ///< as asked for
  Figure allocated;  ///< rounded up to the profile's rounding; never depends on the cache's state
  Figure reserved;   ///< segments held from the device
  std::array<Figure, kCategoryCount> by_category;  ///< of the allocated bytes; a change of category
                                                   ///< adds to the total of the new one
  ByCategory at_peak{};         ///< the split of `allocated` when it first reached its peak
  std::size_t device_free = 0;  ///< what the device itself says
  std::size_t device_total = 0;
  std::size_t limit = kNoLimit;  ///< on `reserved`
  std::size_t allocations = 0;   ///< live blocks, those of zero bytes included
  std::size_t segments = 0;
  bool operator==(const Stats&) const = default;
};

/// The live blocks that one tag asked for.
struct Holder {
  Tag tag;
  std::size_t bytes = 0;  ///< allocated
  std::size_t blocks = 0;
};

/// What release_cached() did. A free block stays when a live one shares its segment: a segment goes
/// back to the device whole or not at all.
struct ReleaseReport {
  std::size_t returned_bytes = 0;
  std::size_t returned_segments = 0;
  std::size_t kept_bytes = 0;     ///< free, but in a segment that a live block still uses
  std::size_t kept_segments = 0;  ///< how many such segments
};

/// What closing a pool did.
struct CloseReport {
  std::size_t freed_blocks = 0;
  std::size_t freed_bytes = 0;     ///< allocated bytes of the blocks still alive at the close
  std::size_t returned_bytes = 0;  ///< reserved bytes that went back to the device
};

/// "512 bytes", "20 MiB", "1.5 KiB": a decimal says that the figure is rounded.
std::string format_bytes(std::size_t bytes);

/// One line for people: how much went, how much stayed, and why.
std::string describe(const ReleaseReport& report);

}  // namespace ebb::memory
