#include "ebb/graph/arena.h"

#include <utility>

#include "ebb/core/base/log.h"

namespace ebb::detail {

void Arena::provide(const memory::Plan& plan) {
  const bool is_new = provide_host(plan);
  try {
    provide_block(plan);
  } catch (...) {
    if (is_new) give_up_values();
    throw;
  }
}

bool Arena::provide_host(const memory::Plan& plan) {
  const std::size_t bytes = plan.page_locked_bytes - plan.host_state_bytes;
  if (bytes <= host_bytes_) return false;
  give_up_values();
  if (memory::CachingAllocator* const locked = runtime_.staging()) {
    auto pool = locked->make_pool(purpose_);
    host_block_ = pool->allocate(
        {bytes, memory::Category::activation, plan.peak_tag, "values that plans move to the host"});
    host_pool_ = std::move(pool);
  }
  host_bytes_ = bytes;
  return true;
}

void Arena::give_up_values() noexcept {
  host_block_ = nullptr;
  host_pool_.reset();
  host_bytes_ = 0;
}

void Arena::give_up_host() noexcept {
  give_up_values();
  staging_ = nullptr;
  staging_pool_.reset();
}

std::byte* Arena::staging(std::size_t bytes) {
  if (staged_bytes() < bytes) {
    staging_ = nullptr;
    staging_pool_.reset();
    auto pool = runtime_.staging()->make_pool(purpose_);
    try {
      staging_ = pool->allocate({bytes, memory::Category::input, {}, "large feeds from the host"});
    } catch (const OutOfMemory&) {
      return nullptr;
    }
    staging_pool_ = std::move(pool);
  }
  return static_cast<std::byte*>(staging_->data());
}

void Arena::provide_block(const memory::Plan& plan) {
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
