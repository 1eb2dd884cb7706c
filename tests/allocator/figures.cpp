#include <cstring>
#include <map>
#include <vector>

#include "ebb/allocator/caching_allocator.h"
#include "ebb/allocator/host_source.h"
#include "ebb/allocator/simulated_source.h"
#include "ebb/tests/allocator/model.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

using namespace memory;

// A random program on one allocator, held against the model after every call. Checks are written as
// `if (wrong) FAIL` because a million assertions would take longer than the allocations.
class FiguresProgram {
 public:
  FiguresProgram(std::unique_ptr<MemorySource> source, Profile profile, std::uint64_t seed,
                 bool writes = false)
      : allocator_(std::move(source), std::move(profile)), random_(seed), writes_(writes) {}

  void step() {
    const std::size_t kind = random_.below(1000);
    if (kind < 2)
      release();
    else if (kind < 4)
      change_limit();
    else if (kind < 6)
      allocator_.reset_peaks(), model_.reset_peaks();
    else if (kind < 100)
      recategorise();
    else if (random_.below(kMostLive) < live_.size())
      free(random_.below(live_.size()));
    else
      allocate();
    const Stats stats = allocator_.stats();
    if (!model_.agrees_with(stats)) FAIL("figures differ from the model's");
    if (stats.reserved.current < stats.allocated.current) FAIL("more allocated than reserved");
  }

  void finish() {
    while (!live_.empty()) free(live_.size() - 1);
    const std::size_t reserved = allocator_.reserved_bytes();
    const ReleaseReport report = allocator_.release_cached();
    CHECK(report.returned_bytes == reserved);
    CHECK(report.pinned_bytes == 0);
    CHECK(allocator_.stats().reserved.current == 0);
    CHECK(allocator_.stats().segments == 0);
    CHECK(refused_ > 0);  // else the limits were never felt
  }

  Stats stats() const { return allocator_.stats(); }
  std::size_t refused() const { return refused_; }

 private:
  static constexpr std::size_t kMostLive = 200;
  struct Live {
    Block* block;
    unsigned char pattern;
  };

  void allocate() {
    const std::size_t bytes = random_.bytes();
    const Category category = random_.category();
    const Stats before = allocator_.stats();
    try {
      Block* block = allocator_.allocate({.bytes = bytes, .category = category});
      model_.allocate(bytes, category);
      const std::size_t reserved = allocator_.reserved_bytes();
      if (reserved > before.reserved.current && reserved > limit_) FAIL("went over the limit");
      if (block->requested_bytes() != bytes || block->category() != category) FAIL("wrong block");
      if (block->allocated_bytes() != Model::rounded(bytes)) FAIL("not rounded to 512");
      occupy(block);
      live_.push_back({block, static_cast<unsigned char>(random_.below(256))});
      if (writes_ && bytes) std::memset(block->data(), live_.back().pattern, bytes);
    } catch (const OutOfMemory&) {
      ++refused_;
      const std::size_t least = allocator_.profile().in_pages(Model::rounded(bytes));
      if (allocator_.reserved_bytes() + least <= limit_) FAIL("refused what would have fitted");
    }
  }

  void free(std::size_t index) {
    const auto [block, pattern] = live_[index];
    live_[index] = live_.back();
    live_.pop_back();
    if (writes_) {
      const auto* bytes = static_cast<const unsigned char*>(block->data());
      for (std::size_t i = 0; i < block->requested_bytes(); i += 61) {
        if (bytes[i] != pattern) FAIL("somebody else wrote here");
      }
    }
    ranges_.erase(static_cast<std::byte*>(block->data()));
    model_.free(block->requested_bytes(), block->category());
    allocator_.free(block);
  }

  void recategorise() {
    if (live_.empty()) return;
    Block* block = live_[random_.below(live_.size())].block;
    const Category to = random_.category();
    model_.recategorise(block->requested_bytes(), block->category(), to);
    allocator_.recategorise(block, to);
  }

