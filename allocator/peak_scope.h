// The most bytes allocated while a scope is alive.
#pragma once

#include "ebb/allocator/caching_allocator.h"
#include "ebb/allocator/ledger.h"
#include "ebb/allocator/pool.h"

namespace ebb::memory {

/// Measures whatever has a ledger: an allocator, a pool, or any type for which a function
/// `Ledger& ledger_of(const T&)` is found by argument-dependent lookup. What was allocated before
/// counts while it stays. Scopes nest, overlap and end in any order, in any thread; one that
/// outlives what it measures keeps its last reading.
class PeakScope {
 public:
  template <class Owner>
  explicit PeakScope(const Owner& owner) {
    ledger_of(owner).open(peak_);
  }
  ~PeakScope() { Ledger::close(peak_); }
  PeakScope(const PeakScope&) = delete;
  PeakScope& operator=(const PeakScope&) = delete;

  /// So far.
  std::size_t bytes() const noexcept { return read().bytes; }
  /// The split of those bytes when they were first reached.
  ByCategory by_category() const noexcept { return read().by_category; }

 private:
  Peak read() const noexcept { return Ledger::read(peak_); }

  OpenPeak peak_;
};

}  // namespace ebb::memory
