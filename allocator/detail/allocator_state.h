// State of an allocator, shared with its pools.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ebb/allocator/call_log.h"
#include "ebb/allocator/detail/heap.h"
#include "ebb/allocator/detail/watchers.h"
#include "ebb/allocator/error.h"
#include "ebb/allocator/event_log.h"
#include "ebb/allocator/ledger.h"
#include "ebb/allocator/memory_source.h"
#include "ebb/allocator/mutex.h"
#include "ebb/allocator/profile.h"

namespace ebb::memory::detail {

// Larger requests are refused before any arithmetic on them can wrap.
inline constexpr std::size_t kMostBytes = std::size_t{1} << 61;
// Most bytes on their way to the device at a time; then other threads get their turn.
inline constexpr std::size_t kMostAtOnce = std::size_t{64} << 20;

/// Calls f() under a lock, and returns what it gives.
template <class AnyMutex, class F>
auto locked(AnyMutex& mutex, const F& f) {
  const Guard guard(mutex);
  return f();
}

/// A block of a pool, with a range of addresses of its own.
struct Holding final : BlockNode {
  enum class Presence : std::uint8_t {
    held,
    resting,    // contents unused: the memory may be taken away
    away,       // no memory until it wakes
    suspended,  // no memory until the pool is resumed
    stuck,      // freed, but the device has not taken the memory back
  };

  std::atomic<Presence> presence = Presence::held;
  std::uint64_t age = 0;
  std::byte* base = nullptr;
  std::size_t addresses = 0;  // reserved for it; 0: memory and addresses come and go together
  std::size_t pages = 0;      // bytes of its memory, also while that is away
  Composition composition;
  const char* purpose = "";
  bool is_busy = false;  // a thread is changing it, and drops it if the pool closes; under
                         // `mapping`

  /// Whether its bytes count as allocated: it is held or resting.
  bool is_counted() const noexcept {
    const Presence now = presence.load(std::memory_order_acquire);
    return now == Presence::held || now == Presence::resting;
  }
  /// The operator that asked, or the purpose of a block for several nodes.
  Tag asked_by() const noexcept { return *purpose ? Tag{purpose, tag().file, tag().line} : tag(); }
  void serve(const Request& request) noexcept {
    BlockNode::serve(request);
    purpose = request.purpose;
  }
};

/// Memory that a pool reserves ahead. Its blocks take it over page by page.
struct Cushion {
  std::byte* base = nullptr;
  std::size_t addresses = 0;
  std::size_t pages = 0;  // bytes of its memory
  // Bytes that the pool keeps reserved in all, even if it uses fewer; written under both locks.
  std::size_t target = 0;
};

struct PoolState {
  PoolState(Mutex& lock, std::shared_ptr<Mutex> ends, std::string pool_name)
      : name(std::move(pool_name)), ledger(lock, std::move(ends)) {}

  const std::string name;
  Ledger ledger;
  std::size_t limit = kNoLimit;
  std::map<std::uint64_t, Holding> holdings;  // by age
  std::uint64_t next_age = 0;
  Cushion cushion;
  std::size_t segments = 0;  // blocks with memory, and the cushion if it has any
  bool closed = false, suspended = false;

  /// Whether its resting blocks keep their memory: it preallocates, and has reserved no more than
  /// that.
  bool reserves_ahead() const noexcept {
    return cushion.target > 0 && ledger.published_reserved() <= cushion.target;
  }
};

/// Reason why a request was refused, and the bytes that would have to come back.
struct Refusal {
  OutOfMemory::Reason reason = OutOfMemory::Reason::device_refused;
  std::size_t reserve_bytes = 0;
  std::size_t missing_bytes = 0;  // beyond a limit
};

/// Two locks. `mapping` is held while memory moves to or from the device, which may take long.
/// `lock` is held for moments and taken after `mapping`. A request that hits the cache takes only
/// `lock`.
struct AllocatorState {
  AllocatorState(std::unique_ptr<MemorySource> memory_source, Profile device_profile);
  ~AllocatorState();

  // Constant after construction.
  const std::unique_ptr<MemorySource> source;
  const Profile profile;
  const std::shared_ptr<Mutex> ends = std::make_shared<Mutex>();  // of ledgers; taken before the
                                                                  // other locks

  FairMutex mapping;
  const std::shared_ptr<Mutex> shared_lock = std::make_shared<Mutex>();  // with logs, which may
                                                                         // outlive the allocator
  Mutex& lock = *shared_lock;

