// The state of an allocator, which its pools work on as well.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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
// At most so much is on its way to the device at a time: whoever else needs it gets his turn.
inline constexpr std::size_t kMostAtOnce = std::size_t{64} << 20;

/// A pool's block, with a range of addresses that is all its own.
struct Holding final : BlockNode {
  enum class Presence : std::uint8_t {
    held,
    resting,    // nothing is in it: whoever needs memory takes it away
    away,       // it has no memory until it wakes
    suspended,  // nor this, until the pool is resumed
    stuck,      // it was freed, but the device has not taken its memory
  };

  std::atomic<Presence> presence = Presence::held;
  std::uint64_t age = 0;
  std::byte* base = nullptr;
  std::size_t addresses = 0;  // reserved for it; 0: memory and addresses come and go together
  std::size_t pages = 0;      // bytes of memory that it has, or had before it went away
  Composition composition;
  const char* purpose = "";
  bool is_busy = false;  // some thread is at it, and drops it if the pool closes; under `mapping`

  /// Who asked, or what for, where it is not for one node.
  Tag asked_by() const noexcept { return *purpose ? Tag{purpose, tag().file, tag().line} : tag(); }
  void serve(const Request& request) noexcept {
    BlockNode::serve(request);
    purpose = request.purpose;
  }
};

/// Memory that a pool holds ahead of its blocks, which take it over page by page.
struct Cushion {
  std::byte* base = nullptr;
  std::size_t addresses = 0;
  std::size_t pages = 0;  // bytes of memory that it has
  // What the pool is to have reserved in all, however little it uses; written under both locks.
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
  std::size_t segments = 0;  // blocks that have memory, and the cushion where it has some
  bool closed = false, suspended = false;

  /// What it has reserved ahead stays with it, whoever is short of memory.
  bool reserves_ahead() const noexcept {
    return cushion.target > 0 && ledger.published_reserved() <= cushion.target;
  }
};

/// Who has refused a request, and what would have to come back for it.
struct Refusal {
  OutOfMemory::Reason reason = OutOfMemory::Reason::device_refused;
  std::size_t reserve_bytes = 0;
  std::size_t missing_bytes = 0;  // of a limit
};

/// Two locks: `mapping` is held while memory moves between here and the device, which may take
/// long; `lock` for moments, `mapping` being taken before it. Whoever finds what he needs in the
/// cache never meets `mapping`.
struct AllocatorState {
  AllocatorState(std::unique_ptr<MemorySource> memory_source, Profile device_profile);
  ~AllocatorState();

  // Constant after construction.
  const std::unique_ptr<MemorySource> source;
  const Profile profile;
  const std::shared_ptr<Mutex> ends = std::make_shared<Mutex>();  // of ledgers; before the others

  FairMutex mapping;
  mutable Mutex lock;

  // Guarded by `mapping`.
  std::size_t preallocated = 0;       // reserved bytes of the cache that release_cached() leaves
  std::size_t refused_by_device = 0;  // pages of pools' freed blocks that it did not take back

  // Guarded by the lock.
  Ledger ledger{lock, ends};  // of the device: the cache and all pools
  Heap heap{profile};
  std::size_t limit = kNoLimit;
  std::vector<PoolState*> pools;
  std::size_t reserved_by_pools = 0;  // that of pools which are gone included, if any is left
  std::size_t segments_of_pools = 0;
  std::atomic<bool> special = false;      // something of what follows is set; read without it too
  std::optional<std::size_t> fail_after;  // allocations that still pass before one fails
  Watchers watchers;
  std::shared_ptr<EventLog> recorder;

  // Under the lock.
  /// Counts bytes as reserved where the limits allow it.
  bool admit(std::size_t bytes, PoolState* pool, Refusal& refusal) noexcept;
  void charge(std::size_t bytes, PoolState* pool) noexcept;
  void discharge(std::size_t bytes, PoolState* pool) noexcept;
  /// What was charged last was refused: no figure has seen it.
  void refund(std::size_t bytes, PoolState* pool) noexcept;
  /// Tells the recorder, if there is one.
  void record(EventKind kind, const Block& block) noexcept;
  void record(EventKind kind, const Holding& holding) noexcept;
  void record(EventKind kind, const void* base, std::size_t bytes) noexcept;
  bool fails_now() noexcept;
  void set_special() noexcept {
    special.store(fail_after.has_value() || watchers.any() || recorder != nullptr,
                  std::memory_order_relaxed);
  }
  bool is_special() const noexcept { return special.load(std::memory_order_relaxed); }
  /// What could be reserved for something new if so much were the limit: all but what live blocks
  /// use that do not rest.
  std::size_t room_within(std::size_t most) const noexcept;
  std::size_t room_of(const PoolState& pool, std::size_t room_of_device, const Request& request,
                      const Refusal& refusal) const noexcept;
  std::size_t cache_reserved() const noexcept;
  BlockNode* serve(BlockNode* node, const Request& request) noexcept;
  void count(PoolState& pool, const Holding& holding) noexcept;
  void uncount(PoolState& pool, const Holding& holding) noexcept;

