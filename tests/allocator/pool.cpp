#include "ebb/allocator/pool.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "ebb/allocator/caching_allocator.h"
#include "ebb/allocator/host_source.h"
#include "ebb/tests/allocator/faulty.h"
#include "ebb/tests/allocator/model.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

using namespace memory;

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

TEST_CASE("a pool's limit and the device's limit both hold") {
  const auto allocator = simulated();
  const auto pool = allocator->make_pool("session", 64 << 10);
  pool->allocate({.bytes = 60 << 10});
  const OutOfMemory error = refusal_of([&] { pool->allocate({.bytes = 8 << 10}); });
  CHECK(error.reason() == OutOfMemory::Reason::pool_limit);
  CHECK(error.limit_bytes() == 64 << 10);
  pool->set_limit({});
  pool->allocate({.bytes = 8 << 10});
  allocator->set_limit(pool->reserved_bytes() + 4096);
  pool->allocate({.bytes = 1});
  CHECK_ERROR(pool->allocate({.bytes = 1}), OutOfMemory, "the device's limit leaves no room");
}

TEST_CASE("a pool takes room from the shared cache when the device's limit is in the way") {
  const bool grows = GENERATE(true, false);
  CAPTURE(grows);
  const auto allocator = simulated(grows ? Profile{} : in_segments());
  allocator->set_limit(4 << 20);
  allocator->free(allocator->allocate({.bytes = 1000}));
  CHECK(allocator->reserved_bytes() == 2 << 20);
  const auto pool = allocator->make_pool("session");
  pool->allocate({.bytes = 3 << 20});
  CHECK(allocator->reserved_bytes() == (grows ? 4u : 3u) << 20);  // pages go back, or segments
}

constexpr ByCategory split_of(std::size_t activation, std::size_t workspace) {
  ByCategory split{};
  split[static_cast<std::size_t>(Category::activation)] = activation;
  split[static_cast<std::size_t>(Category::workspace)] = workspace;
  return split;
}

TEST_CASE("a block that grows keeps its address, and the figures are those of a new one") {
  const ByCategory before = split_of(5120, 0), after = split_of(30000 - 30000 % 512, 512);
  const Request small{5000, Category::activation}, large{30000, Category::activation};

  const auto grown = simulated();
  const auto pool = grown->make_pool("session");
  Block* const block = pool->allocate(small, {before, {}}, true);
  void* const at = block->data();
  REQUIRE(pool->grow(block, large, {after, {}}));
  CHECK(block->data() == at);
  CHECK(block->requested_bytes() == 30000);

  const auto fresh = simulated();
  const auto other = fresh->make_pool("session");
  other->free(other->allocate(small, {before, {}}));
  other->allocate(large, {after, {}});
  for (const auto& [a, b] :
       {std::pair{grown->stats(), fresh->stats()}, std::pair{pool->stats(), other->stats()}}) {
    CHECK(Model{a}.is_now(b));
    CHECK(a.allocated == b.allocated);
    CHECK(a.reserved.current == b.reserved.current);
    CHECK(a.reserved.peak == b.reserved.peak);
  }
  CHECK(pool->close().returned_bytes == 32768);
  CHECK(grown->reserved_bytes() == 0);
}

TEST_CASE("a block that cannot grow leaves its pool what it has reserved ahead") {
  const auto allocator = simulated();
  const auto pool = allocator->make_pool("session", 8 << 20);
  pool->preallocate(8 << 20);
  Block* const block = pool->allocate({4 << 20}, {split_of(4 << 20, 0), {}}, true);
  CHECK_THROWS_AS(pool->grow(block, {12 << 20}, {split_of(12 << 20, 0), {}}), OutOfMemory);
  CHECK(pool->reserved_bytes() == 8 << 20);
  CHECK(pool->grow(block, {8 << 20}, {split_of(8 << 20, 0), {}}));
  CHECK(pool->reserved_bytes() == 8 << 20);
}

TEST_CASE("memory reserved ahead that a device refuses at a new place stays at the old one") {
  Faulty device;
  const auto pool = device.allocator.make_pool("session");
  pool->preallocate(4 << 20);
  device.source->bound(4 << 20);
  device.source->fail_commit_after(0);
  CHECK_THROWS_AS(pool->preallocate(8 << 20), OutOfMemory);
  CHECK(pool->reserved_bytes() == 4 << 20);
  pool->close();
  CHECK(device.source->reserved_addresses() == 0);
}

TEST_CASE("a block of zero bytes has no addresses to grow at, so that none moves") {
  const auto allocator = simulated();
  const auto pool = allocator->make_pool("session");
  Block* const block = pool->allocate({.bytes = 0}, {}, true);
  CHECK_FALSE(pool->grow(block, {4096}, {split_of(4096, 0), {}}));
  CHECK(pool->reserved_bytes() == 0);
  CHECK(pool->grow(block, {0}, {}));
}

TEST_CASE("a block grows within the pages it has where the device has no addresses to reserve") {
  const auto allocator = simulated(in_segments());
  const auto pool = allocator->make_pool("session");
  Block* const block = pool->allocate({5000}, {split_of(5120, 0), {}}, true);
  CHECK(pool->grow(block, {8192}, {split_of(8192, 0), {}}));
  CHECK_FALSE(pool->grow(block, {8193}, {split_of(8704, 0), {}}));
  CHECK_FALSE(pool->grow(block, {4096}, {split_of(4096, 0), {}}));
  CHECK(pool->reserved_bytes() == 8192);
  CHECK(pool->allocated_bytes() == 8192);
}

