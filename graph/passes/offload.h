#pragma once
#include <vector>

#include "ebb/graph/passes/timeline.h"

namespace ebb::detail {

// Values that are copied to page-locked memory of the host after they are made, dropped, and copied
// back for a later reader: another way than to compute them again, and without what that reads.

// Adds the steps that copy values back, for a device with a link to the host. Their time
// includes that of the save.
void add_restores(Timeline& timeline, const memory::Profile& profile);

// Adds moves to a draft whose order is being made anew.
class Mover {
 public:
  Mover(Draft& draft, std::vector<Index>& order) : draft_(draft), order_(order) {}

  // Brings the value of a memory back before the next step of the order, and sees to it that it is
  // saved. `source` is the memory that has held it so far. Returns the new one.
  Index bring_back(Index memory, Index source);
  // The order is complete: puts the moves into it, where they take no memory beyond what their
  // values would take if they were dropped and computed again.
  void put_into_order();

 private:
  Index add_step(const OpDef& op, Index from, Index to);
  void add_move(bool is_out, Index from, Index to, Index source);

  Draft& draft_;
  std::vector<Index>& order_;
  std::vector<Index> host_of_;  // host buffer's memory, by memory
  Index host_buffers_ = 0;
};

// Spreads moves over the time of other steps, as far as the arena has room: values come back ahead
// of need, and saves end later.
void overlap_moves(const Draft& draft, Schedule& schedule, std::size_t arena_bytes);

bool is_move(const Node& node) noexcept;

}  // namespace ebb::detail
