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
struct PoolState;
struct Shared;
}  // namespace detail

/// Every block is a segment of its own, exact to the device's page, so a pool never caches, never
/// fragments, and closing one cannot touch another. Its bytes are part of the device's figures and
/// count against the device's limit besides the pool's own. May be used from any thread.
class Pool {
 public:
  ~Pool();  ///< closes
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Where the device's limit or the device refuses, the shared cache is trimmed first. Throws
  /// OutOfMemory, and Error when the pool is closed.
  Block* allocate(const Request& request);
  /// A block whose bytes the figures count in several categories, such as an arena. `split` adds up
  /// to the rounded bytes of the request, whose own category names the block to its holders.
  Block* allocate(const Request& request, const ByCategory& split);
  /// Makes a block larger, as by free() and allocate(), where it is: false, with nothing changed,
  /// where the source or a limit is in the way.
  bool grow(Block* block, const Request& request, const ByCategory& split) noexcept;
  void free(Block* block) noexcept;                             ///< null is allowed
  void recategorise(Block* block, Category category) noexcept;  ///< all of its bytes

  /// Frees every block that is left and returns its bytes; the second time there is nothing to do.
  /// No block of the pool may be touched or freed afterwards: its memory is unmapped.
  CloseReport close() noexcept;
  bool closed() const noexcept;

  const std::string& name() const noexcept;
  Stats stats() const;  ///< of the pool alone; `device_free` is the device's
  void reset_peaks() noexcept;
  void set_limit(
      std::optional<std::size_t> reserved_bytes) noexcept;  ///< refuses only new requests
  std::size_t allocated_bytes() const noexcept;             ///< without a lock
  std::size_t reserved_bytes() const noexcept;              ///< likewise

  friend Ledger& ledger_of(const Pool& pool) noexcept;

 private:
  friend class CachingAllocator;
  Pool(detail::Shared& shared, std::string name, std::optional<std::size_t> limit);

  void give_back(std::uint64_t age) noexcept;

  detail::Shared& shared_;
  const std::unique_ptr<detail::PoolState> state_;
};

}  // namespace ebb::memory
