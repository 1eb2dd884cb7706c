// The figures, kept as blocks come and go.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "ebb/allocator/mutex.h"
#include "ebb/allocator/statistics.h"

namespace ebb::memory {

class Ledger;

/// The most bytes allocated at once over some time, and their split at that moment.
struct Peak {
  std::size_t bytes = 0;
  ByCategory by_category{};
};

/// A Peak that is still being watched. At a fixed address while it is.
struct OpenPeak : Peak {
  std::shared_ptr<Mutex> ends;  ///< its ledger's; guards what follows
  Ledger* ledger = nullptr;     ///< null once the ledger has gone: the peak then stays as it was
};

/// The books of one device or one pool. Its lock is the allocator's and guards every member but the
/// two published figures; functions that take no lock themselves say "under the lock".
///
/// Any number of peaks may be watched at once and in any order, at the cost of one: every change
/// compares with a single high-water mark, and only opening, reading and closing a peak folds that
/// mark into all those open and sets it back to now.
class Ledger {
 public:
  /// `ends` is held while a ledger goes and while somebody looks whether it has gone. It outlives
  /// the ledger in the peaks, and is taken, and was made, before the lock.
  Ledger(Mutex& lock, std::shared_ptr<Mutex> ends) noexcept : lock_(lock), ends_(std::move(ends)) {}
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // Under the lock.
  void add(std::size_t requested, std::size_t allocated, Category category) noexcept {
    grow(by_category_[index(category)], allocated);
    come(requested, allocated);
  }
  void remove(std::size_t requested, std::size_t allocated, Category category) noexcept {
    by_category_[index(category)].current -= allocated;
    go(requested, allocated);
  }
  // The same for a block whose bytes are of several categories; `split` adds up to `allocated`.
  void add(std::size_t requested, std::size_t allocated, const ByCategory& split) noexcept {
    for (std::size_t i = 0; i < kCategoryCount; ++i) grow(by_category_[i], split[i]);
    come(requested, allocated);
  }
  void remove(std::size_t requested, std::size_t allocated, const ByCategory& split) noexcept {
    for (std::size_t i = 0; i < kCategoryCount; ++i) by_category_[i].current -= split[i];
    go(requested, allocated);
  }
  void move(std::size_t allocated, Category from, Category to) noexcept {
    if (from == to) return;  // no change, which is what the total adds up
    by_category_[index(from)].current -= allocated;
    grow(by_category_[index(to)], allocated);
  }
  void reserve(std::size_t bytes) noexcept {
    reserved_peak_before_ = reserved_.peak;
    grow(reserved_, bytes);
    published_reserved_.store(reserved_.current, std::memory_order_relaxed);
  }
  void give_back(std::size_t bytes) noexcept {
    reserved_.current -= bytes;
    published_reserved_.store(reserved_.current, std::memory_order_relaxed);
  }
  /// Takes back what was reserved last, as though it had not been.
  void unreserve(std::size_t bytes) noexcept {
    give_back(bytes);
    reserved_.total -= bytes;
    reserved_.peak = std::max(reserved_peak_before_, reserved_.current);
  }
  std::size_t reserved() const noexcept { return reserved_.current; }
  std::size_t requested() const noexcept { return requested_.current; }
  std::size_t allocated() const noexcept { return allocated_.current; }
  std::size_t allocations() const noexcept { return allocations_; }
  /// Everything but the limit, the segments and what the device says.
  Stats stats() noexcept;
  void reset_peaks() noexcept;

  // These take the lock; the last two on any thread, whether or not the ledger has gone meanwhile.
  void open(OpenPeak& peak);
  static void close(OpenPeak& peak) noexcept;
  static Peak read(const OpenPeak& peak) noexcept;

  // From any thread, without the lock.
  std::size_t published_allocated() const noexcept {
    return published_allocated_.load(std::memory_order_relaxed);
  }
  std::size_t published_reserved() const noexcept {
    return published_reserved_.load(std::memory_order_relaxed);
  }

 private:
  void come(std::size_t requested, std::size_t allocated) noexcept {
    grow(requested_, requested);
    allocated_.current += allocated;
    allocated_.total += allocated;
    ++allocations_;
    if (allocated_.current > mark_.bytes) mark_now();
    published_allocated_.store(allocated_.current, std::memory_order_relaxed);
  }
  void go(std::size_t requested, std::size_t allocated) noexcept {
    requested_.current -= requested;
    allocated_.current -= allocated;
    --allocations_;
    published_allocated_.store(allocated_.current, std::memory_order_relaxed);
  }
  static std::size_t index(Category category) noexcept {
    return static_cast<std::size_t>(category);
  }
  static void grow(Figure& figure, std::size_t bytes) noexcept {
    figure.current += bytes;
    figure.total += bytes;
    figure.peak = std::max(figure.peak, figure.current);
  }
  void mark_now() noexcept {
    mark_.bytes = allocated_.current;
    for (std::size_t i = 0; i < kCategoryCount; ++i) {
      mark_.by_category[i] = by_category_[i].current;
    }
  }
  void fold() noexcept;

  Mutex& lock_;
  const std::shared_ptr<Mutex> ends_;
  Figure requested_;
  Figure allocated_;  // its peak is not kept here: see mark_ and since_reset_
  Figure reserved_;
  std::size_t reserved_peak_before_ = 0;  // that of the last reserve()
  std::array<Figure, kCategoryCount> by_category_;
  std::size_t allocations_ = 0;
  Peak mark_;         // the peak since the last fold
  Peak since_reset_;  // the peak since reset_peaks(), up to the last fold
  std::vector<OpenPeak*> open_;
  std::atomic<std::size_t> published_allocated_ = 0;
  std::atomic<std::size_t> published_reserved_ = 0;
};

}  // namespace ebb::memory
