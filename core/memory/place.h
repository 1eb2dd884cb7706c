#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "ebb/core/base/call_site.h"

namespace ebb::memory {

// A buffer that is needed from step `first` to just before step `end`.
struct Lifetime {
  std::size_t first = 0;
  std::size_t end = 0;
  std::size_t bytes = 0;
};

struct PlaceOptions {
  // Most work of the search that follows the simple orders, in buffers looked at. 0: no search. The
  // default takes some seconds. Programs with more overlapping pairs than steps are not searched.
  std::size_t steps = 30'000'000;
};

struct Placement {
  std::vector<std::size_t> offsets;   // bytes, one per buffer
  std::size_t total_bytes = 0;        // end of the highest buffer
  std::size_t lower_bound_bytes = 0;  // most bytes alive at once
  std::size_t peak_step = 0;          // first step at which they are alive
};

// Assigns offsets in one arena so that buffers alive at the same step do not overlap. Offsets are
// multiples of the greatest common divisor of all sizes. A buffer of no bytes or no steps is at 0
// and in nobody's way. The same lifetimes and steps give the same offsets on every machine.
//
// Tries largest first and both directions of time, on the buffers and on groups of them that fill a
// rectangle. Puts buffers together that take each other's places without a gap (PQ-trees: Booth and
// Lueker, Journal of Computer and System Sciences 13, 1976). Then searches, apart for each section
// of time that no buffer crosses: fills valleys without gaps; tries all placements of few buffers
// (MiniMalloc: Moffitt, ASPLOS 2023); and lowers the end step by step. For that, buffers above it
// are inserted below, each where the buffers that have to leave weigh least. Their weights grow as
// they leave (as in PartialCol: Blöchliger and Zufferey, Computers & Operations Research 35, 2008).
//
// Throws Error for a buffer that ends before it begins and for sizes that sum to more than 2^63.
Placement place(std::span<const Lifetime> buffers, const PlaceOptions& options = {},
                CallSite site = CallSite::here());

}  // namespace ebb::memory
