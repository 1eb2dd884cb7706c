#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "ebb/core/memory/place.h"

namespace ebb::memory::detail {

// Pairs of buffers that are alive together, counted up to `most`. Time n log n.
std::size_t overlapping_pairs(std::span<const Lifetime> buffers, std::size_t most);

// Improves `offsets`, which must be a placement, until it ends at `bound` or `steps` are used up.
// Buffers have bytes and steps. Returns the end of the highest buffer.
std::size_t search(std::span<const Lifetime> buffers, std::size_t bound, std::size_t steps,
                   std::vector<std::size_t>& offsets);

}  // namespace ebb::memory::detail