  // Under `mapping`.
  /// A live node from the cache, which grows for it; it serves the request and is counted. Null
  /// where that was refused.
  BlockNode* grow_cache(const Request& request, Refusal& refusal);
  /// Memory for the cache, so that it has so many bytes at least; those are kept.
  bool preallocate(std::size_t bytes, Refusal& refusal);
  /// As much of that again as there is room for, after some of it had to go elsewhere.
  void refill_preallocated() noexcept;
  /// Returns free pages until at least so many bytes went back, or there are none.
  ReleaseReport trim(std::size_t bytes) noexcept;
  /// Takes what the device did not take back before, then the memory of resting blocks, oldest pool
  /// first, until so many bytes went back.
  std::size_t take_resting(std::size_t bytes, PoolState* only_of) noexcept;
  /// The first half of that.
  std::size_t take_refused(std::size_t bytes, PoolState* only_of) noexcept;
  /// Takes the memory of one of a pool's blocks; false, with nothing changed, where the device
  /// leaves it there.
  bool take_away(PoolState& pool, Holding& holding, Holding::Presence then) noexcept;
  /// Leaves a block so many bytes of its pages; false where the device leaves it all.
  bool shrink(PoolState& pool, Holding& holding, std::size_t pages) noexcept;
  /// take_away() for good, addresses and all; false where the device leaves some of it there. Adds
  /// what went back to `returned`.
  bool drop(PoolState& pool, Holding& holding, std::size_t& returned) noexcept;
  /// Memory for a block that had `had` bytes of it and is to have `bytes`, in whole pages. What
  /// the pool holds ahead is used up first.
  bool commit_pages(PoolState& pool, Holding& holding, std::size_t had, std::size_t bytes,
                    Refusal& refusal) noexcept;
  /// Makes the cushion larger or smaller, as near to its target as limits allow.
  bool set_cushion(PoolState& pool, std::size_t pages, Refusal& refusal) noexcept;
  void refill_cushion(PoolState& pool) noexcept;
  /// The same memory at so many new addresses; false, with nothing changed, where there are none.
  bool move_cushion(PoolState& pool, std::size_t addresses) noexcept;

  // Without a lock.
  /// The holders of most allocated bytes, largest first.
  std::vector<Holder> holders(std::size_t most);
  Fragmentation fragmentation();
  /// What an OutOfMemory has to say; `pool` is null where the cache was asked.
  [[noreturn]] void refuse(const Request& request, const Refusal& refusal, PoolState* pool);
  /// Tells whoever observes, of what is about to be thrown.
  void tell_observer(const OutOfMemory& refused) noexcept;
  /// Fills in what only the device knows: asking may take a while.
  Stats with_device(Stats stats, std::size_t its_limit) const noexcept;
  /// Tells those whose thresholds the device has passed, if any.
  void tell_passed(const Request& request);

 private:
  BlockNode* map_segment(const Request& request, Refusal& refusal);
  bool adopt_addresses(std::size_t bytes);
  void drop_empty() noexcept;
  ReleaseReport trim_segments(std::size_t bytes) noexcept;
};

/// The one path that every refused request takes: for a pool what the cache has reserved ahead of
/// all, which nobody has to be short for; then callbacks, then resting arenas, then the cache,
/// whose free pages go back and whose remains serve requests of either kind, then, on a simulated
/// device, beyond the capacity.
class Relief {
 public:
  Relief(AllocatorState& allocator, PoolState* pool, const Request& request) noexcept
      : allocator_(allocator), pool_(pool), request_(request) {}

  /// Whether something has changed, so that it is worth another try. Without a lock.
  bool find(const Refusal& refusal);
  /// The next try is to search all of the cache.
  bool searches_all() const noexcept { return stage_ >= Stage::capacity; }

 private:
  enum class Stage { preallocated, callbacks, arenas, cache, search, capacity, none };

  /// What would have to go back for the request.
  std::size_t missing_bytes(const Refusal& refusal) const noexcept;

  AllocatorState& allocator_;
  PoolState* const pool_;
  const Request& request_;
  Stage stage_ = Stage::preallocated;
};

}  // namespace ebb::memory::detail