TEST_CASE("two threads close a pool, and each of its blocks goes once", "[concurrent]") {
  const auto allocator = simulated();
  for (int round = 0; round < 20; ++round) {
    const auto pool = allocator->make_pool("session");
    for (int i = 0; i < 3; ++i) pool->allocate({.bytes = std::size_t{300} << 20});
    CloseReport one, two;
    std::thread other([&] { one = pool->close(); });
    two = pool->close();
    other.join();
    CHECK(one.returned_bytes + two.returned_bytes == std::size_t{900} << 20);
    CHECK(one.freed_bytes + two.freed_bytes == std::size_t{900} << 20);
    CHECK(one.freed_blocks + two.freed_blocks == 3);
    CHECK(allocator->reserved_bytes() == 0);
    CHECK(allocator->stats().segments == 0);
  }
}

TEST_CASE("a pool that closes while a request waits refuses it, and nothing is left") {
  const bool by_threshold = GENERATE(true, false);
  CAPTURE(by_threshold);
  const auto allocator = simulated();
  auto pool = allocator->make_pool("session");
  Block* grows = pool->allocate({.bytes = 512 << 10}, {}, true);
  const auto close = [&](const Pressure&) { pool->close(); };
  const Watch watch =
      by_threshold ? allocator->watch(std::size_t{1} << 20, close) : allocator->watch({}, close);
  const std::size_t bytes = std::size_t{2} << 20;
  const auto nothing_is_left = [&] {
    const Stats stats = allocator->stats();
    return stats.reserved.current == 0 && stats.allocations == 0 && stats.segments == 0 &&
           pool->reserved_bytes() == 0;
  };
  if (!by_threshold) allocator->set_limit(bytes - 1);
  CHECK_ERROR(pool->allocate({.bytes = bytes}), Error, "pool session is closed");
  CHECK(nothing_is_left());

  pool = allocator->make_pool("session");
  grows = pool->allocate({.bytes = 512 << 10}, {}, true);
  CHECK_ERROR(pool->grow(grows, {.bytes = bytes}, {}), Error, "pool session is closed");
  CHECK(nothing_is_left());

  pool = allocator->make_pool("session");
  if (!by_threshold) allocator->set_limit({});
  for (int i = 0; i < 3; ++i) pool->allocate({.bytes = 300 << 10});
  pool->suspend();
  if (by_threshold) return;
  allocator->set_limit(800 << 10);
  CHECK_ERROR(pool->resume(), Error, "pool session is closed");
  CHECK(nothing_is_left());
}

TEST_CASE("a block is had from a pool before another thread closes it, or not at all",
          "[concurrent]") {
  const auto allocator = simulated();
  for (int round = 0; round < 300; ++round) {
    const auto pool = allocator->make_pool("session");
    std::thread other([&] {
      try {
        for (;;) pool->allocate({.bytes = 8192});
      } catch (const Error&) {  // closed
      }
    });
    while (round % 3 != 0 && pool->allocated_bytes() == 0) std::this_thread::yield();
    pool->close();
    other.join();
    if (allocator->reserved_bytes() != 0 || allocator->allocated_bytes() != 0 ||
        allocator->stats().segments != 0)
      FAIL("something is left of a pool that was closed");
  }
}

TEST_CASE("a call that throws after a block has grown leaves it and its contents as they were") {
  const bool was_away = GENERATE(true, false);
  CAPTURE(was_away);
  CachingAllocator allocator(std::make_unique<HostSource>(std::size_t{1} << 30), Profile{});
  const auto pool = allocator.make_pool("session");
  const Request small{5000, Category::activation, {"small", "file", 1}};
  Block* arena = pool->allocate(small, {split_of(5120, 0), {}}, true);
  void* const at = arena->data();
  std::memset(at, 7, 5000);
  if (was_away) {
    pool->rest(arena);
    pool->set_limit(0);
    pool->set_limit({});
  }
  const Stats before = pool->stats();
  REQUIRE(before.reserved.current == (was_away ? 0 : 8192));
  const std::size_t grown = 32 << 10;
  Watch watch =
      allocator.watch(grown / 2, [](const Pressure&) { throw std::runtime_error("stop"); });
  for (int i = 0; i < 2; ++i) {
    CHECK_THROWS_AS(pool->grow(arena, {grown}, {split_of(0, grown), {}}), std::runtime_error);
    const Stats after = pool->stats();
    CHECK(Model{before}.is_now(after));
    CHECK(after.reserved.current == before.reserved.current);
    CHECK(after.segments == before.segments);
    CHECK(allocator.reserved_bytes() == before.reserved.current);
    CHECK(pool->has_memory(arena) == !was_away);
    CHECK(arena->data() == at);
    const auto* bytes = static_cast<const char*>(at);
    if (!was_away) CHECK(std::count(bytes, bytes + 5000, 7) == 5000);
    CHECK(arena->requested_bytes() == 5000);
    CHECK(arena->allocated_bytes() == 5120);
    CHECK(arena->category() == Category::activation);
    CHECK(arena->tag().line == 1);
  }
  watch.end();
  CHECK(pool->grow(arena, {grown}, {split_of(0, grown), {}}));
  CHECK(allocator.reserved_bytes() == grown);
  pool->free(arena);
  CHECK(allocator.reserved_bytes() == 0);
}

TEST_CASE("what a pool is to keep ahead changes while another thread asks for room",
          "[concurrent]") {  // for the race detector
  const auto allocator = simulated();
  std::atomic<bool> stop = false;
  std::thread other([&] {
    while (!stop) allocator->room_bytes();
  });
  for (int i = 0; i < 500; ++i) {
    const auto pool = allocator->make_pool("session");
    pool->preallocate(8192);
    pool->close();
  }
  stop = true;
  other.join();
  CHECK(allocator->reserved_bytes() == 0);
}

}  // namespace
}  // namespace ebb::tests
