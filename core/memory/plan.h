#pragma once
#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include "ebb/allocator/statistics.h"

namespace ebb::memory {

// What a session that has run one set of fetches with one set of fed shapes, and nothing else,
// holds and has held at most: known before anything runs, and equal to the measurement byte for
// byte.
struct Plan {
  std::size_t peak_bytes = 0;  // of allocated bytes: the sum of the next four
  std::size_t parameter_bytes = 0;
  std::size_t optimizer_state_bytes = 0;  // and other slots
  std::size_t feed_bytes = 0;   // slots that feeds are copied to; none where they are read in place
  std::size_t arena_bytes = 0;  // everything computed in between, workspace included
  std::size_t reserved_bytes = 0;     // the same in whole pages
  std::size_t lower_bound_bytes = 0;  // peak_bytes with the most bytes alive at once for the arena
  std::size_t naive_bytes = 0;        // peak_bytes if nothing shared memory
  std::size_t workspace_bytes = 0;    // the largest workspace, inside the arena
  ByCategory by_category{};           // of peak_bytes
  ByCategory arena_by_category{};     // of arena_bytes: the moment with most bytes alive, and what
                                      // placement adds to that as temporary
  std::size_t nodes = 0;              // that run
  // Whether updates of variables run as soon as they can, which frees each gradient after its use,
  // and not where the program has them: chosen where it takes fewer bytes.
  bool updates_early = false;
  std::string peak_node;              // "matmul (model.cpp:12)", where most bytes of the arena live
  Tag peak_tag = {};                  // the same
  std::vector<Holder> arena_holders;  // whose buffers those are, the largest first, a few
};

// The figures in lines, for people; without a last line break.
std::ostream& operator<<(std::ostream& out, const Plan& plan);

}  // namespace ebb::memory
