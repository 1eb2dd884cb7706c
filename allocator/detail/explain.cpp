// Reports of an allocator: holders, fragmentation, errors.
#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <string_view>
#include <tuple>

#include "ebb/allocator/detail/allocator_state.h"
#include "ebb/allocator/out_of_memory_observer.h"

namespace ebb::memory::detail {

namespace {

// Adds up blocks and bytes by tag.
class ByTag {
 public:
  void add(const Holder& holder) {
    const Tag& tag = holder.tag;
    Holder& sum = by_tag_[{tag.operator_name, tag.file, tag.line, tag.layer}];
    sum.tag = tag;
    sum.bytes += holder.bytes;
    sum.blocks += holder.blocks;
  }
  std::vector<Holder> largest(std::size_t most) const {
    std::vector<Holder> holders;
    holders.reserve(by_tag_.size());
    for (const auto& [tag, holder] : by_tag_) holders.push_back(holder);
    std::stable_sort(holders.begin(), holders.end(),
                     [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
    if (holders.size() > most) holders.resize(most);
    return holders;
  }

 private:
  std::map<std::tuple<std::string_view, std::string_view, unsigned, std::string_view>, Holder>
      by_tag_;
};

// Adds a block, split into its requesters as far as they are known.
void add_holding(const Holding& holding, std::vector<Holder>& to) {
  std::size_t rest = holding.bytes();
  for (const Holder& holder : holding.composition.holders) {
    if (holder.bytes > rest) continue;
    to.push_back(holder);
    rest -= holder.bytes;
  }
  if (rest > 0 || holding.bytes() == 0) to.push_back({holding.asked_by(), rest, 1});
}

// The largest request below `bytes` that finds addresses now: a pool's new ones, the cache's in its
// ranges too.
std::size_t addresses_below(AllocatorState& allocator, std::size_t bytes, const PoolState* pool) {
  const Guard mapping(allocator.mapping);
  const auto found = [&](std::size_t wanted) {
    if (void* base = allocator.source->reserve(wanted)) {
      allocator.source->unreserve(base, wanted);
      return true;
    }
    const Guard guard(allocator.lock);
    return !pool && allocator.heap.find_row(wanted).hole;
  };
  std::size_t most = 0;
  for (std::size_t step = std::bit_floor(bytes); step >= allocator.profile.page_bytes; step /= 2)
    if (most + step < bytes && found(most + step)) most += step;
  return most;
}

}  // namespace

// Releases the lock regularly, so that nobody waits for the whole walk. While other threads
// allocate, the sum is not of one moment.
std::vector<Holder> AllocatorState::holders(std::size_t most) {
  constexpr std::size_t kAtOnce = 256;
  ByTag by_tag;
  std::vector<Holder> seen;
  {
    struct Walking {
      explicit Walking(AllocatorState& allocator) : lock(allocator.lock) {
        const Guard guard(lock);
        walk.emplace(allocator.heap);
      }
      ~Walking() {
        const Guard guard(lock);
        walk.reset();
      }
      Mutex& lock;
      std::optional<Heap::Walk> walk;
    } walking(*this);
    seen.reserve(kAtOnce);
    for (bool done = false; !done;) {
      seen.clear();
      {
        const Guard guard(lock);
        for (std::size_t left = kAtOnce; left > 0;) {
          const BlockNode* node = walking.walk->next(left);
          if (!node) break;
          seen.push_back({node->tag(), node->bytes(), 1});
        }
        done = walking.walk->is_done();
      }
      for (const Holder& each : seen) by_tag.add(each);
    }
  }
  seen.clear();
  {
    const Guard mapping_guard(mapping);  // pools change under both
    const Guard guard(lock);
    for (const PoolState* pool : pools)
      for (const auto& [age, holding] : pool->holdings)
        if (holding.is_counted()) add_holding(holding, seen);
  }
  for (const Holder& each : seen) by_tag.add(each);
  return by_tag.largest(most);
}

Fragmentation AllocatorState::fragmentation() {
  const Guard guard(lock);
  const Heap::FreeBytes& free = heap.free_bytes();
  Fragmentation result;
  result.rounding_bytes = ledger.allocated() - ledger.requested();
  result.free_bytes = free.all;
  result.pinned_bytes = free.all - free.in_pages;
  result.largest_free_bytes = heap.largest_free_bytes();
  result.free_pieces = free.pieces;
  for (const PoolState* pool : pools) result.reserved_ahead_bytes += pool->cushion.pages;
  result.page_rounding_bytes =
      ledger.reserved() - ledger.allocated() - result.free_bytes - result.reserved_ahead_bytes;
  return result;
}

// Room of a pool also includes its cushion, and the pages that the block already has when it grows.
std::size_t AllocatorState::room_of(const PoolState& pool, std::size_t room_of_device,
                                    const Request& request, const Refusal& refusal) const noexcept {
  const auto less = [](std::size_t a, std::size_t b) { return a - std::min(a, b); };
  const std::size_t ahead = pool.cushion.pages;
  const std::size_t own = less(profile.whole_pages(pool.limit), pool.ledger.reserved() - ahead);
  const std::size_t wanted = profile.in_pages(profile.rounded(request.bytes));
  const bool is_tried = refusal.reserve_bytes > 0 && request.bytes <= kMostBytes;
  const std::size_t had = is_tried ? less(wanted, refusal.reserve_bytes) : 0;
  return std::min(room_of_device + ahead, own) + had;
}

void AllocatorState::refuse(const Request& request, const Refusal& refusal, PoolState* pool) {
  constexpr std::size_t kHolders = 10;
  locked(mapping, [&] { refill_preallocated(); });
  OutOfMemory::Facts facts;
  facts.reason = refusal.reason;
  facts.request = request;
  facts.reserve_bytes = refusal.reserve_bytes;
  facts.device = profile.name;
  const std::size_t capacity = source->capacity_bytes();
  {
    const Guard guard(lock);
    facts.stats = counted(nullptr);
    if (pool) {
      facts.pool = pool->name;
      facts.pool_stats = counted(pool);
    }
    facts.room_bytes = room_within(std::min(limit, capacity));
    if (pool) facts.room_bytes = room_of(*pool, facts.room_bytes, request, refusal);
  }
  facts.stats = with_device(facts.stats);
  if (facts.pool_stats) facts.pool_stats = with_device(*facts.pool_stats);
  facts.fragmentation = fragmentation();
  facts.holders = holders(kHolders);
  if (!pool) facts.room_bytes = std::max(facts.room_bytes, facts.fragmentation.largest_free_bytes);
  if (refusal.reason == OutOfMemory::Reason::addresses)
    facts.room_bytes = std::min(facts.room_bytes, addresses_below(*this, request.bytes, pool));
  const OutOfMemory error(std::move(facts));
  announce(error);
  throw error;
}

void AllocatorState::announce(const OutOfMemory& refused) noexcept {
  const std::shared_ptr<EventLog> log = locked(lock, [&] { return recorder; });
  try {
    const Request& request = refused.facts().request;
    const char* by = request.tag.operator_name;
    if (log)
      log->mark("refused: " + format_bytes(request.bytes) +
                (*by                ? std::string(" by ") + by
                 : *request.purpose ? std::string(" for ") + request.purpose
                                    : std::string()));
    if (const auto observer = out_of_memory_observer())
      (*observer)({refused.facts(), holders(kNoLimit), log});
  } catch (...) {  // NOLINT(bugprone-empty-catch): the OutOfMemory itself is thrown
  }
}

Stats AllocatorState::counted(PoolState* pool) noexcept {
  Stats stats = (pool ? pool->ledger : ledger).stats();
  stats.segments = pool ? pool->segments : heap.segments_with_memory() + segments_of_pools;
  stats.limit = pool ? pool->limit : limit;
  return stats;
}

Stats AllocatorState::with_device(Stats stats) const noexcept {
  const DeviceMemory memory = source->device_memory();
  stats.device_free = memory.free;
  stats.device_total = memory.total;
  return stats;
}

Stats AllocatorState::stats(PoolState* pool) noexcept {
  return with_device(locked(lock, [&] { return counted(pool); }));
}

namespace {
struct Observed {
  std::mutex mutex;
  std::shared_ptr<const OutOfMemoryObserver> observer;  // guarded by the mutex
  std::atomic<bool> any = false;  // read first, so that a process forked under the lock goes on
};
Observed& observed() noexcept {
  static Observed observed;
  return observed;
}
}  // namespace

void set_out_of_memory_observer(OutOfMemoryObserver observer) {
  auto next = observer ? std::make_shared<const OutOfMemoryObserver>(std::move(observer)) : nullptr;
  const std::lock_guard lock(observed().mutex);
  observed().observer.swap(next);
  observed().any = static_cast<bool>(observed().observer);
}

std::shared_ptr<const OutOfMemoryObserver> out_of_memory_observer() noexcept {
  if (!observed().any) return nullptr;
  const std::lock_guard lock(observed().mutex);
  return observed().observer;
}

}  // namespace ebb::memory::detail
