#include "ebb/allocator/pool.h"

#include "ebb/allocator/detail/shared.h"

namespace ebb::memory {

using detail::BlockNode;
using detail::Holding;
using detail::PoolState;
using Reason = OutOfMemory::Reason;
using Guard = BiasedLock::Guard;

Pool::Pool(detail::Shared& shared, std::string name, std::optional<std::size_t> limit)
    : shared_(shared), state_(std::make_unique<PoolState>(shared.lock, std::move(name))) {
  state_->limit = limit.value_or(kNoLimit);
  const Guard guard(shared_.lock);
  shared_.pools.push_back(state_.get());
}

Pool::~Pool() {
  close();
  const Guard guard(shared_.lock);
  std::erase(shared_.pools, state_.get());
}

Block* Pool::allocate(const Request& request) {
  ByCategory split{};
  split[static_cast<std::size_t>(request.category)] = shared_.profile.rounded(request.bytes);
  return allocate(request, split);
}

Block* Pool::allocate(const Request& request, const ByCategory& split) try {
  PoolState& pool = *state_;
  const Guard guard(shared_.lock);
  if (pool.closed) throw Error("pool " + pool.name + " is closed; allocate from a new one");
  const auto refuse = [&](Reason why, std::size_t segment_bytes) {
    throw OutOfMemory(shared_.explain(request, why, segment_bytes, &pool));
  };
  if (shared_.fails_now()) refuse(Reason::injected, 0);
  if (request.bytes > detail::kMostBytes) refuse(Reason::device_refused, 0);

  const std::size_t bytes = shared_.profile.rounded(request.bytes);
  const std::size_t segment_bytes = shared_.profile.exact_segment_bytes(bytes);
  const std::size_t reserved = pool.ledger.reserved();
  if (segment_bytes > 0 && (reserved > pool.limit || segment_bytes > pool.limit - reserved)) {
    refuse(Reason::pool_limit, segment_bytes);
  }

  const auto entry = pool.holdings.try_emplace(pool.next_age).first;  // what can throw comes first
  void* base = nullptr;
  if (segment_bytes > 0) {
    auto why = Reason::device_refused;
    base = shared_.map(segment_bytes, why);
    if (!base) {
      pool.holdings.erase(entry);
      refuse(why, segment_bytes);
    }
    pool.ledger.reserve(segment_bytes);
  }
  auto& [segment, node, holding_split] = entry->second;
  holding_split = split;
  segment = {.base = static_cast<std::byte*>(base),
             .bytes = segment_bytes,
             .age = pool.next_age++,
             .first = &node};
  node.segment = &segment;
  node.cover(segment.base, bytes);
  node.serve(request);
  pool.ledger.add(request.bytes, bytes, split);
  shared_.ledger.add(request.bytes, bytes, split);
  shared_.record(EventKind::allocate, node, split);
  return &node;
} catch (const OutOfMemory& refused) {  // the lock is free again
  shared_.tell(refused);
  throw;
}

bool Pool::grow(Block* block, const Request& request, const ByCategory& split) noexcept {
  PoolState& pool = *state_;
  const Guard guard(shared_.lock);
  if (pool.closed || request.bytes > detail::kMostBytes) return false;
  auto& [segment, node, holding_split] =
      pool.holdings.find(detail::node_of(block)->segment->age)->second;
  const std::size_t bytes = shared_.profile.rounded(request.bytes);
  const std::size_t segment_bytes = shared_.profile.exact_segment_bytes(bytes);
  if (segment.bytes == 0 || segment_bytes < segment.bytes || shared_.fail_after) return false;
  const std::size_t more = segment_bytes - segment.bytes, reserved = pool.ledger.reserved();
  if (more > 0) {
    if (reserved > pool.limit || more > pool.limit - reserved) return false;
    if (!shared_.grow(segment.base, segment.bytes, segment_bytes)) return false;
    pool.ledger.reserve(more);
    segment.bytes = segment_bytes;
  }
  shared_.record(EventKind::free, node, holding_split);
  for (Ledger* ledger : {&pool.ledger, &shared_.ledger}) {
    ledger->remove(node.requested_bytes(), node.bytes(), holding_split);
    ledger->add(request.bytes, bytes, split);
  }
  holding_split = split;
  node.cover(segment.base, bytes);
  node.serve(request);
  shared_.record(EventKind::allocate, node, split);
  return true;
}

void Pool::free(Block* block) noexcept {
  if (!block) return;
  const Guard guard(shared_.lock);
  give_back(detail::node_of(block)->segment->age);
}

// Under the lock.
void Pool::give_back(std::uint64_t age) noexcept {
  const auto entry = state_->holdings.find(age);
  const auto& [segment, node, split] = entry->second;
  shared_.record(EventKind::free, node, split);
  for (Ledger* ledger : {&state_->ledger, &shared_.ledger}) {
    ledger->remove(node.requested_bytes(), node.bytes(), split);
  }
  if (segment.bytes > 0) {
    shared_.unmap(segment.base, segment.bytes);
    state_->ledger.give_back(segment.bytes);
  }
  state_->holdings.erase(entry);
}

void Pool::recategorise(Block* block, Category category) noexcept {
  const Guard guard(shared_.lock);
  ByCategory& split = state_->holdings.find(detail::node_of(block)->segment->age)->second.split;
  for (std::size_t i = 0; i < kCategoryCount; ++i) {
    if (shared_.recorder && split[i] > 0) {
      shared_.recorder->recategorise(block->data(), split[i], static_cast<Category>(i), category,
                                     block->tag());
    }
    for (Ledger* ledger : {&state_->ledger, &shared_.ledger}) {
      ledger->move(split[i], static_cast<Category>(i), category);
    }
  }
  split = {};
  split[static_cast<std::size_t>(category)] = block->allocated_bytes();
  detail::node_of(block)->set_category(category);
}

CloseReport Pool::close() noexcept {
  const Guard guard(shared_.lock);
  state_->closed = true;
  const CloseReport report{.freed_blocks = state_->ledger.allocations(),
                           .freed_bytes = state_->ledger.allocated(),
                           .returned_bytes = state_->ledger.reserved()};
  while (!state_->holdings.empty()) give_back(state_->holdings.begin()->first);
  return report;
}

bool Pool::closed() const noexcept {
  const Guard guard(shared_.lock);
  return state_->closed;
}

const std::string& Pool::name() const noexcept { return state_->name; }

Stats Pool::stats() const {
  Stats stats;
  std::size_t limit = kNoLimit;
  {
    const Guard guard(shared_.lock);
    stats = state_->ledger.stats();
    limit = state_->limit;
  }
  return shared_.with_device(stats, limit);
}

void Pool::reset_peaks() noexcept {
  const Guard guard(shared_.lock);
  state_->ledger.reset_peaks();
}

void Pool::set_limit(std::optional<std::size_t> reserved_bytes) noexcept {
  const Guard guard(shared_.lock);
  state_->limit = reserved_bytes.value_or(kNoLimit);
}

std::size_t Pool::allocated_bytes() const noexcept { return state_->ledger.published_allocated(); }

std::size_t Pool::reserved_bytes() const noexcept { return state_->ledger.published_reserved(); }

Ledger& ledger_of(const Pool& pool) noexcept { return pool.state_->ledger; }

}  // namespace ebb::memory
