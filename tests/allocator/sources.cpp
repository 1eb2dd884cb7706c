#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ebb/allocator/caching_allocator.h"
#include "ebb/allocator/host_source.h"
#include "ebb/allocator/simulated_source.h"
#include "ebb/tests/allocator/model.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/fault_source.h"

namespace ebb::tests {
namespace {

using namespace memory;

bool is_mapped(void* address) {
  void* const page =
      reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(address) / 4096 * 4096);
  unsigned char is_resident = 0;
  return ::mincore(page, 1, &is_resident) == 0;
}

TEST_CASE("host ranges are unmapped after a release and after a close") {
  const bool grows = GENERATE(true, false);
  CAPTURE(grows);
  CachingAllocator allocator(std::make_unique<HostSource>(), grows ? Profile{} : in_segments());
  Block* cached = allocator.allocate({.bytes = 24 << 20});
  void* in_cache = cached->data();
  const auto pool = allocator.make_pool("session");
  void* in_pool = pool->allocate({.bytes = 100 << 10})->data();
  CHECK(is_mapped(in_cache));
  CHECK(is_mapped(in_pool));
  allocator.free(cached);
  CHECK(is_mapped(in_cache));  // the cache keeps it
  allocator.release_cached();
  CHECK_FALSE(is_mapped(in_cache));
  pool->close();
  CHECK_FALSE(is_mapped(in_pool));
}

TEST_CASE("the host knows how much memory it has") {
  const DeviceMemory memory = HostSource().device_memory();
  CHECK(memory.total > 0);
  CHECK(memory.free > 0);
  CHECK(memory.free <= memory.total);
}

std::size_t resident_pages(void* at, std::size_t pages) {
  std::vector<unsigned char> is_resident(pages);
  REQUIRE(::mincore(at, pages * 4096, is_resident.data()) == 0);
  return static_cast<std::size_t>(
      std::count_if(is_resident.begin(), is_resident.end(), [](auto each) { return each & 1; }));
}

TEST_CASE("what the host has committed is resident, zero, and its own; what it took back is not") {
  HostSource source;
  constexpr std::size_t kPages = 1000, kBytes = kPages * 4096;
  auto* const base = static_cast<std::byte*>(source.reserve(4 * kBytes));
  CHECK(resident_pages(base, 4 * kPages) == 0);
  REQUIRE(source.commit(base + kBytes, kBytes));
  CHECK(resident_pages(base, 4 * kPages) == kPages);
  CHECK(
      std::all_of(base + kBytes, base + 2 * kBytes, [](std::byte b) { return b == std::byte{}; }));
  base[kBytes] = std::byte{1};
  const std::size_t small = 100 * 4096;  // stays part of its mapping
  REQUIRE(source.decommit(base + kBytes, small));
  CHECK(resident_pages(base, 4 * kPages) == kPages - 100);
  REQUIRE(source.commit(base + kBytes, small));
  CHECK(resident_pages(base, 4 * kPages) == kPages);
  CHECK(base[kBytes] == std::byte{0});
  REQUIRE(source.decommit(base + kBytes, kBytes));
  CHECK(resident_pages(base, 4 * kPages) == 0);
  source.unreserve(base, 4 * kBytes);
}

TEST_CASE("a source of given capacity says what it has of that, whatever the machine has") {
  HostSource source(1 << 20);
  CHECK(source.device_memory().total == 1 << 20);
  void* const base = source.reserve(2 << 20);
  REQUIRE(source.commit(base, 1 << 18));
  CHECK(source.device_memory().free == (1 << 20) - (1 << 18));
  CHECK_FALSE(source.commit(static_cast<std::byte*>(base) + (1 << 18), 1 << 20));
  CHECK(source.device_memory().free == (1 << 20) - (1 << 18));
  CHECK(source.capacity_bytes() == 1 << 20);
  REQUIRE(source.decommit(base, 1 << 18));
  source.unreserve(base, 2 << 20);
}

TEST_CASE("a simulated device refuses what is beyond its capacity, unless asked, and remembers") {
  SimulatedSource source(1 << 20, 4096);
  auto* const base = static_cast<std::byte*>(source.reserve(2 << 20));
  REQUIRE(source.commit(base, 1 << 20));
  CHECK(source.device_memory().free == 0);
  CHECK_FALSE(source.commit(base + (1 << 20), 4096));
  CHECK(source.committed_bytes() == 1 << 20);
  CHECK(source.fits());
  CHECK(source.overdraw(4096));
  CHECK(source.commit(base + (1 << 20), 4096));
  CHECK_FALSE(source.fits());
  CHECK(source.committed_bytes() == (1 << 20) + 4096);
  CHECK_FALSE(source.commit(base + (1 << 20) + 4096, 4096));  // overdraw() allowed one request
  CHECK(source.decommit(base, (1 << 20) + 4096));
  CHECK_FALSE(source.fits());
  CHECK(source.device_memory().free == 1 << 20);
}

TEST_CASE("no sum of committed bytes wraps around a simulated device's capacity") {
  SimulatedSource source(1 << 20, 4096);
  CHECK(source.commit(nullptr, 4096));
  CHECK_FALSE(source.commit(nullptr, ~std::size_t{0} - 4095));
  CHECK_FALSE(source.commit(nullptr, std::size_t{1} << 63));
  CHECK(source.committed_bytes() == 4096);
  CHECK(source.decommit(nullptr, 4096));
}

TEST_CASE("simulated ranges never overlap, however often the address range is used up") {
  constexpr std::size_t kHuge = std::size_t{1} << 57;  // a few of these exhaust it
  SimulatedSource source(1 << 20, 4096);
  std::map<std::uintptr_t, std::size_t> live;
  Random random(12);
  std::size_t served = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (random.below(40) < live.size()) {
      auto victim = std::next(live.begin(), static_cast<std::ptrdiff_t>(random.below(live.size())));
      source.unreserve(reinterpret_cast<void*>(victim->first), victim->second);
      live.erase(victim);
      continue;
    }
    const std::size_t bytes = 4096 * (1 + random.below(random.one_in(8) ? kHuge / 4096 : 100));
    void* base = source.reserve(bytes);
    if (!base) continue;
    ++served;
    const auto begin = reinterpret_cast<std::uintptr_t>(base);
    const auto next = live.lower_bound(begin);
    if (next != live.end() && begin + bytes > next->first) FAIL("overlaps");
    if (next != live.begin() && std::prev(next)->first + std::prev(next)->second > begin) {
      FAIL("overlaps");
    }
    live.emplace(begin, bytes);
  }
  CHECK(served > 8'000);
}

// A process with limited address space, as under RLIMIT_AS.
class NarrowSource final : public ForwardingSource {
 public:
  explicit NarrowSource(std::size_t bytes) noexcept
      : ForwardingSource(std::make_shared<SimulatedSource>(std::size_t{1} << 30, 4096)),
        left(bytes) {}
  void* reserve(std::size_t bytes) noexcept override {
    if (bytes > left) return nullptr;
    left -= bytes;
    return ForwardingSource::reserve(bytes);
  }
  void unreserve(void* base, std::size_t bytes) noexcept override {
    left += bytes;
    ForwardingSource::unreserve(base, bytes);
  }

