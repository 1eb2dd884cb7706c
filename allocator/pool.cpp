#include "ebb/allocator/pool.h"

#include <utility>

#include "ebb/allocator/detail/allocator_state.h"

namespace ebb::memory {

using detail::Holding;
using detail::PoolState;
using detail::Refusal;
using Presence = detail::Holding::Presence;
using Reason = OutOfMemory::Reason;

namespace {
// Addresses of a block that may grow, as a multiple of its pages. A larger batch then stays where
// it is, and a process with limited addresses still has enough for all sessions its memory holds.
constexpr std::size_t kRoomToGrow = 4;

Holding& holding_of(Block* block) noexcept {
  return static_cast<Holding&>(*detail::node_of(block));
}
}  // namespace

/// State of a block before it grew.
struct Pool::Before {
  Request request;
  Composition composition;
  std::byte* data = nullptr;
  std::size_t bytes = 0, pages = 0;
  bool is_here = false;
};

Pool::Pool(detail::AllocatorState& allocator, std::string name, std::optional<std::size_t> limit)
    : allocator_(allocator),
      state_(std::make_unique<PoolState>(allocator.lock, allocator.ends, std::move(name))) {
  state_->limit = limit.value_or(kNoLimit);
  const Guard guard(allocator_.lock);
  allocator_.pools.push_back(state_.get());
}

// Memory that the device did not take back stays in the device's figures.
Pool::~Pool() {
  close();
  allocator_.note(CallLog::Kind::destroy_pool, this);
  const Guard mapping(allocator_.mapping);  // threads that take memory away hold it, and are done
                                            // with the pool after this
  for (const auto& [age, holding] : state_->holdings) allocator_.refused_by_device -= holding.pages;
  const Guard guard(allocator_.lock);
  allocator_.segments_of_pools -= state_->segments;
  std::erase(allocator_.pools, state_.get());
}

Composition Pool::of_one(const Request& request) const {
  Composition composition;
  composition.split[static_cast<std::size_t>(request.category)] =
      allocator_.profile.rounded(request.bytes);
  return composition;
}

Block* Pool::allocate(const Request& request) { return allocate(request, of_one(request)); }

Block* Pool::allocate(const Request& request, Composition composition, bool may_grow) {
  detail::locked(allocator_.lock, [&] { check_open(); });
  Holding& holding = add_holding(request, std::move(composition), may_grow);
  try {
    provide(holding, 0, allocator_.profile.in_pages(holding.bytes()), request, [] {});
    allocator_.tell_passed(request);
    const Guard mapping(allocator_.mapping);
    check_open();
    holding.is_busy = false;
  } catch (...) {
    remove_holding(holding);
    throw;
  }
  allocator_.note(CallLog::Kind::allocate, this, static_cast<Block*>(&holding), request,
                  allocator_.ledger.published_allocated(), &holding.composition, may_grow);
  return &holding;
}

// Under either lock. Another thread may close the pool while a request waits for its memory.
void Pool::check_open() const {
  if (state_->closed) throw Error("pool " + state_->name + " is closed; allocate from a new one");
}

// Makes a block that has addresses, is busy, and is not counted yet.
Holding& Pool::add_holding(const Request& request, Composition&& composition, bool may_grow) {
  if (request.bytes > detail::kMostBytes) allocator_.refuse(request, {}, state_.get());
  const std::size_t bytes = allocator_.profile.rounded(request.bytes);
  const std::size_t pages = allocator_.profile.in_pages(bytes);
  std::size_t addresses = 0;
  void* base = nullptr;
  const bool needs_addresses = allocator_.profile.grows && pages > 0;
  const auto reserve = [&](std::size_t wanted) {
    base = allocator_.source->reserve(addresses = wanted);
    return base != nullptr;
  };
  // Under `mapping`, which the fork handlers take: they do not know a source's own lock, so no
  // other thread may hold it at a fork.
  if (needs_addresses)
    allocator_.obtain(request, state_.get(), [&](Refusal& refusal) {
      refusal = {.reason = Reason::addresses, .reserve_bytes = pages};
      return (may_grow && reserve(kRoomToGrow * pages)) || reserve(pages);
    });
  const Guard mapping(allocator_.mapping);
  const Guard guard(allocator_.lock);
  try {
    check_open();
    Holding& holding = state_->holdings.try_emplace(state_->next_age).first->second;
    holding.is_busy = true;
    holding.age = state_->next_age++;
    holding.presence.store(Presence::away, std::memory_order_relaxed);
    holding.base = static_cast<std::byte*>(base);
    holding.addresses = addresses;
    holding.composition = std::move(composition);
    holding.cover(nullptr, bytes);
    holding.serve(request);
    return holding;
  } catch (...) {
    if (base) allocator_.source->unreserve(base, addresses);
    throw;
  }
}

void Pool::remove_holding(Holding& holding) noexcept {
  const Guard mapping(allocator_.mapping);
  std::size_t returned = 0;
  if (allocator_.drop(*state_, holding, returned)) {
    const Guard guard(allocator_.lock);
    state_->holdings.erase(holding.age);
  }
  allocator_.refill_cushion(*state_);
  allocator_.refill_preallocated();
}

// Gets pages for a busy block, calls `then` under both locks, and counts the block as held.
template <class Then>
void Pool::provide(Holding& holding, std::size_t had, std::size_t bytes, const Request& request,
                   Then&& then) {
  if (allocator_.is_special() &&
      detail::locked(allocator_.lock, [&] { return allocator_.fails_now(); }))
    allocator_.refuse(request, {.reason = Reason::injected}, state_.get());
  allocator_.obtain(request, state_.get(), [&](Refusal& refusal) {
    check_open();
    if (!allocator_.commit_pages(*state_, holding, had, bytes, refusal)) return false;
    const Guard guard(allocator_.lock);
    holding.pages = bytes;
    then();
    holding.cover(holding.base, holding.bytes());
    holding.presence.store(Presence::held, std::memory_order_relaxed);
    allocator_.count(*state_, holding);
    return true;
  });
}

bool Pool::grow(Block* block, const Request& request, Composition composition) {
  Holding& holding = holding_of(block);
  const bool is_here = end_rest(holding);
  if (request.bytes > detail::kMostBytes) allocator_.refuse(request, {}, state_.get());
  const std::size_t bytes = allocator_.profile.rounded(request.bytes);
  const std::size_t pages = allocator_.profile.in_pages(bytes);
  const std::size_t had = is_here ? holding.pages : 0;
  const bool is_fixed = allocator_.profile.grows || had > 0;
  if (pages < had || (pages > had && pages > holding.addresses && is_fixed)) return false;
  Before before{{holding.requested_bytes(), holding.category(), holding.tag(), holding.purpose},
                {},
                holding.data(),
                holding.bytes(),
                holding.pages,
                is_here};
  bool has_grown = false;
  detail::locked(allocator_.mapping, [&] { holding.is_busy = true; });
  try {
    provide(holding, had, pages, request, [&] {
      if (is_here) allocator_.uncount(*state_, holding);
      before.composition = std::exchange(holding.composition, std::move(composition));
      holding.cover(holding.base, bytes);
      holding.serve(request);
      has_grown = true;
    });
    allocator_.tell_passed(request);
    const Guard mapping(allocator_.mapping);
    check_open();
    holding.is_busy = false;
  } catch (...) {
    bool is_closed = false;
    {
      const Guard mapping(allocator_.mapping);
      is_closed = state_->closed;
      if (has_grown && !is_closed) shrink_back(holding, std::move(before));
      holding.is_busy = is_closed;
    }
    if (is_closed) remove_holding(holding);
    throw;
  }
  allocator_.note(CallLog::Kind::grow, this, block, request,
                  allocator_.ledger.published_allocated(), &holding.composition);
  return true;
}

// Under `mapping`. Pages that the device does not take back stay with the block.
void Pool::shrink_back(Holding& holding, Before&& before) noexcept {
  if (!before.is_here && !allocator_.take_away(*state_, holding, Presence::away)) return;
  {
    const Guard guard(allocator_.lock);
    if (before.is_here) allocator_.uncount(*state_, holding);
    holding.composition = std::move(before.composition);
    holding.cover(before.data, before.bytes);
    holding.serve(before.request);
    if (before.is_here)
      allocator_.count(*state_, holding);
    else
      holding.pages = before.pages;
    allocator_.watchers.sink_to(allocator_.ledger.allocated());
  }
  if (before.is_here) allocator_.shrink(*state_, holding, before.pages);
  allocator_.refill_cushion(*state_);
  allocator_.refill_preallocated();
}

void Pool::free(Block* block) noexcept {
  if (!block) return;
  allocator_.note(CallLog::Kind::free, this, block);
  remove_holding(holding_of(block));
}

void Pool::rest(Block* block) noexcept {
  allocator_.note(CallLog::Kind::rest, this, block);
  Holding& holding = holding_of(block);
  if (holding.presence.load(std::memory_order_relaxed) == Presence::held)
    holding.presence.store(Presence::resting, std::memory_order_release);
}

bool Pool::wake(Block* block, std::size_t needed_bytes) noexcept {
  if (!end_rest(holding_of(block))) return false;
  allocator_.note(CallLog::Kind::wake, this, block, needed_bytes);
  return true;
}

bool Pool::end_rest(Holding& holding) noexcept {
  auto presence = Presence::resting;
  if (holding.presence.compare_exchange_strong(presence, Presence::held,
                                               std::memory_order_acquire) ||
      presence == Presence::held) [[likely]]
    return true;
  const Guard mapping(allocator_.mapping);  // its memory may be in transit, or the device may have
                                            // refused to take it
  presence = Presence::resting;
  return holding.presence.compare_exchange_strong(presence, Presence::held,
                                                  std::memory_order_acquire);
}

bool Pool::has_memory(const Block* block) const noexcept {
  return static_cast<const Holding&>(*detail::node_of(block)).is_counted();
}

CloseReport Pool::suspend() noexcept {
  const Guard mapping(allocator_.mapping);
  allocator_.note(CallLog::Kind::suspend, this);
  CloseReport report;
  for (auto& [age, holding] : state_->holdings) {
    const Presence presence = holding.presence.load(std::memory_order_acquire);
    if (presence != Presence::held && presence != Presence::resting) continue;
    if (holding.is_busy ||
        !allocator_.take_away(*state_, holding,
                              presence == Presence::held ? Presence::suspended : Presence::away))
      continue;
    ++report.freed_blocks;
    report.freed_bytes += holding.bytes();
    report.returned_bytes += holding.pages;
  }
  Refusal ignored;
  const std::size_t cushion = state_->cushion.pages;
  if (allocator_.set_cushion(*state_, 0, ignored)) report.returned_bytes += cushion;
  const Guard guard(allocator_.lock);
  state_->suspended = true;
  return report;
}

void Pool::resume() {
  std::vector<Holding*> resumed;
  {
    const Guard mapping(allocator_.mapping);
    check_open();
    resumed.reserve(state_->holdings.size());
    for (auto& [age, holding] : state_->holdings) {
      if (holding.presence.load(std::memory_order_relaxed) != Presence::suspended) continue;
      if (!std::exchange(holding.is_busy, true)) resumed.push_back(&holding);
    }
  }
  std::size_t count = 0;
  try {
    for (; count < resumed.size(); ++count) {
      Holding& holding = *resumed[count];
      const Request request{holding.requested_bytes(), holding.category(), holding.tag(),
                            "what a session had before it was suspended"};
      provide(holding, 0, holding.pages, request, [] {});
    }
    const Guard mapping(allocator_.mapping);
    check_open();
    for (Holding* each : resumed) each->is_busy = false;
    detail::locked(allocator_.lock, [&] { state_->suspended = false; });
    allocator_.refill_cushion(*state_);
  } catch (...) {
    bool is_closed = false;
    {
      const Guard mapping(allocator_.mapping);
      is_closed = state_->closed;
      while (!is_closed && count > 0)
        allocator_.take_away(*state_, *resumed[--count], Presence::suspended);
      for (Holding* each : resumed) each->is_busy = is_closed;
    }
    if (is_closed)
      for (Holding* each : resumed) remove_holding(*each);
    throw;
  }
  allocator_.note(CallLog::Kind::resume, this);
  allocator_.tell_passed({.purpose = "a session that was suspended"});
}

void Pool::preallocate(std::size_t bytes) {
  if (!allocator_.profile.grows)
    throw Error("pool " + state_->name + ": this device cannot preallocate for a pool");
  detail::Cushion& cushion = state_->cushion;
  const Request request{.bytes = bytes, .purpose = "what a session preallocates"};
  const std::size_t target = allocator_.profile.in_pages(bytes);
  allocator_.obtain(request, state_.get(), [&](Refusal& refusal) {
    check_open();
    const std::size_t reserved = state_->ledger.published_reserved() - cushion.pages;
    const std::size_t wanted = target > reserved ? target - reserved : 0;
    refusal = {.reason = Reason::addresses, .reserve_bytes = wanted};
    const bool has_addresses = cushion.addresses >= target ||
                               allocator_.move_cushion(*state_, target, refusal) ||
                               cushion.addresses >= wanted;
    if (!has_addresses || !allocator_.set_cushion(*state_, wanted, refusal)) return false;
    const Guard guard(allocator_.lock);
    cushion.target = target;
    return true;
  });
  allocator_.note(CallLog::Kind::preallocate, this, nullptr, bytes);
}

CloseReport Pool::close() noexcept {
  const Guard mapping(allocator_.mapping);
  allocator_.note(CallLog::Kind::close, this);
  CloseReport report;
  std::shared_ptr<EventLog> log;  // null if another close() came first
  {
    const Guard guard(allocator_.lock);
    if (!std::exchange(state_->closed, true)) {
      log = allocator_.recorder;
      report.freed_blocks = state_->ledger.allocations();
      report.freed_bytes = state_->ledger.allocated();
    }
    state_->cushion.target = 0;
  }
  // Another thread may close the pool too while `mapping` is released for a large block. Each block
  // is dropped, and reported, by one of them.
  for (std::uint64_t age = 0;;) {
    const auto at = state_->holdings.lower_bound(age);
    if (at == state_->holdings.end()) break;
    age = at->first + 1;
    if (at->second.is_busy || !allocator_.drop(*state_, at->second, report.returned_bytes))
      continue;
    const Guard guard(allocator_.lock);
    state_->holdings.erase(at);
  }
  detail::Cushion& cushion = state_->cushion;
  const std::size_t ahead = cushion.pages;
  Refusal ignored;
  if (allocator_.set_cushion(*state_, 0, ignored) && cushion.addresses > 0) {
    allocator_.source->unreserve(cushion.base, cushion.addresses);
    cushion.addresses = 0;
  }
  report.returned_bytes += ahead - cushion.pages;
  allocator_.refill_preallocated();
  if (log) log->mark("close");
  return report;
}

Stats Pool::stats() const { return allocator_.stats(state_.get()); }

void Pool::set_limit(std::optional<std::size_t> reserved_bytes) noexcept {
  std::size_t reserved = 0, limit = 0;
  allocator_.note(CallLog::Kind::set_limit, this, nullptr, reserved_bytes.value_or(kNoLimit));
  {
    const Guard guard(allocator_.lock);
    limit = state_->limit = reserved_bytes.value_or(kNoLimit);
    reserved = state_->ledger.reserved();
  }
  if (reserved <= limit) return;
  const Guard mapping(allocator_.mapping);
  const std::size_t excess = allocator_.profile.in_pages(reserved - limit);
  const std::size_t ahead = state_->cushion.pages;
  Refusal ignored;
  if (ahead > 0) allocator_.set_cushion(*state_, ahead - std::min(ahead, excess), ignored);
  reserved = state_->ledger.published_reserved();
  if (reserved > limit) allocator_.take_resting(reserved - limit, state_.get());
}

std::size_t Pool::allocated_bytes() const noexcept { return state_->ledger.published_allocated(); }

std::size_t Pool::reserved_bytes() const noexcept { return state_->ledger.published_reserved(); }

Ledger& ledger_of(const Pool& pool) noexcept { return pool.state_->ledger; }

}  // namespace ebb::memory
