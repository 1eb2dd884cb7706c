// Memory of one device: ranges from a source, cut into blocks and counted.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ebb/allocator/block.h"
#include "ebb/allocator/error.h"
#include "ebb/allocator/event_log.h"
#include "ebb/allocator/memory_source.h"
#include "ebb/allocator/no_copy.h"
#include "ebb/allocator/pool.h"
#include "ebb/allocator/profile.h"
#include "ebb/allocator/statistics.h"
#include "ebb/allocator/watch.h"

namespace ebb::memory {

class CallLog;

/// The only allocator of a device. Every function may be called from any thread.
///
/// Placement is best fit, then the oldest segment, then the lowest offset, and free neighbours are
/// always merged. So the place of a block depends on the live blocks and the memory held, not on
/// the order of earlier frees. A step that starts from the same blocks ends with the same figures,
/// on the device and on its simulated twin.
///
/// When a limit or the device refuses a request, the allocator calls the watches, takes the memory
/// of resting blocks, returns free pages, and searches everything that is free, in this order. Then
/// it throws OutOfMemory.
class CachingAllocator : NoCopy {
 public:
  /// Throws Error when the profile contradicts itself or the source's pages.
  CachingAllocator(std::unique_ptr<MemorySource> source, Profile profile);
  /// All blocks must have been freed and all pools destroyed.
  ~CachingAllocator();

  /// Throws OutOfMemory. A request for zero bytes gives a block without memory.
  Block* allocate(const Request& request);
  /// Null is allowed. `last_user` may still be using the memory; the block's next owner learns it
  /// from Block::last_user().
  void free(Block* block, User last_user = nullptr) noexcept;
  /// Changes a block's category, for instance temporary -> activation when a tape keeps it.
  void recategorise(Block* block, Category category) noexcept;

  /// Gives every page that no live block uses back to the device. Blocks of pools stay.
  ReleaseReport release_cached() noexcept;
  /// Bounds the reserved bytes of the device, pools included. A limit below the bytes in use first
  /// returns free memory, then takes the memory of resting blocks. Live blocks stay; only requests
  /// for more memory are refused.
  void set_limit(std::optional<std::size_t> reserved_bytes) noexcept;
  /// Reserves `bytes` for the cache at once and keeps them reserved; 0 ends that. Throws
  /// OutOfMemory, and Error if the device has no addresses to reserve.
  void preallocate(std::size_t bytes);
  /// Most bytes that the cache could have reserved under this limit for the whole device.
  std::size_t cache_bytes_within(std::size_t limit) const noexcept;
  /// Calls `call` when a request is about to be refused or, with a threshold, each time that the
  /// allocated bytes rise above it.
  Watch watch(std::optional<std::size_t> threshold, WatchFunction call);
  /// Whether an allocation may call a watch or tell a recorder in its middle; the requesting thread
  /// must then hold everything it reads. Takes no lock and is cheap. Stays true for a while after
  /// the last watch has ended.
  bool is_watched() const noexcept { return watched_->load(std::memory_order_relaxed); }

  /// All figures below include pools.
  Stats stats() const;
  void reset_peaks() noexcept;
  std::size_t allocated_bytes() const noexcept;  ///< takes no lock: cheap, never torn
  std::size_t reserved_bytes() const noexcept;   ///< likewise
  std::size_t peak_bytes() const noexcept;       ///< allocated
  std::size_t limit_bytes() const noexcept;      ///< kNoLimit: none
  /// Most bytes that could be reserved: capacity or limit, less the memory of live blocks that are
  /// not resting. Looks at every block of the pools.
  std::size_t room_bytes() const noexcept;
  std::size_t capacity_bytes() const noexcept;  ///< the source's
  /// Tags that hold most allocated bytes, largest first. Walks every block; not a snapshot of one
  /// moment.
  std::vector<Holder> holders(std::size_t most) const;
  Fragmentation fragmentation() const;

  /// Sets the log that records every event from now on, pools included; null ends it. Returns false
  /// and changes nothing if another log is recording.
  bool set_recorder(std::shared_ptr<EventLog> log);
  /// The log that records; null without one.
  std::shared_ptr<EventLog> recorder() const noexcept;

  /// Sets the log that gets every call from now on, pools included; null ends it. Nothing may be
  /// allocated meanwhile.
  void set_call_log(std::shared_ptr<CallLog> log);

  /// The pool must be destroyed before the allocator.
  std::unique_ptr<Pool> make_pool(std::string name, std::optional<std::size_t> limit = {});

  const Profile& profile() const noexcept;

  /// For tests: lets the next `successes` allocations pass, in pools too, and makes the one after
  /// them throw OutOfMemory, once.
  void fail_allocation_after(std::size_t successes) noexcept;

  friend Ledger& ledger_of(const CachingAllocator& allocator) noexcept;

 private:
  Block* allocate_slowly(const Request& request);

  std::unique_ptr<detail::AllocatorState> state_;
  const std::atomic<bool>* const watched_;  // in the state
};

}  // namespace ebb::memory
