#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ebb/allocator/statistics.h"

namespace ebb::memory {

// Bytes held at a moment that a program marked.
struct Moment {
  std::string name;
  std::size_t bytes = 0;  // at the last mark of that name
  bool before_steps = true;
};

// Memory of one run of a program: allocated bytes of a device, above the bytes held before it.
struct Footprint {
  std::vector<Moment> moments;  // in the order of their first marks
  std::int64_t steps = 0;
  std::size_t step_peak_bytes = 0;           // most in any step, from the previous mark to its own
  std::size_t held_between_steps_bytes = 0;  // at the mark of the last step, its loss included
  std::size_t peak_bytes = 0;                // most in the whole run
  ByCategory by_category{};                  // of peak_bytes, when it was first reached
  std::size_t end_bytes = 0;                 // still held after the program returned

  // Reserved bytes, above the bytes reserved before the run with an empty cache: after the program
  // returned, and after release_cached(). The first depends on the room in segments that already
  // existed, so it may differ between a device and its twin.
  std::size_t reserved_end_bytes = 0;
  std::size_t reserved_released_bytes = 0;

  // Bytes held at the moment of that name. Throws Error if it was never marked.
  std::size_t at(const std::string& moment) const;
};

}  // namespace ebb::memory
