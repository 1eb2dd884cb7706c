// One device's memory: ranges from a source, cut into blocks, counted.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ebb/allocator/block.h"
#include "ebb/allocator/error.h"
#include "ebb/allocator/event_log.h"
#include "ebb/allocator/memory_source.h"
#include "ebb/allocator/pool.h"
#include "ebb/allocator/profile.h"
#include "ebb/allocator/statistics.h"
#include "ebb/allocator/watch.h"

namespace ebb::memory {

/// The only allocator of a device. Every function may be called from any thread.
///
/// Placement is best fit, then the oldest segment, then the lowest offset, and free neighbours are
/// always merged: where a block goes is a function of the blocks that live and of the memory held,
/// not of what was freed in which order. A step that starts from the same blocks therefore ends
/// with the same figures, on the device and on its simulated twin alike.
///
/// Where a limit or the device refuses, in this order: those who watch are told, blocks that rest
/// give their memory back, free pages go back, and all that is free is searched again; then
/// OutOfMemory is thrown.
class CachingAllocator {
 public:
  /// Throws Error when the profile contradicts itself or the source's pages.
  CachingAllocator(std::unique_ptr<MemorySource> source, Profile profile);
  /// All blocks have been freed and all pools destroyed before.
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// Throws OutOfMemory. Zero bytes are legal: a block without memory.
  Block* allocate(const Request& request);
  /// Null is allowed. `last_user`: who may still be using the memory, for whoever gets it next.
  void free(Block* block, User last_user = nullptr) noexcept;
  /// For instance temporary -> activation, when a tape keeps the block.
  void recategorise(Block* block, Category category) noexcept;

  /// Gives every page that no live block uses back to the device; the blocks of pools stay.
  ReleaseReport release_cached() noexcept;
  /// Bounds the reserved bytes of the device, its pools included. Lowered below what is in use, it
  /// returns what is free, then what rests, leaves live blocks alone and refuses only what needs
  /// more.
  void set_limit(std::optional<std::size_t> reserved_bytes) noexcept;
  /// Reserves so many bytes for the cache at once and keeps them reserved; 0: no more. Throws
  /// OutOfMemory, and Error where the device has no addresses to reserve.
  void preallocate(std::size_t bytes);
  /// What the cache could have reserved if so much were the limit of all.
  std::size_t cache_bytes_within(std::size_t limit) const noexcept;
  /// Calls when a request is about to be refused or, with a threshold, each time that the allocated
  /// bytes rise above it.
  Watch watch(std::optional<std::size_t> threshold, WatchFunction call);
  /// Whether somebody may be called or told in the middle of an allocation: whoever asks for memory
  /// then holds all that it reads. Without a lock, and cheap; true for a while after the last watch
  /// has ended.
  bool is_watched() const noexcept;

  /// Pools included, here and below.
  Stats stats() const;
  void reset_peaks() noexcept;
  std::size_t allocated_bytes() const noexcept;  ///< without a lock: cheap, never torn
  std::size_t reserved_bytes() const noexcept;   ///< likewise
  std::size_t peak_bytes() const noexcept;       ///< allocated
  std::size_t limit_bytes() const noexcept;      ///< kNoLimit: none
  /// The most that could be reserved: capacity or limit, less what live blocks use that do not
  /// rest. Looks at every block of the pools.
  std::size_t room_bytes() const noexcept;
  std::size_t capacity_bytes() const noexcept;  ///< the source's
  /// The tags that hold most allocated bytes, largest first. Walks every block, not at one moment.
  std::vector<Holder> holders(std::size_t most) const;
  Fragmentation fragmentation() const;

  /// Whom to tell what happens from now on, pools included; null ends it. False, with nothing
  /// changed, where another log is told already.
  bool set_recorder(std::shared_ptr<EventLog> log);
  std::shared_ptr<EventLog> recorder() const;

  /// Has to be destroyed before the allocator.
  std::unique_ptr<Pool> make_pool(std::string name, std::optional<std::size_t> limit = {});

  const Profile& profile() const noexcept;

  /// For tests: the next `successes` allocations pass, pools' included, and the one after them
  /// throws OutOfMemory, once.
  void fail_allocation_after(std::size_t successes) noexcept;

  friend Ledger& ledger_of(const CachingAllocator& allocator) noexcept;

 private:
  Block* allocate_slowly(const Request& request);

  std::unique_ptr<detail::AllocatorState> state_;
};

}  // namespace ebb::memory
