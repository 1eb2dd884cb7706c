#pragma once
#include <cstdint>

#include "ebb/core/tensor.h"

namespace ebb {

struct Seed {
  std::uint64_t value = 0;
};

// Restarts the calling thread's generator of eager random operators. Each draw takes the next
// counter under this key, so that the same seed repeats the same program.
void set_seed(Seed seed) noexcept;

namespace detail {
// The calling thread's generator; a checkpoint saves it and recompute rewinds it.
struct Generator {
  std::uint64_t key = 0;
  std::uint64_t counter = 0;
};
Generator& generator() noexcept;

// A new draw, i64[2] {key, counter}: the generator's next on `device`, or in the graph of `like`
// (if that is symbolic) a node that draws anew in every run.
Tensor next_draw(const Tensor& like, CallSite site);
Tensor next_draw(const Device& device, CallSite site);
}  // namespace detail

}  // namespace ebb
