// Most bytes allocated while a scope is alive.
#pragma once

#include "ebb/allocator/caching_allocator.h"
#include "ebb/allocator/ledger.h"
#include "ebb/allocator/no_copy.h"
#include "ebb/allocator/pool.h"

namespace ebb::memory {

/// Measures anything with a ledger: an allocator, a pool, or any type for which a function `Ledger&
/// ledger_of(const T&)` is found by argument-dependent lookup. Bytes allocated earlier count as
/// long as they stay allocated. Scopes nest, overlap and end in any order, in any thread; a scope
/// that outlives its owner keeps its last reading.
class PeakScope : NoCopy {
 public:
  template <class Owner>
  explicit PeakScope(const Owner& owner) {
    ledger_of(owner).open(peak_);
  }
  ~PeakScope() { Ledger::close(peak_); }

  /// Peak so far.
  std::size_t bytes() const noexcept { return read().bytes; }
  /// Split of those bytes when they were first reached.
  ByCategory by_category() const noexcept { return read().by_category; }

 private:
  Peak read() const noexcept { return Ledger::read(peak_); }

  OpenPeak peak_;
};

}  // namespace ebb::memory
