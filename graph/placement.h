#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace ebb::detail {

// A buffer that lives from step `first` to step `last`, both included.
struct BufferLife {
  std::size_t first = 0;
  std::size_t last = 0;
  std::size_t bytes = 0;
};

struct ArenaLayout {
  std::vector<std::size_t> offsets;  // one per buffer
  std::size_t total_bytes = 0;
  std::size_t lower_bound_bytes = 0;  // the most bytes alive at once
  std::size_t peak_step = 0;          // the step at which they are alive
};

// Assigns offsets in one arena so that buffers alive at the same step do not overlap. Tries several
// orders (largest first, as lives begin, as they end) and keeps the layout that ends lowest. Sizes
// are positive multiples of the alignment. The same lives give the same offsets everywhere. Takes n
// log n time beyond some thousands of buffers.
ArenaLayout place(std::span<const BufferLife> buffers);

}  // namespace ebb::detail