  // Guarded by `mapping`.
  std::size_t preallocated = 0;       // reserved bytes of the cache that release_cached() leaves
  std::size_t refused_by_device = 0;  // pages of freed pool blocks that the device did not take
                                      // back

  // Guarded by `lock`.
  Ledger ledger{lock, ends};  // of the device: the cache and all pools
  Heap heap{profile};
  std::size_t limit = kNoLimit;
  std::vector<PoolState*> pools;
  std::size_t reserved_by_pools = 0;  // includes the rest of destroyed pools, if the device kept
                                      // any
  std::size_t segments_of_pools = 0;
  // Whether any of the following but the recorder is set, and whether any that may call a watch or
  // tell a recorder; also read without the lock.
  std::atomic<bool> special = false, watched = false;
  std::optional<std::size_t> fail_after;  // allocations that still pass before one fails
  Watchers watchers;
  std::shared_ptr<EventLog> recorder;
  std::shared_ptr<CallLog> call_log;

  // Under `lock`.
  /// Counts bytes as reserved if the limits allow it.
  bool admit(std::size_t bytes, PoolState* pool, Refusal& refusal) noexcept;
  void charge(std::size_t bytes, PoolState* pool) noexcept;
  void discharge(std::size_t bytes, PoolState* pool) noexcept;
  /// Undoes the last charge(), whose memory was refused, as if it had never been counted.
  void refund(std::size_t bytes, PoolState* pool) noexcept;
  /// Adds an event to the recorder, if there is one.
  void record(EventKind kind, const Block& block) noexcept {
    if (recorder) [[unlikely]]
      recorder->add(kind, block.data(), block.allocated_bytes(), block.category(), block.tag());
  }
  void record(EventKind kind, const Holding& holding) noexcept;
  void record(EventKind kind, const void* base, std::size_t bytes) noexcept;
  bool fails_now() noexcept;
  void set_special() noexcept {
    const bool watches = fail_after.has_value() || watchers.any();
    watched.store(watches || recorder, std::memory_order_relaxed);
    special.store(watches || call_log, std::memory_order_relaxed);
  }
  bool is_special() const noexcept { return special.load(std::memory_order_relaxed); }
  /// Bytes available for something new under a limit of `most`: all but the memory of live blocks
  /// that are not resting.
  std::size_t room_within(std::size_t most) const noexcept;
  std::size_t room_of(const PoolState& pool, std::size_t room_of_device, const Request& request,
                      const Refusal& refusal) const noexcept;
  std::size_t cache_reserved() const noexcept;
  /// The figures of a pool, or of the device if it is null, but those that the device reports.
  Stats counted(PoolState* pool) noexcept;
  BlockNode* serve(BlockNode* node, const Request& request) noexcept;
  void count(PoolState& pool, const Holding& holding) noexcept;
  void uncount(PoolState& pool, const Holding& holding) noexcept;

  // With or without a lock; the log is set while nobody asks.
  template <class... Arguments>
  void note(CallLog::Kind kind, const Arguments&... arguments) noexcept {
    if (is_special() && call_log) [[unlikely]]
      call_log->add(kind, arguments...);
  }

  // Under `mapping`.
  /// Takes a node from the cache, which grows for it, and counts it for the request. Null if the
  /// memory was refused.
  BlockNode* grow_cache(const Request& request, Refusal& refusal);
  /// Grows the cache to at least `bytes`, which it keeps.
  bool preallocate(std::size_t bytes, Refusal& refusal);
  /// Reserves preallocated memory again, as far as there is room, after some of it went elsewhere.
  void refill_preallocated() noexcept;
  /// Returns free pages until at least `bytes` went back or none are left.
  ReleaseReport trim(std::size_t bytes) noexcept;
  /// Takes memory until `bytes` went back: first memory that the device refused to take before,
  /// then the memory of resting blocks, oldest pool first.
  std::size_t take_resting(std::size_t bytes, PoolState* only_of) noexcept;
  /// Offers memory of freed blocks to the device again, after it refused to take it.
  std::size_t take_refused(std::size_t bytes, PoolState* only_of) noexcept;
  /// Takes the memory of a pool's block. False, with nothing changed, if the device does not take
  /// it.
  bool take_away(PoolState& pool, Holding& holding, Holding::Presence then) noexcept;
  /// Cuts a block's memory down to `pages` bytes. False if the device takes none of it.
  bool shrink(PoolState& pool, Holding& holding, std::size_t pages) noexcept;
  /// Gives back a block's memory and addresses for good. False if the device did not take all of
  /// it. Adds the returned bytes to `returned`.
  bool drop(PoolState& pool, Holding& holding, std::size_t& returned) noexcept;
  /// Extends a block's memory from `had` to `bytes` bytes, in whole pages, using the pool's cushion
  /// first.
  bool commit_pages(PoolState& pool, Holding& holding, std::size_t had, std::size_t bytes,
                    Refusal& refusal) noexcept;
  /// Grows or shrinks the cushion to `pages` bytes. False, with nothing changed, if a limit or the
  /// device refuses.
  bool set_cushion(PoolState& pool, std::size_t pages, Refusal& refusal) noexcept;
  void refill_cushion(PoolState& pool) noexcept;
  /// Moves the cushion to a new range of addresses. False, with nothing changed, if there is none,
  /// or if the device does not take the old memory or refuses it at the new place.
  bool move_cushion(PoolState& pool, std::size_t addresses, Refusal& refusal) noexcept;

