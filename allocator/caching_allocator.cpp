#include "ebb/allocator/caching_allocator.h"

#include <cassert>

#include "ebb/allocator/detail/shared.h"

namespace ebb::memory {

using detail::BlockNode;
using detail::Shared;
using Guard = BiasedLock::Guard;

CachingAllocator::CachingAllocator(std::unique_ptr<MemorySource> source, Profile profile)
    : shared_(std::make_unique<Shared>(std::move(source), std::move(profile))) {}

CachingAllocator::~CachingAllocator() {
  assert(shared_->pools.empty() && "a pool outlives its allocator");
  assert(shared_->ledger.allocations() == 0 && "a block outlives its allocator");
  release_cached();
}

Block* CachingAllocator::allocate(const Request& request) {
  Shared& shared = *shared_;
  const std::size_t bytes = shared.profile.rounded(request.bytes);
  if (bytes - 1 < detail::kMostBytes) [[likely]] {  // neither zero nor close to wrapping
    const Guard guard(shared.lock);
    if (!shared.fail_after) [[likely]] {
      if (BlockNode* node = shared.heap.take(bytes)) [[likely]] {
        node->serve(request);
        shared.ledger.add(request.bytes, bytes, request.category);
        shared.record(EventKind::allocate, *node);
        return node;
      }
    }
  }
  return allocate_slowly(request);
}

Block* CachingAllocator::allocate_slowly(const Request& request) try {
  Shared& shared = *shared_;
  const Guard guard(shared.lock);
  auto why = OutOfMemory::Reason::device_refused;
  std::size_t segment_bytes = 0;
  const auto find = [&]() -> BlockNode* {
    if (shared.fails_now()) {
      why = OutOfMemory::Reason::injected;
      return nullptr;
    }
    if (request.bytes == 0) return shared.heap.take_empty();
    if (request.bytes > detail::kMostBytes) return nullptr;
    const std::size_t bytes = shared.profile.rounded(request.bytes);
    if (BlockNode* node = shared.heap.take(bytes)) return node;
    for (const bool exact : {false, true}) {
      segment_bytes =
          exact ? shared.profile.exact_segment_bytes(bytes) : shared.profile.segment_bytes(bytes);
      void* base = shared.map(segment_bytes, why);
      if (!base) continue;
      try {
        shared.heap.adopt(base, segment_bytes, bytes);
      } catch (...) {
        shared.unmap(base, segment_bytes);
        throw;
      }
      return shared.heap.take(bytes);
    }
    return nullptr;
  };
  BlockNode* node = find();
  if (!node) throw OutOfMemory(shared.explain(request, why, segment_bytes, nullptr));
  node->serve(request);
  shared.ledger.add(request.bytes, node->bytes(), request.category);
  shared.record(EventKind::allocate, *node);
  return node;
} catch (const OutOfMemory& refused) {  // the lock is free again
  shared_->tell(refused);
  throw;
}

void CachingAllocator::free(Block* block, User last_user) noexcept {
  if (!block) return;
  const Guard guard(shared_->lock);
  shared_->record(EventKind::free, *block);
  shared_->ledger.remove(block->requested_bytes(), block->allocated_bytes(), block->category());
  detail::node_of(block)->set_last_user(last_user);
  shared_->heap.give(detail::node_of(block));
}

void CachingAllocator::recategorise(Block* block, Category category) noexcept {
  const Guard guard(shared_->lock);
  shared_->ledger.move(block->allocated_bytes(), block->category(), category);
  if (shared_->recorder) {
    shared_->recorder->recategorise(block->data(), block->allocated_bytes(), block->category(),
                                    category, block->tag());
  }
  detail::node_of(block)->set_category(category);
}

ReleaseReport CachingAllocator::release_cached() noexcept {
  const Guard guard(shared_->lock);
  ReleaseReport report = shared_->trim();
  for (const auto& [age, segment] : shared_->heap.segments()) {
    std::size_t free_bytes = 0;
    for (const BlockNode* node = segment.first; node; node = node->after) {
      if (node->is_free) free_bytes += node->bytes();
    }
    report.kept_bytes += free_bytes;
    if (free_bytes > 0) ++report.kept_segments;
  }
  return report;
}

void CachingAllocator::set_limit(std::optional<std::size_t> reserved_bytes) noexcept {
  const Guard guard(shared_->lock);
  shared_->limit = reserved_bytes.value_or(kNoLimit);
  const std::size_t reserved = shared_->ledger.reserved();
  if (reserved > shared_->limit) shared_->trim(reserved - shared_->limit);
}

Stats CachingAllocator::stats() const {
  Stats stats;
  std::size_t limit = kNoLimit;
  {
    const Guard guard(shared_->lock);
    stats = shared_->ledger.stats();
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

std::vector<Holder> CachingAllocator::holders(std::size_t most) const {
  const Guard guard(shared_->lock);
  return shared_->holders(most);
}

bool CachingAllocator::set_recorder(std::shared_ptr<EventLog> log) {
  const Guard guard(shared_->lock);
  if (log && shared_->recorder) return false;
  if (log) {
    const Stats stats = shared_->ledger.stats();
    Held held{.reserved = stats.reserved.current};
    for (std::size_t i = 0; i < kCategoryCount; ++i) {
      held.allocated[i] = stats.by_category[i].current;
    }
    log->begin(held);
  }
  std::swap(shared_->recorder, log);
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
}

Ledger& ledger_of(const CachingAllocator& allocator) noexcept { return allocator.shared_->ledger; }

}  // namespace ebb::memory
