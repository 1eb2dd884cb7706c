#include "ebb/tests/allocator/random_program.h"

#include <cstring>
#include <map>

namespace ebb::tests {

void RandomProgram::step() {
  what_ = "";
  before_ = reserved();
  if (options_.injects) inject();
  act();
  HeapFault::disarm();
  check();
}

void RandomProgram::finish() {
  clear();
  if (allocator_.allocated_bytes() != 0) FAIL("bytes are left allocated");
  const memory::ReleaseReport report = allocator_.release_cached();
  if (report.pinned_bytes + report.preallocated_bytes + report.refused_bytes != 0)
    FAIL("a release left something of nothing");
  if (reserved() != lost_ || source_->committed_bytes() != lost_)
    FAIL("bytes are left reserved: " << reserved() << ", " << source_->committed_bytes());
  const Stats stats = allocator_.stats();
  if (stats.segments != 0 || stats.allocations != 0) FAIL("something is left");
  finished_ = true;
}

void RandomProgram::inject() {
  const std::size_t kind = random_.below(100);
  if (kind < 4) source_->fail_commit_after(random_.below(3));
  if (kind == 4) source_->refuse_all(refuses_ = !refuses_);
  if (kind == 5) source_->keep_all(keeps_ = !keeps_);
  if (kind == 6) source_->refuse_addresses(has_no_addresses_ = !has_no_addresses_);
  if (kind == 7) allocator_.fail_allocation_after(random_.below(3));
  if (kind < 8 || !random_.one_in(10)) return;
  refuses_ = keeps_ = has_no_addresses_ = false;
  source_->refuse_all(false);
  source_->keep_all(false);
  source_->refuse_addresses(false);
}

void RandomProgram::act() {
  presses_ = false;
  presser_ = nullptr;
  woken_ = nullptr;
  const std::size_t kind = random_.below(100);
  if (kind < 40) return random_.below(kMostLive) < live_.size() ? free_one() : allocate();
  if (kind < 44) return recategorise();
  if (kind < 47) return release();
  if (kind < 50) return change_limit();
  if (kind < 52) return preallocate();
  if (kind < 56 || pools_.empty()) return make_or_close();
  Owned& owned = pools_[random_.below(pools_.size())];
  presser_ = owned.pool.get();
  if (kind < 60) return suspend_or_resume(owned);
  if (kind < 63) return change_limit(owned);
  if (kind < 65) return preallocate(owned);
  if (owned.suspended && !random_.one_in(4)) return;
  if (owned.live.empty() || (kind < 75 && owned.live.size() < kMostPooled)) return allocate(owned);
  Live& live = owned.live[random_.below(owned.live.size())];
  if (kind < 82) return free_one(owned, live);
  if (owned.suspended) return;
  if (kind < 86) return grow(owned, live);
  live.presence == Presence::held ? rest(owned, live) : wake(owned, live);
}

void RandomProgram::allocate() {
  what_ = "allocate";
  const memory::Request request{.bytes = random_.bytes(), .category = random_.category()};
  Block* block = nullptr;
  if (!try_to([&] { block = allocator_.allocate(request); })) {
    if (options_.injects || !reason_) return;
    const std::size_t least = allocator_.profile().in_pages(Model::rounded(request.bytes));
    if (*reason_ == OutOfMemory::Reason::device_limit && reserved() + least <= limit_)
      FAIL("refused what the limit would have allowed");
    return;
  }
  live_.push_back({block, pattern()});
  live_.back().split[static_cast<std::size_t>(request.category)] = Model::rounded(request.bytes);
  if (block->requested_bytes() != request.bytes ||
      block->allocated_bytes() != Model::rounded(request.bytes))
    FAIL("another block than was asked for");
  fill(live_.back());
}

void RandomProgram::free_one() {
  what_ = "free";
  Live& live = live_[random_.below(live_.size())];
  verify(live);
  allocator_.free(live.block);
  live = live_.back();
  live_.pop_back();
}

void RandomProgram::recategorise() {
  what_ = "recategorise";
  if (live_.empty()) return;
  Live& live = live_[random_.below(live_.size())];
  const Category to = random_.category();
  allocator_.recategorise(live.block, to);
  live.split = {};
  live.split[static_cast<std::size_t>(to)] = live.block->allocated_bytes();
}

void RandomProgram::release() {
  what_ = "release";
  const memory::ReleaseReport report = allocator_.release_cached();
  if (before_ - reserved() != report.returned_bytes)
    FAIL("a release says another number than went");
  if (!keeps_ && report.refused_bytes > 0) FAIL("a release blames the device");
  const memory::Fragmentation parts = allocator_.fragmentation();
  if (report.pinned_bytes != parts.pinned_bytes) FAIL("a release says another pinned number");
  if (preallocated_ == 0 && parts.free_bytes != report.pinned_bytes + report.refused_bytes)
    FAIL("a release leaves what nobody uses");
  if (parts.free_bytes != report.pinned_bytes + report.refused_bytes + report.preallocated_bytes)
    FAIL("the report of a release does not add up");
}

void RandomProgram::change_limit() {
  what_ = "limit";
  presses_ = true;
  limit_ = random_.one_in(2) ? memory::kNoLimit : random_.below(std::size_t{200} << 20);
  if (limit_ == memory::kNoLimit)
    allocator_.set_limit({});
  else
    allocator_.set_limit(limit_);
  if (reserved() <= limit_ || keeps_) return;
  if (allocator_.fragmentation().free_bytes != allocator_.fragmentation().pinned_bytes)
    FAIL("free pages stay above a lowered limit");
  for (const Owned& owned : pools_)
    for (const Live& live : owned.live)
      if (live.presence == Presence::resting && pages(live) > 0 && !owned.reserves_ahead &&
          owned.pool->has_memory(live.block))
        FAIL("a resting block stays above a lowered limit");
}

void RandomProgram::preallocate() {
  what_ = "preallocate";
  if (!allocator_.profile().grows) return;
  const std::size_t bytes = random_.one_in(2) ? 0 : random_.below(std::size_t{64} << 20);
  if (!try_to([&] { allocator_.preallocate(bytes); })) return;
  preallocated_ = bytes;
  std::size_t of_pools = 0;
  for (const Owned& owned : pools_) of_pools += owned.pool->reserved_bytes();
  if (lost_ == 0 && reserved() - of_pools < bytes) FAIL("less was preallocated than was asked for");
}

void RandomProgram::make_or_close() {
  if (pools_.size() < kMostPools && !random_.one_in(3)) {
    what_ = "make a pool";
    pools_.push_back({allocator_.make_pool("pool"), {}});
    pools_.back().live.reserve(kMostPooled + 1);
    return;
  }
  if (pools_.empty()) return;
  what_ = "close a pool";
  const std::size_t which = random_.below(pools_.size());
  close(pools_[which]);
  pools_.erase(pools_.begin() + static_cast<std::ptrdiff_t>(which));
}

void RandomProgram::close(Owned& owned) {
  std::size_t blocks = 0, bytes = 0;
  for (const Live& live : owned.live) {
    if (live.presence == Presence::held) verify(live);
    if (!live.has_memory()) continue;
    ++blocks;
    bytes += live.block->allocated_bytes();
  }
  const std::size_t had = owned.pool->reserved_bytes(), device_had = reserved();
  const memory::CloseReport report = owned.pool->close();
  if (report.freed_blocks != blocks || report.freed_bytes != bytes)
    FAIL("a close says other blocks than there were");
  if (report.returned_bytes != had - owned.pool->reserved_bytes() ||
      (preallocated_ == 0 && report.returned_bytes != device_had - reserved()))
    FAIL("a close says other bytes than went");
  if (!keeps_ && owned.pool->reserved_bytes() != 0) FAIL("a closed pool has memory");
  lost_ += owned.pool->reserved_bytes();
  owned.live.clear();
  if (owned.pool->close().returned_bytes != 0 && keeps_) FAIL("closed twice");
}

void RandomProgram::suspend_or_resume(Owned& owned) {
  if (!owned.suspended) {
    what_ = "suspend";
    for (const Live& live : owned.live)
      if (live.presence == Presence::held) verify(live);
    const std::size_t had = owned.pool->reserved_bytes();
    const memory::CloseReport report = owned.pool->suspend();
    if (report.returned_bytes != had - owned.pool->reserved_bytes())
      FAIL("a suspended pool says another number than went");
    owned.suspended = true;
    for (Live& live : owned.live) {
      if (owned.pool->has_memory(live.block)) {
        if (!keeps_) FAIL("a suspended pool has memory");
      } else if (live.presence == Presence::held) {
        live.presence = Presence::suspended;
      } else if (live.presence == Presence::resting) {
        live.presence = Presence::away;
      }
    }
    if (!keeps_ && owned.exact && owned.pool->reserved_bytes() != 0)
      FAIL("a suspended pool has bytes reserved");
    return;
  }
  what_ = "resume";
  std::map<const Block*, const void*> at;
  for (const Live& live : owned.live) at[live.block] = live.block->data();
  if (!try_to([&] { owned.pool->resume(); })) {
    for (Live& live : owned.live)
      if (live.presence == Presence::suspended && owned.pool->has_memory(live.block)) {
        if (!keeps_) FAIL("a pool that was not resumed has memory");
        live.presence = Presence::held;  // the device would not take it back
        fill(live);
      }
    return;
  }
  owned.suspended = false;
  for (Live& live : owned.live) {
    if (live.presence != Presence::suspended) continue;
    if (!owned.pool->has_memory(live.block)) FAIL("a resumed pool lacks memory");
    if (allocator_.profile().grows && live.block->data() != at[live.block])
      FAIL("a resumed block is elsewhere");
    live.presence = Presence::held;
    fill(live);
  }
}

void RandomProgram::change_limit(Owned& owned) {
  what_ = "a pool's limit";
  presses_ = true;
  owned.limit = random_.one_in(2) ? memory::kNoLimit : random_.below(std::size_t{60} << 20);
  if (owned.limit == memory::kNoLimit)
    owned.pool->set_limit({});
  else
    owned.pool->set_limit(owned.limit);
  if (keeps_ || owned.pool->reserved_bytes() <= owned.limit) return;
  std::size_t held = 0;
  for (const Live& live : owned.live)
    if (live.has_memory() && owned.pool->has_memory(live.block)) held += pages(live);
  if (owned.exact && owned.pool->reserved_bytes() != held)
    FAIL("a pool keeps more than its live blocks above its limit");
}

void RandomProgram::preallocate(Owned& owned) {
  what_ = "preallocate for a pool";
  owned.reserves_ahead = true;
  if (!allocator_.profile().grows || owned.suspended) return;
  const std::size_t bytes = random_.one_in(2) ? 0 : random_.below(std::size_t{20} << 20);
  owned.exact = false;
  if (!try_to([&] { owned.pool->preallocate(bytes); })) return;
  if (owned.pool->reserved_bytes() < bytes) FAIL("a pool has less than was preallocated");
}

void RandomProgram::allocate(Owned& owned) {
  what_ = "allocate in a pool";
  const std::size_t bytes = random_.bytes();
  const memory::Composition composition{split_of(bytes), {}};
  const memory::Request request{.bytes = bytes, .category = random_.category()};
  const bool may_grow = random_.one_in(3);
  memory::Composition given = composition;
  Block* block = nullptr;
  if (!try_to([&] { block = owned.pool->allocate(request, std::move(given), may_grow); })) return;
  owned.live.push_back({block, pattern(), next_age_++, composition.split});
  owned.live.back().may_grow = may_grow;
  fill(owned.live.back());
}

void RandomProgram::grow(Owned& owned, Live& live) {
  what_ = "grow";
  if (!live.has_memory()) return;
  const std::size_t bytes = live.block->requested_bytes() + random_.below(std::size_t{3} << 20);
  const memory::Composition composition{split_of(bytes), {}};
  memory::Composition given = composition;
  verify(live);
  const void* at = live.block->data();
  bool grew = false;
  if (!try_to([&] {
        wake_with_memory(owned, live);
        grew = owned.pool->grow(live.block, {.bytes = bytes}, std::move(given));
      })) {
    note_woken(owned, live);
    return;
  }
  live.presence = Presence::held;
  if (grew) live.split = composition.split;
  if (grew && allocator_.profile().grows && at && live.block->data() != at)
    FAIL("a block grew elsewhere");
  fill(live);
}

void RandomProgram::wake(Owned& owned, Live& live) {
  what_ = "wake";
  const bool was_there = owned.pool->has_memory(live.block);
  if (!try_to([&] { wake_with_memory(owned, live); })) {
    note_woken(owned, live);
    return;
  }
  live.presence = Presence::held;
  if (!owned.pool->has_memory(live.block)) FAIL("a block that woke has no memory");
  if (was_there)
    verify(live);
  else
    fill(live);
}

void RandomProgram::note_woken(Owned& owned, Live& live) {
  if (!owned.pool->has_memory(live.block)) return;
  owned.pool->rest(live.block);
  live.presence = Presence::resting;
  woken_ = live.block;
}

void RandomProgram::free_one(Owned& owned, Live& live) {
  what_ = "free in a pool";
  if (live.presence == Presence::held) verify(live);
  owned.pool->free(live.block);
  if (keeps_) owned.exact = false;
  live = owned.live.back();
  owned.live.pop_back();
}

void RandomProgram::check() {
  std::vector<std::pair<std::uint64_t, bool>> resting;  // of pools, in order; whether it went
  Model device;
  for (const Live& live : live_) device.count(live.block->requested_bytes(), live.split);
  bool went_before = true;
  for (Owned& owned : pools_) {
    Model model;
    bool went_before_here = true;
    for (auto each : in_order(owned)) {
      Live& live = *each;
      const bool has_memory = owned.pool->has_memory(live.block);
      if (live.presence == Presence::resting) {
        const bool is_mine = owned.pool.get() == presser_;
        if (!has_memory) {
          ++taken_;
          live.presence = Presence::away;
          if (!presses_) fail("memory of a resting block went without pressure");
          if (pages(live) > 0 && !(is_mine ? went_before_here : went_before))
            fail("memory of resting blocks went out of order");
        } else if (pages(live) > 0 && live.block != woken_ && !owned.reserves_ahead) {
          went_before = went_before_here = false;
        }
      } else if (has_memory != live.has_memory()) {
        fail("memory came or went of itself");
      }
      if (!live.has_memory()) continue;
      model.count(live.block->requested_bytes(), live.split);
      device.count(live.block->requested_bytes(), live.split);
    }
    const Stats stats = owned.pool->stats();
    if (!model.is_now(stats)) fail("a pool's figures differ from the model's");
    std::size_t held = 0, segments = 0;
    for (const Live& live : owned.live) {
      if (!live.has_memory()) continue;
      held += pages(live);
      segments += pages(live) > 0;
    }
    if (stats.reserved.current < held) fail("a pool's blocks have more than it has reserved");
    if (keeps_) owned.exact = false;
    if (owned.exact && (stats.reserved.current != held || stats.segments != segments))
      fail("a pool holds more than its blocks");
  }
  const Stats stats = allocator_.stats();
  if (!device.is_now(stats)) fail("the device's figures differ from the model's");
  if (stats.reserved.current != source_->committed_bytes())
    fail(
        "reserved is not what the source has committed: " + std::to_string(stats.reserved.current) +
        ", " + std::to_string(source_->committed_bytes()));
  if (stats.reserved.current > before_ && stats.reserved.current > limit_)
    fail("more was reserved than the limit");
  const memory::Fragmentation parts = allocator_.fragmentation();
  if (stats.reserved.current != stats.requested.current + parts.rounding_bytes +
                                    parts.page_rounding_bytes + parts.free_bytes +
                                    parts.reserved_ahead_bytes)
    fail("the parts of reserved do not add up");
  if (parts.pinned_bytes > parts.free_bytes || parts.largest_free_bytes > parts.free_bytes ||
      (parts.free_bytes > 0) != (parts.free_pieces > 0) ||
      parts.page_rounding_bytes > stats.reserved.current)
    fail("the parts of reserved are no parts");
}

std::vector<RandomProgram::Live*> RandomProgram::in_order(Owned& owned) {
  std::map<std::uint64_t, Live*> by_age;
  for (Live& live : owned.live) by_age[live.age] = &live;
  std::vector<Live*> order;
  for (const auto& [age, live] : by_age) order.push_back(live);
  return order;
}

void RandomProgram::clear() {
  source_->refuse_all(false);
  source_->keep_all(keeps_ = false);
  source_->refuse_addresses(false);
  allocator_.set_limit(limit_ = memory::kNoLimit);
  if (allocator_.profile().grows) allocator_.preallocate(0);
  preallocated_ = 0;
  for (const Live& live : live_) {
    verify(live);
    allocator_.free(live.block);
  }
  live_.clear();
  for (Owned& owned : pools_) close(owned);
  pools_.clear();
}

void RandomProgram::abandon() {
  HeapFault::disarm();
  source_->keep_all(false);
  for (const Live& live : live_) allocator_.free(live.block);
  pools_.clear();
}

RandomProgram::ByCategory RandomProgram::split_of(std::size_t bytes) {
  ByCategory split{};
  const std::size_t all = Model::rounded(bytes);
  const std::size_t part = all / 512 > 0 ? 512 * random_.below(all / 512 + 1) : 0;
  split[random_.below(split.size())] += part;
  split[random_.below(split.size())] += all - part;
  return split;
}

void RandomProgram::verify(const Live& live) const {
  if (!options_.writes) return;
  const auto* bytes = static_cast<const unsigned char*>(live.block->data());
  const std::size_t count = live.block->requested_bytes();
  if (count > 0 && (bytes[0] != live.pattern || std::memcmp(bytes, bytes + 1, count - 1) != 0))
    FAIL("somebody else wrote here");
}

}  // namespace ebb::tests
