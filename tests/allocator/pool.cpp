#include "ebb/allocator/pool.h"

#include <algorithm>
#include <array>
#include <vector>

#include "ebb/allocator/caching_allocator.h"
#include "ebb/allocator/host_source.h"
#include "ebb/allocator/simulated_source.h"
#include "ebb/tests/allocator/model.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

using namespace memory;

std::unique_ptr<CachingAllocator> simulated() {
  return std::make_unique<CachingAllocator>(
      std::make_unique<SimulatedSource>(std::size_t{1} << 30, 4096), Profile{});
}

TEST_CASE("a thousand small pools reserve what they use, rounded to a page each") {
  const auto allocator = simulated();
  std::vector<std::unique_ptr<Pool>> pools;
  for (int i = 0; i < 1000; ++i) {
    pools.push_back(allocator->make_pool("small"));
    pools.back()->allocate({.bytes = 5000});
  }
  CHECK(allocator->reserved_bytes() == 1000 * 8192);
  CHECK(allocator->allocated_bytes() == 1000 * 5120);
  pools.clear();
  CHECK(allocator->reserved_bytes() == 0);
}

TEST_CASE("pools close in any order and give back exactly their own bytes") {
  Random random(9);
  for (int round = 0; round < 20; ++round) {
    const auto allocator = simulated();
    Block* shared = allocator->allocate({.bytes = 1000});
    std::vector<std::unique_ptr<Pool>> pools;
    std::vector<std::vector<Block*>> blocks(8);
    for (auto& of_pool : blocks) {
      pools.push_back(allocator->make_pool("session"));
      for (int i = 0; i < 10; ++i) {
        of_pool.push_back(pools.back()->allocate({.bytes = random.bytes()}));
        if (random.one_in(3)) {
          pools.back()->free(of_pool.back());
          of_pool.pop_back();
        }
      }
    }
    while (!pools.empty()) {
      const std::size_t which = random.below(pools.size());
      std::swap(pools[which], pools.back());
      std::swap(blocks[which], blocks[pools.size() - 1]);
      const Stats own = pools.back()->stats();
      const Stats before = allocator->stats();
      const CloseReport report = pools.back()->close();
      CHECK(report.freed_blocks == blocks[pools.size() - 1].size());
      CHECK(report.freed_bytes == own.allocated.current);
      CHECK(report.returned_bytes == own.reserved.current);
      const Stats after = allocator->stats();
      CHECK(before.reserved.current - after.reserved.current == own.reserved.current);
      CHECK(before.allocated.current - after.allocated.current == own.allocated.current);
      CHECK(pools.back()->close().returned_bytes == 0);
      CHECK_ERROR(pools.back()->allocate({.bytes = 1}), Error, "pool session is closed");
      pools.pop_back();
      for (std::size_t i = 0; i < pools.size(); ++i) {
        for (const Block* block : blocks[i]) {
          CHECK((block->data() != nullptr) == (block->requested_bytes() > 0));
        }
      }
    }
    CHECK(allocator->allocated_bytes() == 1024);
    allocator->free(shared);
  }
}

TEST_CASE("the figures of a device are the sums over its pools and its cache") {
  const auto allocator = simulated();
  const auto a = allocator->make_pool("a");
  const auto b = allocator->make_pool("b");
  Model device, of_a, of_b;
  Random random(10);
  struct Owned {
    Block* block;
    int owner;
  };
  std::vector<Owned> live;
  for (int i = 0; i < 20'000; ++i) {
    if (random.below(60) < live.size()) {
      std::swap(live[random.below(live.size())], live.back());
      const auto [block, owner] = live.back();
      live.pop_back();
      const std::size_t bytes = block->requested_bytes();
      const Category to = random.category();
      for (Model* model : {&device, owner == 1 ? &of_a : &of_b}) {
        if (model == &device || owner > 0) {
          model->recategorise(bytes, block->category(), to);
          model->free(bytes, to);
        }
      }
      if (owner == 0) allocator->recategorise(block, to), allocator->free(block);
      if (owner == 1) a->recategorise(block, to), a->free(block);
      if (owner == 2) b->recategorise(block, to), b->free(block);
    } else {
      const Request request{.bytes = random.bytes(), .category = random.category()};
      const int owner = static_cast<int>(random.below(3));
      device.allocate(request.bytes, request.category);
      if (owner == 1) of_a.allocate(request.bytes, request.category);
      if (owner == 2) of_b.allocate(request.bytes, request.category);
      live.push_back({owner == 0   ? allocator->allocate(request)
                      : owner == 1 ? a->allocate(request)
                                   : b->allocate(request),
                      owner});
    }
    if (!device.agrees_with(allocator->stats())) FAIL("the device's figures are wrong");
    if (!of_a.agrees_with(a->stats())) FAIL("a's figures are wrong");
    if (!of_b.agrees_with(b->stats())) FAIL("b's figures are wrong");
  }
  for (const auto& [block, owner] : live) {
    if (owner == 0) allocator->free(block);
  }
  a->close();
  b->close();
  allocator->release_cached();
  CHECK(allocator->stats().reserved.current == 0);
}

