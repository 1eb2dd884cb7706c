// A plain model of the allocator's figures, and random requests to compare them on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

#include "ebb/allocator/caching_allocator.h"

namespace ebb::tests {

using memory::Block;
using memory::Category;
using memory::Figure;
using memory::Stats;

/// Profile of a device that cannot reserve addresses.
inline memory::Profile in_segments() {
  memory::Profile profile;
  profile.grows = false;
  return profile;
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::size_t below(std::size_t bound) { return engine_() % bound; }
  bool one_in(std::size_t count) { return below(count) == 0; }
  Category category() { return static_cast<Category>(below(memory::kCategoryCount)); }
  /// Zero, tiny, small, medium and large sizes, up to 24 MiB.
  std::size_t bytes() {
    const std::size_t kind = below(100);
    if (kind < 2) return 0;
    if (kind < 50) return 1 + below(4096);
    if (kind < 85) return 1 + below(1 << 20);
    if (kind < 97) return 1 + below(10 << 20);
    return 1 + below(24 << 20);
  }

 private:
  std::mt19937_64 engine_;
};

/// Keeps requested and allocated bytes, categories, peaks and counts. Reserved bytes depend on the
/// source.
struct Model {
  Stats stats;

  static std::size_t rounded(std::size_t bytes) { return (bytes + 511) / 512 * 512; }
  static void add(Figure& figure, std::size_t bytes) {
    figure.current += bytes;
    figure.total += bytes;
    figure.peak = std::max(figure.peak, figure.current);
  }
  Figure& category(Category category) {
    return stats.by_category[static_cast<std::size_t>(category)];
  }
  void allocate(std::size_t bytes, Category of) {
    const std::size_t peak = stats.allocated.peak;
    add(stats.requested, bytes);
    add(stats.allocated, rounded(bytes));
    add(category(of), rounded(bytes));
    ++stats.allocations;
    if (stats.allocated.peak == peak) return;
    for (std::size_t i = 0; i < memory::kCategoryCount; ++i) {
      stats.at_peak[i] = stats.by_category[i].current;
    }
  }
  void free(std::size_t bytes, Category of) {
    stats.requested.current -= bytes;
    stats.allocated.current -= rounded(bytes);
    category(of).current -= rounded(bytes);
    --stats.allocations;
  }
  void recategorise(std::size_t bytes, Category from, Category to) {
    if (from == to) return;
    category(from).current -= rounded(bytes);
    add(category(to), rounded(bytes));
  }
  void reset_peaks() {
    stats.requested.peak = stats.requested.current;
    stats.allocated.peak = stats.allocated.current;
    for (std::size_t i = 0; i < memory::kCategoryCount; ++i) {
      stats.by_category[i].peak = stats.at_peak[i] = stats.by_category[i].current;
    }
  }
  /// A block whose bytes are of several categories.
  void count(std::size_t bytes, const memory::ByCategory& split) {
    stats.requested.current += bytes;
    stats.allocated.current += rounded(bytes);
    for (std::size_t i = 0; i < memory::kCategoryCount; ++i)
      stats.by_category[i].current += split[i];
    ++stats.allocations;
  }
  /// Like agrees_with(), for current values only, without peaks.
  bool is_now(const Stats& measured) const {
    for (std::size_t i = 0; i < memory::kCategoryCount; ++i)
      if (measured.by_category[i].current != stats.by_category[i].current) return false;
    return measured.requested.current == stats.requested.current &&
           measured.allocated.current == stats.allocated.current &&
           measured.allocations == stats.allocations;
  }
  /// Whether the measured figures are the model's. Ignores figures that the model does not keep.
  bool agrees_with(const Stats& measured) const {
    return measured.requested == stats.requested && measured.allocated == stats.allocated &&
           measured.by_category == stats.by_category && measured.at_peak == stats.at_peak &&
           measured.allocations == stats.allocations;
  }
};

}  // namespace ebb::tests
