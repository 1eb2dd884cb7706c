// Figures, updated as blocks come and go.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "ebb/allocator/mutex.h"
#include "ebb/allocator/no_copy.h"
#include "ebb/allocator/statistics.h"

namespace ebb::memory {

class Ledger;

/// Most bytes allocated at once over some time, and their split at that moment.
struct Peak {
  std::size_t bytes = 0;
  ByCategory by_category{};
};

/// A Peak that is still being measured. Must not move meanwhile.
struct OpenPeak : Peak {
  std::shared_ptr<Mutex> ends;  ///< the ledger's; guards the next member
  Ledger* ledger = nullptr;     ///< null once the ledger has ended: the peak then stays as it was
};

/// The figures of one device or one pool. Its lock is the allocator's and guards every member but
/// the two published figures. Functions under "Under the lock" do not take it themselves.
///
/// Any number of peaks can be open at once, in any order, at the cost of one. Every change compares
/// with a single high-water mark. Only opening, reading and closing a peak folds that mark into all
/// open peaks and resets it to the current bytes.
class Ledger : NoCopy {
 public:
  /// `ends` is held while a ledger ends and while a peak checks whether its ledger has ended. Open
  /// peaks keep it alive beyond the ledger. It is taken, and must be constructed, before `lock`.
  Ledger(Mutex& lock, std::shared_ptr<Mutex> ends) noexcept : lock_(lock), ends_(std::move(ends)) {}
  ~Ledger();

  // Under the lock.
  void add(std::size_t requested, std::size_t allocated, Category category) noexcept {
    grow(by_category_[index(category)], allocated);
    come(requested, allocated);
  }
  void remove(std::size_t requested, std::size_t allocated, Category category) noexcept {
    by_category_[index(category)].current -= allocated;
    go(requested, allocated);
  }
  // For a block of several categories; `split` adds up to `allocated`.
  void add(std::size_t requested, std::size_t allocated, const ByCategory& split) noexcept {
    for (std::size_t i = 0; i < kCategoryCount; ++i) grow(by_category_[i], split[i]);
    come(requested, allocated);
  }
  void remove(std::size_t requested, std::size_t allocated, const ByCategory& split) noexcept {
    for (std::size_t i = 0; i < kCategoryCount; ++i) by_category_[i].current -= split[i];
    go(requested, allocated);
  }
  void move(std::size_t allocated, Category from, Category to) noexcept {
    if (from == to) return;  // no change; it must not add to the total
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
  /// Undoes the last reserve(), in the peak and the total too.
  void unreserve(std::size_t bytes) noexcept {
    give_back(bytes);
    reserved_.total -= bytes;
    reserved_.peak = std::max(reserved_peak_before_, reserved_.current);
  }
  std::size_t reserved() const noexcept { return reserved_.current; }
  std::size_t requested() const noexcept { return requested_.current; }
  std::size_t allocated() const noexcept { return allocated_.current; }
  std::size_t allocations() const noexcept { return allocations_; }
  /// All figures but the limit, the segments and the device's free and total bytes.
  Stats stats() noexcept;
  void reset_peaks() noexcept;

  // These take the lock. The last two may run on any thread, also after the ledger has ended.
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
  Figure allocated_;  // its peak is in mark_ and since_reset_
  Figure reserved_;
  std::size_t reserved_peak_before_ = 0;  // before the last reserve()
  std::array<Figure, kCategoryCount> by_category_;
  std::size_t allocations_ = 0;
  Peak mark_;         // the peak since the last fold
  Peak since_reset_;  // the peak since reset_peaks(), up to the last fold
  std::vector<OpenPeak*> open_;
  std::atomic<std::size_t> published_allocated_ = 0;
  std::atomic<std::size_t> published_reserved_ = 0;
};

}  // namespace ebb::memory
