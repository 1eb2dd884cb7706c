#include "ebb/allocator/caching_allocator.h"

#include <cassert>

#include "ebb/allocator/detail/allocator_state.h"

namespace ebb::memory {

using detail::AllocatorState;
using detail::BlockNode;
using detail::Refusal;
using detail::Relief;
using Reason = OutOfMemory::Reason;

CachingAllocator::CachingAllocator(std::unique_ptr<MemorySource> source, Profile profile)
    : state_(std::make_unique<AllocatorState>(std::move(source), std::move(profile))),
      watched_(&state_->watched) {}

CachingAllocator::~CachingAllocator() {
  assert(state_->pools.empty() && "a pool outlives its allocator");
  assert(state_->ledger.allocations() == 0 && "a block outlives its allocator");
  detail::locked(state_->mapping, [&] { state_->preallocated = 0; });
  release_cached();
}

Block* CachingAllocator::allocate(const Request& request) {
  AllocatorState& state = *state_;
  const std::size_t bytes = state.profile.rounded(request.bytes);
  if (bytes - 1 < detail::kMostBytes) [[likely]] {  // neither zero nor close to wrapping
    const Guard guard(state.lock);
    if (!state.is_special()) [[likely]] {
      if (BlockNode* node = state.heap.take(bytes)) [[likely]] {
        node->serve(request);
        state.ledger.add(request.bytes, bytes, request.category);
        state.record(EventKind::allocate, *node);
        return node;
      }
    }
  }
  return allocate_slowly(request);
}

// Serves requests that miss the cache, and every unusual case: zero bytes, too many bytes, a watch,
// an injected failure.
Block* CachingAllocator::allocate_slowly(const Request& request) {
  AllocatorState& state = *state_;
  if (request.bytes > detail::kMostBytes) state.refuse(request, {}, nullptr);
  Relief relief(state, nullptr, request);
  const std::size_t bytes = state.profile.rounded(request.bytes);
  BlockNode* node = nullptr;
  bool is_new = true;
  while (!node) {
    Refusal refusal;
    {
      const Guard guard(state.lock);
      if (is_new && state.fails_now())
        refusal.reason = Reason::injected;
      else if (request.bytes == 0)
        node = state.heap.take_empty();
      else
        node = relief.searches_all() ? state.heap.take_any(bytes) : state.heap.take(bytes);
      if (node) state.serve(node, request);
      is_new = false;
    }
    if (!node && refusal.reason != Reason::injected) {
      const Guard mapping(state.mapping);
      node = state.grow_cache(request, refusal);
    }
    if (!node && !relief.find(refusal)) state.refuse(request, refusal, nullptr);
  }
  state.note(CallLog::Kind::allocate, nullptr, node, request, state.ledger.published_allocated());
  if (state.is_special()) {
    try {
      state.tell_passed(request);
    } catch (...) {
      free(node);
      throw;
    }
  }
  return node;
}

void CachingAllocator::free(Block* block, User last_user) noexcept {
  if (!block) return;
  AllocatorState& state = *state_;
  const Guard guard(state.lock);
  state.ledger.remove(block->requested_bytes(), block->allocated_bytes(), block->category());
  state.record(EventKind::free, *block);
  if (state.is_special()) [[unlikely]] {
    state.note(CallLog::Kind::free, nullptr, block);
    state.watchers.sink_to(state.ledger.allocated());
  }
  detail::node_of(block)->set_last_user(last_user);
  state.heap.give(detail::node_of(block));
}

void CachingAllocator::recategorise(Block* block, Category category) noexcept {
  const Guard guard(state_->lock);
  state_->ledger.move(block->allocated_bytes(), block->category(), category);
  if (state_->recorder)
    state_->recorder->recategorise(block->data(), block->allocated_bytes(), block->category(),
                                   category, block->tag());
  detail::node_of(block)->set_category(category);
}

ReleaseReport CachingAllocator::release_cached() noexcept {
  AllocatorState& state = *state_;
  const Guard mapping(state.mapping);
  state.note(CallLog::Kind::release_cached);
  const std::size_t of_pools = state.take_refused(kNoLimit, nullptr);
  const std::size_t reserved = detail::locked(state.lock, [&] { return state.cache_reserved(); });
  const std::size_t kept = state.preallocated;
  ReleaseReport report;
  if (reserved > kept) report = state.trim(kept > 0 ? reserved - kept : kNoLimit);
  report.returned_bytes += of_pools;
  const Guard guard(state.lock);
  const detail::Heap::FreeBytes& free = state.heap.free_bytes();
  report.pinned_bytes = free.all - free.in_pages;
  // Bytes beyond the amount to be kept. trim() did not try to return more, so no more can have been
  // refused.
  const std::size_t left = state.cache_reserved() - std::min(state.cache_reserved(), kept);
  report.refused_bytes = report.refused_bytes > 0 ? std::min(free.in_pages, left) : 0;
  report.preallocated_bytes = kept > 0 ? free.in_pages - report.refused_bytes : 0;
  return report;
}

void CachingAllocator::set_limit(std::optional<std::size_t> reserved_bytes) noexcept {
  AllocatorState& state = *state_;
  const Guard mapping(state.mapping);
  state.note(CallLog::Kind::set_limit, nullptr, nullptr, reserved_bytes.value_or(kNoLimit));
  const auto excess = [&] {
    const std::size_t reserved = state.ledger.published_reserved();
    return reserved > state.limit ? reserved - state.limit : 0;
  };
  detail::locked(state.lock, [&] { state.limit = reserved_bytes.value_or(kNoLimit); });
  if (excess() > 0) {
    state.trim(excess());
    const Guard guard(state.lock);
    state.preallocated = std::min(state.preallocated, state.cache_reserved());
  }
  if (excess() > 0) state.take_resting(excess(), nullptr);
}

void CachingAllocator::preallocate(std::size_t bytes) {
  AllocatorState& state = *state_;
  if (bytes > 0 && !state.profile.grows)
    throw Error("profile " + state.profile.name + ": this device has no range to preallocate");
  const Request request{.bytes = bytes, .purpose = "what the device preallocates"};
  state.obtain(request, nullptr,
               [&](Refusal& refusal) { return state.preallocate(bytes, refusal); });
  state.note(CallLog::Kind::preallocate, nullptr, nullptr, bytes);
}

std::size_t CachingAllocator::cache_bytes_within(std::size_t limit) const noexcept {
  const Guard guard(state_->lock);
  return state_->profile.whole_pages(limit - std::min(limit, state_->reserved_by_pools));
}

Watch CachingAllocator::watch(std::optional<std::size_t> threshold, WatchFunction call) {
  if (!call) throw Error("[watch] the function to be called is empty");
  auto watcher = std::make_shared<detail::Watcher>();
  watcher->call = std::move(call);
  watcher->threshold = threshold;
  const Guard guard(state_->lock);
  state_->watchers.add(watcher);
  state_->set_special();
  return Watch(std::move(watcher));
}

Stats CachingAllocator::stats() const { return state_->stats(nullptr); }

void CachingAllocator::reset_peaks() noexcept {
  const Guard guard(state_->lock);
  state_->ledger.reset_peaks();
}

std::size_t CachingAllocator::allocated_bytes() const noexcept {
  return state_->ledger.published_allocated();
}

std::size_t CachingAllocator::reserved_bytes() const noexcept {
  return state_->ledger.published_reserved();
}

std::size_t CachingAllocator::peak_bytes() const noexcept {
  const Guard guard(state_->lock);
  return state_->ledger.stats().allocated.peak;
}

std::size_t CachingAllocator::limit_bytes() const noexcept {
  const Guard guard(state_->lock);
  return state_->limit;
}

std::size_t CachingAllocator::room_bytes() const noexcept {
  const std::size_t capacity = state_->source->capacity_bytes();
  const Guard guard(state_->lock);
  return state_->room_within(std::min(state_->limit, capacity));
}

std::size_t CachingAllocator::capacity_bytes() const noexcept {
  return state_->source->capacity_bytes();
}

std::vector<Holder> CachingAllocator::holders(std::size_t most) const {
  return state_->holders(most);
}

Fragmentation CachingAllocator::fragmentation() const { return state_->fragmentation(); }

// Takes `mapping`, so that no memory is in transit: it is charged before it is mapped, and the log
// would count it twice.
bool CachingAllocator::set_recorder(std::shared_ptr<EventLog> log) {
  const Guard mapping(state_->mapping);
  const Guard guard(state_->lock);
  if (log && state_->recorder) return false;
  if (log) {
    const Stats stats = state_->ledger.stats();
    Held held{.reserved = stats.reserved.current};
    for (std::size_t i = 0; i < kCategoryCount; ++i)
      held.allocated[i] = stats.by_category[i].current;
    log->begin(held, state_->shared_lock);
  }
  std::swap(state_->recorder, log);
  state_->set_special();
  return true;
}

std::shared_ptr<EventLog> CachingAllocator::recorder() const noexcept {
  const Guard guard(state_->lock);
  return state_->recorder;
}

void CachingAllocator::set_call_log(std::shared_ptr<CallLog> log) {
  const Guard guard(state_->lock);
  std::swap(state_->call_log, log);
  state_->set_special();
}

std::unique_ptr<Pool> CachingAllocator::make_pool(std::string name,
                                                  std::optional<std::size_t> limit) {
  std::unique_ptr<Pool> pool(new Pool(*state_, std::move(name), limit));
  state_->note(CallLog::Kind::make_pool, pool.get(), nullptr, limit.value_or(kNoLimit));
  return pool;
}

const Profile& CachingAllocator::profile() const noexcept { return state_->profile; }

void CachingAllocator::fail_allocation_after(std::size_t successes) noexcept {
  const Guard guard(state_->lock);
  state_->fail_after = successes;
  state_->set_special();
}

Ledger& ledger_of(const CachingAllocator& allocator) noexcept { return allocator.state_->ledger; }

}  // namespace ebb::memory
