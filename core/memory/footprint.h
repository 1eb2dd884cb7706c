#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ebb/allocator/statistics.h"

namespace ebb::memory {

// What was held at a moment that a program marked.
struct Moment {
  std::string name;
  std::size_t bytes = 0;  // the last time, if it was marked again
  bool before_steps = true;
};

// What one run of a program took: allocated bytes of a device, above what it held before.
struct Footprint {
  std::vector<Moment> moments;  // in the order they were first marked
  std::int64_t steps = 0;
  std::size_t step_peak_bytes = 0;  // the most in any step, from the mark before to its own
  std::size_t held_between_steps_bytes = 0;  // when the last step was marked, its loss included
  std::size_t peak_bytes = 0;                // the most in all
  ByCategory by_category{};                  // of peak_bytes, when it was first reached
  std::size_t end_bytes = 0;                 // left when the program had returned

  // Held from the device when the program had returned, and once the cache was released: above what
  // was held before, of which nothing was cached. The first depends on the room in segments that
  // were there already, so that a device and its twin need not agree on it.
  std::size_t reserved_end_bytes = 0;
  std::size_t reserved_released_bytes = 0;

  // What was held at the moment of that name. Throws Error where there is none.
  std::size_t at(const std::string& moment) const;
};

}  // namespace ebb::memory