TEST_CASE("a pool's limit and the device's limit both hold") {
  const auto allocator = simulated();
  const auto pool = allocator->make_pool("session", 64 << 10);
  pool->allocate({.bytes = 60 << 10});
  try {
    pool->allocate({.bytes = 8 << 10});
    FAIL("the pool's limit did not hold");
  } catch (const OutOfMemory& error) {
    CHECK(error.reason() == OutOfMemory::Reason::pool_limit);
    CHECK(error.limit_bytes() == 64 << 10);
  }
  pool->set_limit({});
  pool->allocate({.bytes = 8 << 10});
  allocator->set_limit(pool->reserved_bytes() + 4096);
  pool->allocate({.bytes = 1});
  try {
    pool->allocate({.bytes = 1});
    FAIL("the device's limit did not hold");
  } catch (const OutOfMemory& error) {
    CHECK(error.reason() == OutOfMemory::Reason::device_limit);
  }
}

TEST_CASE("a pool takes room from the shared cache when the device's limit is in the way") {
  const auto allocator = simulated();
  allocator->set_limit(4 << 20);
  allocator->free(allocator->allocate({.bytes = 1000}));
  CHECK(allocator->reserved_bytes() == 2 << 20);
  const auto pool = allocator->make_pool("session");
  pool->allocate({.bytes = 3 << 20});
  CHECK(allocator->reserved_bytes() == 3 << 20);
}

// Addresses that have room behind them, without memory.
class RoomySource final : public MemorySource {
 public:
  void* map(std::size_t) noexcept override {
    return reinterpret_cast<void*>(next_ += std::uintptr_t{1} << 32);  // NOLINT
  }
  void unmap(void*, std::size_t) noexcept override {}
  bool grow(void*, std::size_t, std::size_t new_bytes) noexcept override {
    return new_bytes <= std::size_t{1} << 32;
  }
  std::size_t page_bytes() const noexcept override { return 4096; }
  DeviceMemory device_memory() const noexcept override { return {}; }

 private:
  std::uintptr_t next_ = std::uintptr_t{1} << 40;
};

TEST_CASE("a block that grows keeps its address, and the figures are those of a new one") {
  ByCategory before{}, after{};
  before[static_cast<std::size_t>(Category::activation)] = 5120;
  after[static_cast<std::size_t>(Category::activation)] = 60000 - 60000 % 512;
  after[static_cast<std::size_t>(Category::workspace)] = 512;
  const Request small{5000, Category::activation}, large{60000, Category::activation};

  CachingAllocator grown(std::make_unique<RoomySource>(), Profile{});
  const auto pool = grown.make_pool("session");
  Block* const block = pool->allocate(small, before);
  void* const at = block->data();
  REQUIRE(pool->grow(block, large, after));
  CHECK(block->data() == at);
  CHECK(block->requested_bytes() == 60000);

  CachingAllocator fresh(std::make_unique<RoomySource>(), Profile{});
  const auto other = fresh.make_pool("session");
  other->free(other->allocate(small, before));
  other->allocate(large, after);
  for (const auto& [a, b] :
       {std::pair{grown.stats(), fresh.stats()}, std::pair{pool->stats(), other->stats()}}) {
    CHECK(a.allocated.current == b.allocated.current);
    CHECK(a.allocated.peak == b.allocated.peak);
    CHECK(a.allocated.total == b.allocated.total);
    CHECK(a.requested.current == b.requested.current);
    CHECK(a.reserved.current == b.reserved.current);
    CHECK(a.reserved.peak == b.reserved.peak);
    for (std::size_t i = 0; i < kCategoryCount; ++i)
      CHECK(a.by_category[i].current == b.by_category[i].current);
  }
  CHECK(pool->close().returned_bytes == 61440);
  CHECK(grown.reserved_bytes() == 0);
}

TEST_CASE("a block that a limit or the source keeps from growing stays as it was") {
  ByCategory split{}, more{};
  split[0] = 4096;
  more[0] = 8192;
  CachingAllocator allocator(std::make_unique<RoomySource>(), Profile{});
  const auto pool = allocator.make_pool("session");
  Block* const block = pool->allocate({4096}, split);
  const auto refuses = [&] {
    const bool grew = pool->grow(block, {8192}, more);
    return !grew && block->allocated_bytes() == 4096 && pool->reserved_bytes() == 4096 &&
           allocator.allocated_bytes() == 4096;
  };
  pool->set_limit(8191);
  CHECK(refuses());
  pool->set_limit({});
  allocator.set_limit(8191);
  CHECK(refuses());
  allocator.set_limit({});
  CHECK(!pool->grow(block, {std::size_t{1} << 33}, more));
  CHECK(pool->grow(block, {8192}, more));
}

TEST_CASE("what the host maps grows where it is or not at all") {
  HostSource source;
  const std::size_t page = source.page_bytes();
  // The upper half of a mapping given back leaves room behind the lower.
  auto* const base = static_cast<std::byte*>(source.map(8 * page));
  REQUIRE(base != nullptr);
  source.unmap(base + 4 * page, 4 * page);
  base[0] = std::byte{7};
  REQUIRE(source.grow(base, 4 * page, 8 * page));
  CHECK(base[0] == std::byte{7});
  base[8 * page - 1] = std::byte{1};
  CHECK(!source.grow(base, 8 * page, std::size_t{1} << 46));
  source.unmap(base, 8 * page);
}

}  // namespace
}  // namespace ebb::tests