  std::size_t left;
};

TEST_CASE("where addresses are few a range takes some of them and leaves most to others") {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  auto owned = std::make_unique<NarrowSource>(512 * kMiB + 4096);
  const NarrowSource& source = *owned;
  CachingAllocator allocator(std::move(owned), Profile{});
  Block* small = allocator.allocate({.bytes = 100});
  CHECK(source.left == 448 * kMiB + 4096);
  Block* large = allocator.allocate({.bytes = 200 * kMiB});  // all that it needs, and no more
  CHECK(source.left == 248 * kMiB + 4096);
  constexpr const char* kWhy = "no addresses are left to map";
  constexpr const char* kFits = "at most 248.0 MiB in one request";
  const auto pool = allocator.make_pool("session");
  CHECK_ERROR(allocator.allocate({.bytes = 300 * kMiB}), OutOfMemory, kWhy);
  CHECK_ERROR(allocator.allocate({.bytes = 300 * kMiB}), OutOfMemory, kFits);
  CHECK_ERROR(pool->allocate({.bytes = 249 * kMiB}), OutOfMemory, kFits);
  allocator.free(allocator.allocate({.bytes = 248 * kMiB + 4096}));  // what was left, to the page
  allocator.release_cached();
  Block* first = pool->allocate({.bytes = 4096}, {}, true);  // with room to grow
  CHECK(source.left == 248 * kMiB + 4096 - 4 * 4096);
  pool->free(first);
  Block* arena = pool->allocate({.bytes = 248 * kMiB}, {}, true);  // without room to grow
  CHECK(source.left == 4096);
  CHECK_FALSE(pool->grow(arena, {.bytes = 248 * kMiB + 1}, {}));
  CHECK_ERROR(pool->allocate({.bytes = 4097}), OutOfMemory, kWhy);
  CHECK_ERROR(pool->preallocate(256 * kMiB), OutOfMemory, kWhy);
  pool->close();
  for (Block* block : {small, large}) allocator.free(block);
  allocator.release_cached();
  CHECK(source.left == 512 * kMiB + 4096);
}

TEST_CASE("a profile that contradicts itself or its source is refused") {
  const auto with = [](Profile profile, std::size_t page_bytes) {
    CachingAllocator(std::make_unique<SimulatedSource>(1 << 20, page_bytes), std::move(profile));
  };
  with(Profile{}, 4096);
  Profile odd_rounding, odd_page, small_segment;
  odd_rounding.rounding = 500;
  odd_page.page_bytes = 1000;
  small_segment.small_segment = 4096;
  CHECK_ERROR(with(odd_rounding, 4096), Error, "rounding has to be a power of two");
  CHECK_ERROR(with(odd_page, 4096), Error, "page_bytes");
  CHECK_ERROR(with(small_segment, 4096), Error, "small_request has to fit");
  CHECK_ERROR(with(Profile{}, 65536), Error, "no multiple of the source's 65536");
}

TEST_CASE("without cuts every block is a segment of its own, and is used again for its own size") {
  Profile profile = in_segments();
  profile.page_bytes = profile.small_segment = profile.medium_segment = profile.large_multiple =
      profile.rounding;
  profile.small_request = profile.medium_request = 0;
  profile.cuts = false;
  constexpr std::size_t kCapacity = std::size_t{1} << 30;
  CachingAllocator allocator(std::make_unique<SimulatedSource>(kCapacity, profile.page_bytes),
                             profile);
  Random random(1);
  std::map<std::size_t, std::size_t> most;  // blocks at a time of each size
  std::map<std::size_t, std::vector<Block*>> live;
  for (int i = 0; i < 2000; ++i) {
    const std::size_t bytes = profile.rounded(1 + random.below(8192));
    std::vector<Block*>& blocks = live[bytes];
    if (!blocks.empty() && random.one_in(2)) {
      allocator.free(blocks.back());
      blocks.pop_back();
    } else {
      blocks.push_back(allocator.allocate({.bytes = bytes}));
      most[bytes] = std::max(most[bytes], blocks.size());
    }
  }
  std::size_t reserved = 0;
  for (const auto& [bytes, blocks] : most) reserved += bytes * blocks;
  CHECK(allocator.stats().reserved.current == reserved);
  // Free blocks of other sizes are given back before a request is refused.
  for (auto& [bytes, blocks] : live)
    for (Block* block : std::exchange(blocks, {})) allocator.free(block);
  Block* all = allocator.allocate({.bytes = kCapacity});
  CHECK(allocator.stats().reserved.current == kCapacity);
  allocator.free(all);
  profile.large_multiple = 4096;
  CHECK_ERROR(CachingAllocator(std::make_unique<SimulatedSource>(kCapacity, 512), profile), Error,
              "without cuts");
}

// A process has 65,530 mappings, and malloc and threads need some of them.
TEST_CASE("pages that go back one by one leave the process's mappings to others") {
  const auto mappings = [] {
    std::ifstream maps("/proc/self/maps");
    std::size_t count = 0;
    for (std::string line; std::getline(maps, line);) ++count;
    return count;
  };
  CachingAllocator allocator(std::make_unique<HostSource>(), Profile{});
  std::vector<Block*> blocks(20'000);
  for (Block*& block : blocks) block = allocator.allocate({.bytes = 4096});
  const std::size_t before = mappings();
  for (std::size_t i = 0; i < blocks.size(); i += 2) allocator.free(blocks[i]);
  CHECK(allocator.release_cached().returned_bytes >= 9'999 * 4096);
  CHECK(mappings() < before + 100);
  for (std::size_t i = 1; i < blocks.size(); i += 2) allocator.free(blocks[i]);
}

}  // namespace
}  // namespace ebb::tests
