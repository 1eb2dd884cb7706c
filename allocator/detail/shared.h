// What an allocator and its pools share.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ebb/allocator/biased_lock.h"
#include "ebb/allocator/detail/heap.h"
#include "ebb/allocator/error.h"
#include "ebb/allocator/event_log.h"
#include "ebb/allocator/ledger.h"
#include "ebb/allocator/memory_source.h"
#include "ebb/allocator/profile.h"

namespace ebb::memory::detail {

// Larger requests are refused before any arithmetic on them can wrap.
inline constexpr std::size_t kMostBytes = std::size_t{1} << 62;

/// A pool's block and the segment that is all its own.
struct Holding {
  Segment segment;
  BlockNode node;
  ByCategory split{};  // of the node's bytes
};

struct PoolState {
  PoolState(BiasedLock& lock, std::string pool_name) : name(std::move(pool_name)), ledger(lock) {}

  const std::string name;
  Ledger ledger;
  std::size_t limit = kNoLimit;
  std::map<std::uint64_t, Holding> holdings;  // by age
  std::uint64_t next_age = 0;
  bool closed = false;
};

/// Functions without a word about it are called under the lock.
struct Shared {
  Shared(std::unique_ptr<MemorySource> memory_source, Profile device_profile);

  // Constant after construction.
  const std::unique_ptr<MemorySource> source;
  const Profile profile;

  BiasedLock lock;

  // Guarded by the lock.
  Ledger ledger{lock};  // of the device: the cache and all pools
  Heap heap{profile.small_request};
  std::size_t limit = kNoLimit;
  std::vector<PoolState*> pools;
  std::shared_ptr<EventLog> recorder;
  std::optional<std::size_t> fail_after;  // allocations that still pass before one fails

  /// A segment, counted. Null after everything has been tried; `why` then says who refused. What
  /// has to be returned for it are free segments, none of which could have served the request: the
  /// cache was searched under this same lock.
  void* map(std::size_t bytes, OutOfMemory::Reason& why) noexcept;
  void unmap(void* base, std::size_t bytes) noexcept;
  /// A segment made larger in place, within the limit; false where that cannot be.
  bool grow(void* base, std::size_t bytes, std::size_t new_bytes) noexcept;

  /// Returns wholly free segments, oldest first, until at least so many bytes went back.
  ReleaseReport trim(std::size_t bytes = kNoLimit) noexcept;

  /// Tells the recorder, if there is one.
  void record(EventKind kind, const Block& block) noexcept {
    if (recorder) [[unlikely]]
      recorder->add(kind, block.data(), block.allocated_bytes(), block.category(), block.tag());
  }
  void record(EventKind kind, const Block& block, const ByCategory& split) noexcept {
    if (recorder) [[unlikely]]
      recorder->add(kind, block.data(), split, block.tag());
  }
  void record(EventKind kind, const void* base, std::size_t bytes) noexcept {
    if (recorder) [[unlikely]]
      recorder->add(kind, base, bytes, Category::temporary, {});
  }
  bool fails_now() noexcept;
  std::vector<Holder> holders(std::size_t most) const;

  /// What an OutOfMemory has to say; `pool` is null where the cache was asked.
  OutOfMemory::Facts explain(const Request& request, OutOfMemory::Reason why,
                             std::size_t segment_bytes, PoolState* pool);

  /// Tells whoever observes, of what is about to be thrown. Without the lock.
  void tell(const OutOfMemory& refused) noexcept;

  /// Fills in what only the device knows. Without the lock: asking may take a while.
  Stats with_device(Stats stats, std::size_t its_limit) const noexcept;
};

}  // namespace ebb::memory::detail
