// Memory of a session, which goes back to the device the moment it is freed.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "ebb/allocator/block.h"
#include "ebb/allocator/error.h"
#include "ebb/allocator/no_copy.h"
#include "ebb/allocator/statistics.h"

namespace ebb::memory {

class CachingAllocator;
class Ledger;
namespace detail {
struct Holding;
struct PoolState;
struct AllocatorState;
}  // namespace detail

/// Every block has a range of addresses of its own, exact to the device's page. So a pool never
/// caches and never fragments, and closing one cannot touch another. Its bytes are part of the
/// device's figures and count against the device's limit as well as the pool's. May be used from
/// any thread, each block by one at a time.
///
/// When a limit or the device refuses, the device's allocator does all it can to find memory before
/// OutOfMemory is thrown. The pool is then unchanged.
class Pool : NoCopy {
 public:
  ~Pool();  ///< closes

  /// Throws OutOfMemory, and Error when the pool is closed.
  Block* allocate(const Request& request);
  /// Allocates a block of several categories. With `may_grow` it gets a few times as many
  /// addresses.
  Block* allocate(const Request& request, Composition composition, bool may_grow = false);
  /// Grows a block in place, or changes its composition. A block whose memory was taken away gets
  /// all of it anew. False, with nothing changed, if its addresses do not suffice. Throws
  /// OutOfMemory and exceptions of a watch; the block is then as it was.
  bool grow(Block* block, const Request& request, Composition composition);
  void free(Block* block) noexcept;  ///< null is allowed

  /// Declares the contents unused until wake(), so that the memory may be taken away when it is
  /// short. Takes no lock.
  void rest(Block* block) noexcept;
  /// Ends rest(), without a lock if nothing was taken. False if the memory is away: grow() brings
  /// it back without its contents, at the same address if the device has addresses to reserve.
  /// `needed_bytes` tells a log how much the owner would then ask for.
  bool wake(Block* block, std::size_t needed_bytes = 0) noexcept;
  bool has_memory(const Block* block) const noexcept;

  /// Gives all memory back; keeps the addresses for resume() if the device has any to reserve.
  /// Until then blocks must not be touched, but may be freed. Reports the blocks freed and bytes
  /// returned.
  CloseReport suspend() noexcept;
  /// Brings back the memory taken by suspend(), without its contents. Throws OutOfMemory; the pool
  /// then stays suspended.
  void resume();

  /// Reserves `bytes` ahead and keeps them reserved whatever is freed; 0 ends that. Throws
  /// OutOfMemory, and Error if the device has no addresses to reserve.
  void preallocate(std::size_t bytes);

  /// Frees every remaining block and returns its bytes; a second call does nothing. Afterwards no
  /// block of the pool may be touched or freed: its memory is unmapped.
  CloseReport close() noexcept;

  Stats stats() const;  ///< of the pool alone; `device_free` is the device's
  /// Limits the pool's reserved bytes. A limit below the bytes in use takes the memory of resting
  /// blocks and otherwise only refuses new requests.
  void set_limit(std::optional<std::size_t> reserved_bytes) noexcept;
  std::size_t allocated_bytes() const noexcept;  ///< takes no lock
  std::size_t reserved_bytes() const noexcept;   ///< likewise

  friend Ledger& ledger_of(const Pool& pool) noexcept;

 private:
  friend class CachingAllocator;
  struct Before;
  Pool(detail::AllocatorState& allocator, std::string name, std::optional<std::size_t> limit);

  detail::Holding& add_holding(const Request& request, Composition&& composition, bool may_grow);
  void remove_holding(detail::Holding& holding) noexcept;
  template <class Then>
  void provide(detail::Holding& holding, std::size_t had, std::size_t bytes, const Request& request,
               Then&& then);
  void check_open() const;
  bool end_rest(detail::Holding& holding) noexcept;
  void shrink_back(detail::Holding& holding, Before&& before) noexcept;
  Composition of_one(const Request& request) const;

  detail::AllocatorState& allocator_;
  const std::unique_ptr<detail::PoolState> state_;
};

}  // namespace ebb::memory