  // Without a lock.
  /// Calls attempt(refusal) under `mapping` until it succeeds, and finds memory in between. Throws
  /// OutOfMemory when nothing helps; `pool` is null if the cache is asked.
  template <class Attempt>
  void obtain(const Request& request, PoolState* pool, const Attempt& attempt);
  /// Tags that hold most allocated bytes, largest first.
  std::vector<Holder> holders(std::size_t most);
  Fragmentation fragmentation();
  /// Throws an OutOfMemory with all its figures; `pool` is null if the cache was asked.
  [[noreturn]] void refuse(const Request& request, const Refusal& refusal, PoolState* pool);
  /// Marks an OutOfMemory that is about to be thrown in the recorder, then reports it to the
  /// process's observer.
  void announce(const OutOfMemory& refused) noexcept;
  /// Fills in the figures that the device reports; asking may take a while.
  Stats with_device(Stats stats) const noexcept;
  /// All figures of a pool; of the device if it is null.
  Stats stats(PoolState* pool) noexcept;
  /// Calls the watches whose thresholds the device has passed.
  void tell_passed(const Request& request);

 private:
  BlockNode* map_segment(const Request& request, Refusal& refusal);
  bool adopt_addresses(std::size_t bytes);
  void drop_empty() noexcept;
  ReleaseReport trim_segments(std::size_t bytes) noexcept;
  // Gives memory of a pool's block back to the device: with its address, where none is reserved.
  bool give_back(const Holding& holding, std::size_t offset, std::size_t bytes) noexcept;
  void lose_segment(PoolState& pool) noexcept;
};

/// Steps that every refused request goes through, in order. (1) For a pool: the cache's
/// preallocated memory, which needs no callback. (2) Callbacks. (3) Resting arenas; a refusal by a
/// pool's own limit ends here. (4) Free pages of the cache go back. (5) All of the cache is
/// searched, small and large segments alike. (6) On a simulated device: the capacity is exceeded.
class Relief {
 public:
  Relief(AllocatorState& allocator, PoolState* pool, const Request& request) noexcept
      : allocator_(allocator), pool_(pool), request_(request) {}

  /// Tries the next steps. True if one changed something, so that a retry may succeed. Called
  /// without a lock.
  bool find(const Refusal& refusal);
  /// Whether the next try should search all of the cache.
  bool searches_all() const noexcept { return stage_ >= Stage::capacity; }

 private:
  enum class Stage { preallocated, callbacks, arenas, cache, search, capacity, none };

  /// Bytes that would have to go back for the request.
  std::size_t missing_bytes(const Refusal& refusal) const noexcept;

  AllocatorState& allocator_;
  PoolState* const pool_;
  const Request& request_;
  Stage stage_ = Stage::preallocated;
};

template <class Attempt>
void AllocatorState::obtain(const Request& request, PoolState* pool, const Attempt& attempt) {
  if (request.bytes > kMostBytes) refuse(request, {}, pool);
  Relief relief(*this, pool, request);
  for (;;) {
    Refusal refusal;
    {
      const Guard guard(mapping);
      if (attempt(refusal)) return;
    }
    if (!relief.find(refusal)) refuse(request, refusal, pool);
  }
}

}  // namespace ebb::memory::detail
