#include "ebb/graph/arena.h"

#include <utility>

#include "ebb/core/base/log.h"

namespace ebb::detail {

void Arena::provide(const memory::Plan& plan) {
  if (plan.arena_bytes == 0) return;
  if (block_ && block_->requested_bytes() >= plan.arena_bytes &&
      pool_.wake(block_, plan.arena_bytes))
    return;
  const memory::Request request{plan.arena_bytes, memory::Category::activation, plan.peak_tag,
                                purpose_};
  memory::Composition composition{plan.arena_by_category, plan.arena_holders};
  if (!block_ || !pool_.grow(block_, request, composition)) {
    // A new arena replaces the old one: both at once would exceed the plan's peak.
    const bool had_memory = block_ && pool_.has_memory(block_);
    pool_.free(std::exchange(block_, nullptr));
    try {
      block_ = pool_.allocate(request, composition, true);
    } catch (...) {
      if (had_memory) restore();
      throw;
    }
  }
  request_ = request;
  composition_ = std::move(composition);
  if (logs_debug()) log_debug("session: an arena of " + memory::format_bytes(plan.arena_bytes));
}

// Usually its memory is still free; if another thread has taken it, the next run asks again.
void Arena::restore() noexcept {
  try {
    block_ = pool_.allocate(request_, composition_, true);
  } catch (...) {  // NOLINT(bugprone-empty-catch)
  }
}

}  // namespace ebb::detail
