// Memory that goes back to the device the moment it is freed: a session's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ebb/allocator/block.h"
#include "ebb/allocator/error.h"
#include "ebb/allocator/statistics.h"

namespace ebb::memory {

class CachingAllocator;
class Ledger;
namespace detail {
struct Holding;
struct PoolState;
struct AllocatorState;
}  // namespace detail

/// Every block has a range of addresses of its own, exact to the device's page, so a pool never
/// caches, never fragments, and closing one cannot touch another. Its bytes are part of the
/// device's figures and count against the device's limit besides the pool's own. May be used from
/// any thread, each block by one at a time.
///
/// Where a limit or the device is in the way, everything that the device's allocator can do about
/// it is done before OutOfMemory is thrown, and then nothing has changed.
class Pool {
 public:
  ~Pool();  ///< closes
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Throws OutOfMemory, and Error when the pool is closed.
  Block* allocate(const Request& request);
  /// A block whose bytes are of several kinds. One that `may_grow` gets addresses for a few times
  /// as much.
  Block* allocate(const Request& request, Composition composition, bool may_grow = false);
  /// Makes a block larger where it is, or of another composition; one whose memory was taken away
  /// gets as much as is asked for now. False, with nothing changed, where its addresses do not
  /// suffice. Throws OutOfMemory, and what a watch throws: then the block is as it was.
  bool grow(Block* block, const Request& request, Composition composition);
  void free(Block* block) noexcept;                             ///< null is allowed
  void recategorise(Block* block, Category category) noexcept;  ///< all of its bytes

  /// Nothing that anybody needs is in the block until wake(): whoever is short of memory may take
  /// its away. Without a lock.
  void rest(Block* block) noexcept;
  /// Ends that, without a lock where nothing was taken. False: the memory is away; grow() brings it
  /// back, without its contents, at the same address where the device has addresses to reserve.
  bool wake(Block* block) noexcept;
  bool has_memory(const Block* block) const noexcept;

  /// Gives all memory back and keeps the addresses, where the device has such, for resume().
  /// Blocks are not to be touched meanwhile; they may be freed. Says what was freed and returned.
  CloseReport suspend() noexcept;
  /// Memory for what suspend() took it from, without its contents. Throws OutOfMemory; the pool
  /// stays suspended then.
  void resume();

  /// Reserves so many bytes ahead and keeps them reserved, whatever is freed; 0: no more. Throws
  /// OutOfMemory, and Error where the device has no addresses to reserve.
  void preallocate(std::size_t bytes);

  /// Frees every block that is left and returns its bytes; the second time there is nothing to do.
  /// No block of the pool may be touched or freed afterwards: its memory is unmapped.
  CloseReport close() noexcept;
  bool closed() const noexcept;

  const std::string& name() const noexcept;
  Stats stats() const;  ///< of the pool alone; `device_free` is the device's
  void reset_peaks() noexcept;
  /// Of reserved bytes. Lowered below what is in use, resting blocks give their memory back, and
  /// only new requests are refused.
  void set_limit(std::optional<std::size_t> reserved_bytes) noexcept;
  std::size_t allocated_bytes() const noexcept;  ///< without a lock
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
  void shrink_back(detail::Holding& holding, Before&& before) noexcept;
  Composition of_one(const Request& request) const;

  detail::AllocatorState& allocator_;
  const std::unique_ptr<detail::PoolState> state_;
};

}  // namespace ebb::memory
