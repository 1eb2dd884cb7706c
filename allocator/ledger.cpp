#include "ebb/allocator/ledger.h"

namespace ebb::memory {

Ledger::~Ledger() {
  const Guard ends(*ends_);
  const Guard guard(lock_);
  fold();
  for (OpenPeak* peak : open_) peak->ledger = nullptr;
}

Stats Ledger::stats() noexcept {
  fold();
  Stats stats;
  stats.requested = requested_;
  stats.allocated = allocated_;
  stats.allocated.peak = since_reset_.bytes;
  stats.reserved = reserved_;
  stats.by_category = by_category_;
  stats.at_peak = since_reset_.by_category;
  stats.allocations = allocations_;
  return stats;
}

void Ledger::reset_peaks() noexcept {
  fold();
  since_reset_ = mark_;
  requested_.peak = requested_.current;
  reserved_.peak = reserved_.current;
  reserved_peak_before_ = 0;
  for (Figure& figure : by_category_) figure.peak = figure.current;
}

void Ledger::open(OpenPeak& peak) {
  const Guard guard(lock_);
  open_.push_back(&peak);
  fold();
  static_cast<Peak&>(peak) = mark_;
  peak.ends = ends_;
  peak.ledger = this;
}

void Ledger::close(OpenPeak& peak) noexcept {
  const Guard ends(*peak.ends);
  if (!peak.ledger) return;
  const Guard guard(peak.ledger->lock_);
  peak.ledger->fold();
  std::erase(peak.ledger->open_, &peak);
  peak.ledger = nullptr;
}

Peak Ledger::read(const OpenPeak& peak) noexcept {
  const Guard ends(*peak.ends);
  if (!peak.ledger) return peak;
  const Guard guard(peak.ledger->lock_);
  peak.ledger->fold();
  return peak;
}

void Ledger::fold() noexcept {
  if (mark_.bytes > since_reset_.bytes) since_reset_ = mark_;
  for (OpenPeak* peak : open_)
    if (mark_.bytes > peak->bytes) static_cast<Peak&>(*peak) = mark_;
  mark_now();
}

}  // namespace ebb::memory
