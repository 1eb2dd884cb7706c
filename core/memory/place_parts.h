// The parts of place(), each in a file of its own.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "ebb/core/memory/place.h"

namespace ebb::memory::detail {

// Buffers joined to groups that fill a rectangle of time and bytes without holes. Placing groups in
// place of buffers is a smaller problem, and mostly one that is as tight.
class Groups {
 public:
  // Joins buffers with the same lifetime, and buffers of one size of which one ends where the other
  // begins, until there are none. n log n.
  explicit Groups(std::span<const Lifetime> buffers);

  const std::vector<Lifetime>& lifetimes() const noexcept { return lifetimes_; }
  // Offsets of the buffers, from those of the groups.
  std::vector<std::size_t> offsets(std::span<const std::size_t> of_groups) const;

 private:
  struct Group {
    Lifetime life;
    std::size_t lower = kNone, upper = kNone;  // parts; kNone: the buffer of the same number
    bool in_time = false;                      // parts follow each other, at one offset
    bool is_part = false;
  };
  static constexpr std::size_t kNone = ~std::size_t{0};

  std::size_t buffer_count_;
  std::vector<Group> groups_;  // buffers, then each group after its parts
  std::vector<std::size_t> roots_;
  std::vector<Lifetime> lifetimes_;  // by root
};

// Places buffers below `bound`, without search, where those that begin at a step take exactly the
// bytes of those that end at it, in one piece. Only then are `offsets` written and true returned.
// Looks at each pair of buffers alive together a few times.
bool place_tightly(std::span<const Lifetime> buffers, std::size_t bound,
                   std::vector<std::size_t>& offsets);

// Pairs of buffers that are alive together, counted up to `most`. Time n log n.
std::size_t overlapping_pairs(std::span<const Lifetime> buffers, std::size_t most);

// Improves `offsets`, which must be a placement, until it ends at `bound` or `steps` are used up.
// Buffers have bytes and steps. Returns the end of the highest buffer.
std::size_t search(std::span<const Lifetime> buffers, std::size_t bound, std::size_t steps,
                   std::vector<std::size_t>& offsets);

}  // namespace ebb::memory::detail
