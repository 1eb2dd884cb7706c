#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "ebb/core/memory/place.h"

namespace ebb::memory::detail {

// Places buffers below `bound`, without search, where those that begin at a step take exactly the
// bytes of those that end at it, in one piece. Only then are `offsets` written and true returned.
// Looks at each pair of buffers alive together a few times.
bool place_tightly(std::span<const Lifetime> buffers, std::size_t bound,
                   std::vector<std::size_t>& offsets);

}  // namespace ebb::memory::detail
