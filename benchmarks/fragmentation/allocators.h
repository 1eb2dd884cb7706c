// The contestants: ebb's allocator, best fit in one range, and malloc.
#pragma once

#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "ebb/allocator/caching_allocator.h"
#include "ebb/allocator/simulated_source.h"

namespace ebb::benchmarks {

/// ebb's allocator, on addresses without memory: its figures do not depend on memory.
class Ebb {
 public:
  using Handle = memory::Block*;
  Handle allocate(std::size_t bytes) { return allocator_.allocate({.bytes = bytes}); }
  void free(Handle block) { allocator_.free(block); }
  void start_repetition() { allocator_.reset_peaks(); }
  std::size_t peak() const { return allocator_.stats().reserved.peak; }
  std::size_t reserved() const { return allocator_.reserved_bytes(); }
  void release() { allocator_.release_cached(); }

 private:
  static constexpr std::size_t kCapacity = std::size_t{1} << 40;
  memory::Profile profile_{};
  memory::CachingAllocator allocator_{
      std::make_unique<memory::SimulatedSource>(kCapacity, profile_.page_bytes), profile_};
};

/// The reference: best fit in one range. Takes the smallest gap that is large enough, and of equal
/// ones the lowest; merges free neighbours at once. On a miss the range grows by just the missing
/// bytes, in pages; nothing is ever given back. Rounds as ebb does.
class BestFit {
 public:
  using Handle = std::pair<std::size_t, std::size_t>;  // offset and bytes

  Handle allocate(std::size_t bytes) {
    bytes = round_up(bytes, 512);
    auto gap = by_size_.lower_bound({bytes, 0});
    if (gap == by_size_.end()) {
      grow(bytes);
      gap = by_size_.lower_bound({bytes, 0});
    }
    const auto [gap_bytes, offset] = *gap;
    remove(offset, gap_bytes);
    if (gap_bytes > bytes) add(offset + bytes, gap_bytes - bytes);
    return {offset, bytes};
  }
  void free(Handle block) {
    auto [offset, bytes] = block;
    const auto next = by_offset_.lower_bound(offset);
    const auto after = next == by_offset_.end() ? Handle{} : Handle(*next);
    const auto before = next == by_offset_.begin() ? Handle{} : Handle(*std::prev(next));
    if (after.second > 0 && after.first == offset + bytes) {
      remove(after.first, after.second);
      bytes += after.second;
    }
    if (before.second > 0 && before.first + before.second == offset) {
      remove(before.first, before.second);
      offset = before.first;
      bytes += before.second;
    }
    add(offset, bytes);
  }
  void start_repetition() {}
  std::size_t peak() const { return end_; }
  std::size_t reserved() const { return end_; }
  void release() {}

 private:
  static std::size_t round_up(std::size_t bytes, std::size_t multiple) {
    return (bytes + multiple - 1) / multiple * multiple;
  }
  void add(std::size_t offset, std::size_t bytes) {
    by_offset_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  void remove(std::size_t offset, std::size_t bytes) {
    by_offset_.erase(offset);
    by_size_.erase({bytes, offset});
  }
  void grow(std::size_t bytes) {
    std::size_t offset = end_, free_bytes = 0;
    if (!by_offset_.empty()) {
      const auto last = *by_offset_.rbegin();
      if (last.first + last.second == end_) std::tie(offset, free_bytes) = last;
    }
    if (free_bytes > 0) remove(offset, free_bytes);
    end_ += round_up(bytes - free_bytes, 4096);
    add(offset, end_ - offset);
  }

  std::map<std::size_t, std::size_t> by_offset_;
  std::set<std::pair<std::size_t, std::size_t>> by_size_;
  std::size_t end_ = 0;
};

/// Memory of this process that has become resident since construction. Touches every page of a
/// block. For a process that has used little of malloc before.
class Malloc {
 public:
  using Handle = void*;
  Malloc() : before_(resident("VmRSS:")) {}

  Handle allocate(std::size_t bytes) {
    auto* base = static_cast<volatile char*>(std::malloc(bytes));
    if (!base) std::abort();
    for (std::size_t i = 0; i < bytes; i += 4096) base[i] = 1;
    base[bytes - 1] = 1;
    return const_cast<char*>(base);
  }
  void free(Handle block) { std::free(block); }
  /// Resets the kernel's peak of resident memory.
  void start_repetition() {
    std::FILE* file = std::fopen("/proc/self/clear_refs", "w");
    if (!file || std::fputs("5", file) < 0 || std::fclose(file) != 0) std::abort();
  }
  std::size_t peak() const { return grown("VmHWM:"); }
  std::size_t reserved() const { return grown("VmRSS:"); }
  void release() { ::malloc_trim(0); }

 private:
  static std::size_t resident(const char* key) {
    std::FILE* file = std::fopen("/proc/self/status", "r");
    if (!file) std::abort();
    char line[256];
    std::size_t kibibytes = 0;
    while (std::fgets(line, sizeof line, file)) {
      if (std::strncmp(line, key, std::strlen(key)) == 0) {
        kibibytes = std::strtoull(line + std::strlen(key), nullptr, 10);
      }
    }
    std::fclose(file);
    return kibibytes * 1024;
  }
  std::size_t grown(const char* key) const {
    const std::size_t now = resident(key);
    return now > before_ ? now - before_ : 0;
  }

  const std::size_t before_;
};

}  // namespace ebb::benchmarks