  void release() {
    const Stats before = allocator_.stats();
    const ReleaseReport report = allocator_.release_cached();
    const Stats after = allocator_.stats();
    if (before.reserved.current - after.reserved.current != report.returned_bytes ||
        after.reserved.current - after.allocated.current != report.pinned_bytes) {
      FAIL("the report of a release does not add up");
    }
  }

  void change_limit() {
    limit_ = random_.one_in(2) ? kNoLimit : random_.below(400 << 20);
    if (limit_ == kNoLimit)
      allocator_.set_limit({});
    else
      allocator_.set_limit(limit_);
  }

  void occupy(Block* block) {
    if (block->allocated_bytes() == 0) return;
    auto* data = static_cast<std::byte*>(block->data());
    if (reinterpret_cast<std::uintptr_t>(data) % 512 != 0) FAIL("not aligned to 512");
    const auto next = ranges_.lower_bound(data);
    if (next != ranges_.end() && data + block->allocated_bytes() > next->first) FAIL("overlaps");
    if (next != ranges_.begin()) {
      const auto previous = std::prev(next);
      if (previous->first + previous->second > data) FAIL("overlaps");
    }
    ranges_.emplace(data, block->allocated_bytes());
  }

  CachingAllocator allocator_;
  Model model_;
  Random random_;
  const bool writes_;
  std::vector<Live> live_;
  std::map<std::byte*, std::size_t> ranges_;
  std::size_t limit_ = kNoLimit;
  std::size_t refused_ = 0;
};

constexpr std::size_t kCapacity = std::size_t{1} << 30;

std::unique_ptr<MemorySource> simulated() {
  return std::make_unique<SimulatedSource>(kCapacity, 4096);
}

TEST_CASE("a million random calls leave exactly the figures of a plain model") {
  const bool grows = GENERATE(true, false);
  CAPTURE(grows);
  FiguresProgram program(simulated(), grows ? Profile{} : in_segments(), 1);
  for (int i = 0; i < 500'000; ++i) program.step();
  program.finish();
}

TEST_CASE("what is written into a block of host memory stays until it is freed") {
  const bool grows = GENERATE(true, false);
  CAPTURE(grows);
  FiguresProgram program(std::make_unique<HostSource>(kCapacity), grows ? Profile{} : in_segments(),
                         2, true);
  for (int i = 0; i < 10'000; ++i) program.step();
  program.finish();
}

TEST_CASE("a device and its simulated twin hold the same figures after every call") {
  const bool grows = GENERATE(true, false);
  CAPTURE(grows);
  const Profile profile = grows ? Profile{} : in_segments();
  FiguresProgram host(std::make_unique<HostSource>(kCapacity), profile, 3);
  FiguresProgram twin(simulated(), profile, 3);
  for (int i = 0; i < 10'000; ++i) {
    host.step();
    twin.step();
    Stats a = host.stats(), b = twin.stats();
    a.device_free = b.device_free = a.device_total = b.device_total = 0;  // the devices' own
    if (!(a == b)) FAIL("the twin's figures differ at call " << i);
  }
  CHECK(host.refused() == twin.refused());
  host.finish();
  twin.finish();
}

TEST_CASE("the figures of allocated bytes do not depend on what the cache holds") {
  CachingAllocator fresh(simulated(), Profile{}), used(simulated(), Profile{});
  used.free(used.allocate({.bytes = 9'000'000}));
  used.free(used.allocate({.bytes = 700'000}));
  for (CachingAllocator* allocator : {&fresh, &used}) {
    allocator->reset_peaks();
    Block* a = allocator->allocate({.bytes = 8'999'999});
    Block* b = allocator->allocate({.bytes = 1});
    CHECK(allocator->stats().allocated.peak == 9'000'448 + 512);
    allocator->free(a);
    allocator->free(b);
  }
}

}  // namespace
}  // namespace ebb::tests
