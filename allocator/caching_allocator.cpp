#include "ebb/allocator/caching_allocator.h"

#include <cassert>

#include "ebb/allocator/detail/shared.h"

namespace ebb::memory {

using detail::BlockNode;
using detail::Refusal;
using detail::Relief;
using detail::Shared;
using Reason = OutOfMemory::Reason;

CachingAllocator::CachingAllocator(std::unique_ptr<MemorySource> source, Profile profile)
    : shared_(std::make_unique<Shared>(std::move(source), std::move(profile))) {}

CachingAllocator::~CachingAllocator() {
  assert(shared_->pools.empty() && "a pool outlives its allocator");
  assert(shared_->ledger.allocations() == 0 && "a block outlives its allocator");
  {
    const Guard mapping(shared_->mapping);
    shared_->preallocated = 0;
  }
  release_cached();
}

Block* CachingAllocator::allocate(const Request& request) {
  Shared& shared = *shared_;
  const std::size_t bytes = shared.profile.rounded(request.bytes);
  if (bytes - 1 < detail::kMostBytes) [[likely]] {  // neither zero nor close to wrapping
    const Guard guard(shared.lock);
    if (!shared.is_special()) [[likely]] {
      if (BlockNode* node = shared.heap.take(bytes)) [[likely]] {
        node->serve(request);
        shared.ledger.add(request.bytes, bytes, request.category);
        return node;
      }
    }
  }
  return allocate_slowly(request);
}

// What finds nothing in the cache, and all else that is not usual.
Block* CachingAllocator::allocate_slowly(const Request& request) {
  Shared& shared = *shared_;
  Relief relief(shared, nullptr, request);
  const std::size_t bytes = shared.profile.rounded(request.bytes);
  BlockNode* node = nullptr;
  bool is_new = true;
  while (!node) {
    Refusal refusal;
    {
      const Guard guard(shared.lock);
      if (is_new && shared.fails_now())
        refusal.reason = Reason::injected;
      else if (request.bytes == 0)
        node = shared.heap.take_empty();
      else if (request.bytes <= detail::kMostBytes)
        node = relief.searches_all() ? shared.heap.take_any(bytes) : shared.heap.take(bytes);
      if (node) shared.serve(node, request);
      is_new = false;
    }
    if (node) break;
    if (refusal.reason != Reason::injected && request.bytes <= detail::kMostBytes) {
      const Guard mapping(shared.mapping);
      node = shared.grow_cache(request, refusal);
    }
    if (node) break;
    if (refusal.reason == Reason::injected || request.bytes > detail::kMostBytes)
      shared.refuse(request, refusal, nullptr);
    if (!relief.find(refusal)) shared.refuse(request, refusal, nullptr);
  }
  if (shared.is_special()) {
    try {
      shared.tell_passed(request);
    } catch (...) {
      free(node);
      throw;
    }
  }
  return node;
}

void CachingAllocator::free(Block* block, User last_user) noexcept {
  if (!block) return;
  Shared& shared = *shared_;
  const Guard guard(shared.lock);
  shared.ledger.remove(block->requested_bytes(), block->allocated_bytes(), block->category());
  if (shared.is_special()) [[unlikely]] {
    shared.record(EventKind::free, *block);
    shared.watchers.sink_to(shared.ledger.allocated());
  }
  detail::node_of(block)->set_last_user(last_user);
  shared.heap.give(detail::node_of(block));
}

void CachingAllocator::recategorise(Block* block, Category category) noexcept {
  const Guard guard(shared_->lock);
  shared_->ledger.move(block->allocated_bytes(), block->category(), category);
  if (shared_->recorder)
    shared_->recorder->recategorise(block->data(), block->allocated_bytes(), block->category(),
                                    category, block->tag());
  detail::node_of(block)->set_category(category);
}

ReleaseReport CachingAllocator::release_cached() noexcept {
  Shared& shared = *shared_;
  const Guard mapping(shared.mapping);
  const std::size_t of_pools = shared.take_refused(kNoLimit, nullptr);
  std::size_t reserved = 0;
  {
    const Guard guard(shared.lock);
    reserved = shared.cache_reserved();
  }
  const std::size_t kept = shared.preallocated;
  ReleaseReport report;
  if (reserved > kept) report = shared.trim(kept > 0 ? reserved - kept : kNoLimit);
  report.returned_bytes += of_pools;
  const Guard guard(shared.lock);
  const detail::Heap::FreeBytes& free = shared.heap.free_bytes();
  report.pinned_bytes = free.all - free.in_pages;
  // All that is left beyond what is to stay; more has not been tried.
  const std::size_t left = shared.cache_reserved() - std::min(shared.cache_reserved(), kept);
  report.refused_bytes = report.refused_bytes > 0 ? std::min(free.in_pages, left) : 0;
  report.preallocated_bytes = kept > 0 ? free.in_pages - report.refused_bytes : 0;
  return report;
}

void CachingAllocator::set_limit(std::optional<std::size_t> reserved_bytes) noexcept {
  Shared& shared = *shared_;
  const Guard mapping(shared.mapping);
  const auto excess = [&] {
    const std::size_t reserved = shared.ledger.published_reserved();
    return reserved > shared.limit ? reserved - shared.limit : 0;
  };
  {
    const Guard guard(shared.lock);
    shared.limit = reserved_bytes.value_or(kNoLimit);
  }
  if (excess() > 0) {
    shared.trim(excess());
    const Guard guard(shared.lock);
    shared.preallocated = std::min(shared.preallocated, shared.cache_reserved());
  }
  if (excess() > 0) shared.take_resting(excess(), nullptr);
}

void CachingAllocator::preallocate(std::size_t bytes) {
  Shared& shared = *shared_;
  if (bytes > 0 && !shared.profile.grows)
    throw Error("profile " + shared.profile.name + ": this device has no range to preallocate");
  const Request request{.bytes = bytes, .purpose = "what the device preallocates"};
  if (bytes > detail::kMostBytes) shared.refuse(request, {}, nullptr);
  Relief relief(shared, nullptr, request);
  for (;;) {
    Refusal refusal;
    {
      const Guard mapping(shared.mapping);
      if (shared.preallocate(bytes, refusal)) return;
    }
    if (!relief.find(refusal)) shared.refuse(request, refusal, nullptr);
  }
}

std::size_t CachingAllocator::cache_bytes_within(std::size_t limit) const noexcept {
  const Guard guard(shared_->lock);
  const std::size_t pools = shared_->ledger.reserved() - shared_->cache_reserved();
  const std::size_t most = limit > pools ? limit - pools : 0;
  return shared_->profile.whole_pages(most);
}

Watch CachingAllocator::watch(std::optional<std::size_t> threshold, WatchFunction call) {
  if (!call) throw Error("[watch] the function to be called is empty");
  auto watcher = std::make_shared<detail::Watcher>();
  watcher->call = std::move(call);
  watcher->threshold = threshold;
  const Guard guard(shared_->lock);
  shared_->watchers.add(watcher);
  shared_->set_special();
  return Watch(std::move(watcher));
}

bool CachingAllocator::is_watched() const noexcept { return shared_->is_special(); }

Stats CachingAllocator::stats() const {
  Stats stats;
  std::size_t limit = kNoLimit;
  {
    const Guard guard(shared_->lock);
    stats = shared_->ledger.stats();
    stats.segments = shared_->heap.segments_with_memory() + shared_->segments_of_pools;
    limit = shared_->limit;
  }
  return shared_->with_device(stats, limit);
}

void CachingAllocator::reset_peaks() noexcept {
  const Guard guard(shared_->lock);
  shared_->ledger.reset_peaks();
}

std::size_t CachingAllocator::allocated_bytes() const noexcept {
  return shared_->ledger.published_allocated();
}

std::size_t CachingAllocator::reserved_bytes() const noexcept {
  return shared_->ledger.published_reserved();
}

std::size_t CachingAllocator::peak_bytes() const noexcept {
  const Guard guard(shared_->lock);
  return shared_->ledger.stats().allocated.peak;
}

std::size_t CachingAllocator::limit_bytes() const noexcept {
  const Guard guard(shared_->lock);
  return shared_->limit;
}

std::size_t CachingAllocator::room_bytes() const noexcept {
  const std::size_t capacity = shared_->source->capacity_bytes();
  const Guard guard(shared_->lock);
  return shared_->room_within(std::min(shared_->limit, capacity));
}

std::size_t CachingAllocator::capacity_bytes() const noexcept {
  return shared_->source->capacity_bytes();
}

std::vector<Holder> CachingAllocator::holders(std::size_t most) const {
  return shared_->holders(most);
}

Fragmentation CachingAllocator::fragmentation() const { return shared_->fragmentation(); }

// Not while memory is on its way: it is on the books before it is mapped, and the log would hear of
// it twice.
bool CachingAllocator::set_recorder(std::shared_ptr<EventLog> log) {
  const Guard mapping(shared_->mapping);
  const Guard guard(shared_->lock);
  if (log && shared_->recorder) return false;
  if (log) {
    const Stats stats = shared_->ledger.stats();
    Held held{.reserved = stats.reserved.current};
    for (std::size_t i = 0; i < kCategoryCount; ++i)
      held.allocated[i] = stats.by_category[i].current;
    log->begin(held);
  }
  std::swap(shared_->recorder, log);
  shared_->set_special();
  return true;
}

std::shared_ptr<EventLog> CachingAllocator::recorder() const {
  const Guard guard(shared_->lock);
  return shared_->recorder;
}

std::unique_ptr<Pool> CachingAllocator::make_pool(std::string name,
                                                  std::optional<std::size_t> limit) {
  return std::unique_ptr<Pool>(new Pool(*shared_, std::move(name), limit));
}

const Profile& CachingAllocator::profile() const noexcept { return shared_->profile; }

void CachingAllocator::fail_allocation_after(std::size_t successes) noexcept {
  const Guard guard(shared_->lock);
  shared_->fail_after = successes;
  shared_->set_special();
}

Ledger& ledger_of(const CachingAllocator& allocator) noexcept { return allocator.shared_->ledger; }

}  // namespace ebb::memory
