// Row 17 of the memory behaviours: act on memory use while training.
#include "ebb/allocator/watch.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "ebb/allocator/caching_allocator.h"
#include "ebb/allocator/simulated_source.h"
#include "ebb/tests/allocator/faulty.h"
#include "ebb/tests/allocator/model.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

using namespace memory;

struct Watched {
  const std::unique_ptr<CachingAllocator> made = simulated();
  CachingAllocator& allocator = *made;
  int told = 0;
  Pressure last;

  Watch over(std::size_t threshold) {
    return allocator.watch(threshold, [this](const Pressure& pressure) {
      ++told;
      last = pressure;
    });
  }
};

TEST_CASE("a threshold is told of once each time that it is passed, and again after it was not") {
  Watched watched;
  CachingAllocator& allocator = watched.allocator;
  const Watch watch = watched.over(4 * kMiB);
  Block* first = allocator.allocate({.bytes = 4 * kMiB});  // reached, not passed
  CHECK(watched.told == 0);
  Block* second = allocator.allocate({.bytes = 1});
  CHECK(watched.told == 1);
  CHECK(watched.last.requested_bytes == 1);
  CHECK(watched.last.allocated_bytes == 4 * kMiB + 512);
  Block* third = allocator.allocate({.bytes = 1});
  allocator.free(third);
  CHECK(watched.told == 1);  // never fell below
  allocator.free(second);
  second = allocator.allocate({.bytes = 1});
  CHECK(watched.told == 2);
  allocator.free(first);
  allocator.free(second);
}

TEST_CASE("a threshold is armed again by whatever makes the allocated bytes fall") {
  Watched watched;
  CachingAllocator& allocator = watched.allocator;
  const Watch watch = watched.over(4 * kMiB);
  auto pool = allocator.make_pool("session");
  Block* block = pool->allocate({.bytes = 5 * kMiB});
  CHECK(watched.told == 1);
  pool->free(block);
  block = pool->allocate({.bytes = 5 * kMiB});
  CHECK(watched.told == 2);
  pool->close();
  pool = allocator.make_pool("another");
  block = pool->allocate({.bytes = 5 * kMiB});
  CHECK(watched.told == 3);
  pool->rest(block);
  pool->set_limit(0);  // takes its memory
  CHECK(allocator.allocated_bytes() == 0);
  Block* cached = allocator.allocate({.bytes = 5 * kMiB});
  CHECK(watched.told == 4);
  allocator.free(cached);
}

TEST_CASE(
    "a block that grows past a threshold is told of once, and a pool that is resumed past it") {
  Watched watched;
  const Watch watch = watched.over(2 * kMiB);
  const auto pool = watched.allocator.make_pool("session");
  const auto split = [](std::size_t bytes) { return ByCategory{bytes}; };
  Block* block = pool->allocate({.bytes = kMiB}, {split(kMiB), {}}, true);
  CHECK(watched.told == 0);
  CHECK(pool->grow(block, {.bytes = 3 * kMiB}, {split(3 * kMiB), {}}));
  CHECK(watched.told == 1);
  CHECK(watched.last.requested_bytes == 3 * kMiB);
  CHECK(watched.last.allocated_bytes == 3 * kMiB);
  CHECK(pool->grow(block, {.bytes = 4 * kMiB}, {split(4 * kMiB), {}}));
  CHECK(watched.told == 1);
  pool->suspend();
  pool->resume();
  CHECK(watched.told == 2);
  CHECK(watched.last.allocated_bytes == 4 * kMiB);
}

TEST_CASE(
    "of several thresholds those that are no longer passed are told of again, and no others") {
  Watched watched;
  CachingAllocator& allocator = watched.allocator;
  std::vector<Watch> watches;
  for (const std::size_t threshold : {4u, 1u}) watches.push_back(watched.over(threshold * kMiB));
  Block* block = allocator.allocate({.bytes = 3 * kMiB});
  Block* more = allocator.allocate({.bytes = 2 * kMiB});
  CHECK(watched.told == 2);
  allocator.free(more);  // 3 MiB are left: above the one, below the other
  more = allocator.allocate({.bytes = 2 * kMiB});
  CHECK(watched.told == 3);
  allocator.free(more);
  more = allocator.allocate({.bytes = kMiB});
  CHECK(watched.told == 3);
  allocator.free(more);
  allocator.free(block);
  more = allocator.allocate({.bytes = 2 * kMiB});
  CHECK(watched.told == 4);
  allocator.free(more);
}

TEST_CASE("a callback may free, release, allocate, change limits and close pools") {
  CachingAllocator allocator(std::make_unique<SimulatedSource>(64 * kMiB, 4096), Profile{});
  Block* held = allocator.allocate({.bytes = 8 * kMiB});
  auto pool = allocator.make_pool("idle");
  pool->allocate({.bytes = 8 * kMiB});
  allocator.set_limit(18 * kMiB);
  int calls = 0;
  std::unique_ptr<Pool> made;
  const auto call = [&](const Pressure&) {
    ++calls;
    allocator.free(held);
    held = nullptr;
    pool->close();
    allocator.release_cached();
    allocator.set_limit(20 * kMiB);
    allocator.free(allocator.allocate({.bytes = 100}));
    made = allocator.make_pool("made here");
    made->allocate({.bytes = 100});
    (void)allocator.stats();
    (void)allocator.holders(3);
  };
  const bool by_threshold = GENERATE(true, false);
  const Watch watch = by_threshold ? allocator.watch(16 * kMiB, call) : allocator.watch({}, call);
  Block* block = allocator.allocate({.bytes = by_threshold ? kMiB : 8 * kMiB});
  CHECK(calls == 1);
  CHECK(allocator.allocated_bytes() == block->allocated_bytes() + 512);
  allocator.free(block);
  made->close();
}

TEST_CASE("a request fails with what a callback throws, and nothing else has changed") {
  CachingAllocator allocator(std::make_unique<SimulatedSource>(64 * kMiB, 4096), Profile{});
  const bool by_threshold = GENERATE(true, false);
  const bool in_pool = GENERATE(true, false);
  const auto throws = [](const Pressure&) { throw std::logic_error("enough"); };
  Watch watch = by_threshold ? allocator.watch(kMiB, throws) : allocator.watch({}, throws);
  const auto pool = allocator.make_pool("session");
  const Request request{.bytes = by_threshold ? 2 * kMiB : 65 * kMiB};
  for (int i = 0; i < 2; ++i) {
    CHECK_ERROR(in_pool ? pool->allocate(request) : allocator.allocate(request), std::logic_error,
                "enough");
    CHECK(allocator.allocated_bytes() == 0);
    CHECK(allocator.stats().allocations == 0);
    CHECK(pool->reserved_bytes() == 0);
  }
  watch.end();
  if (by_threshold) allocator.free(allocator.allocate(request));
}

TEST_CASE("a callback is not told of pressure that it makes itself") {
  CachingAllocator allocator(std::make_unique<SimulatedSource>(8 * kMiB, 4096), Profile{});
  int calls = 0;
  const Watch watch = allocator.watch({}, [&](const Pressure&) {
    ++calls;
    CHECK_FALSE(allocator.allocated_bytes() > 0);
  });
  allocator.set_limit(4 * kMiB);
  CHECK_THROWS_AS(allocator.allocate({.bytes = 5 * kMiB}), OutOfMemory);
  CHECK(calls == 1);
  const Watch inner = allocator.watch({}, [&](const Pressure&) {
    ++calls;
    CHECK_THROWS_AS(allocator.allocate({.bytes = 6 * kMiB}), OutOfMemory);
  });
  CHECK_THROWS_AS(allocator.allocate({.bytes = 5 * kMiB}), OutOfMemory);
  CHECK(calls == 3);
}

TEST_CASE("a watch that has ended is not told, and keeps nothing that its function held") {
  CachingAllocator allocator(std::make_unique<SimulatedSource>(64 * kMiB, 4096), Profile{});
  // Frees its block when the last copy of the function is destroyed.
  const auto block = std::shared_ptr<Block>(allocator.allocate({.bytes = 100}),
                                            [&](Block* each) { allocator.free(each); });
  std::weak_ptr<Block> held = block;
  int calls = 0;
  {
    auto own = block;
    Watch watch = allocator.watch(0, [&calls, own](const Pressure&) { ++calls; });
  }
  CHECK(held.use_count() == 1);
  allocator.free(allocator.allocate({.bytes = 1}));
  CHECK(calls == 0);

  auto last = std::shared_ptr<Block>(allocator.allocate({.bytes = 100}),
                                     [&](Block* each) { allocator.free(each); });
  Watch watch = allocator.watch(kMiB, [last = std::move(last)](const Pressure&) {});
  watch.end();
  CHECK(allocator.stats().allocations == 1);
  watch.end();
  const Watch next = allocator.watch(kMiB, [](const Pressure&) {});  // forgets ended watches
}

TEST_CASE("a watch that is assigned to ends, and what is assigned goes on") {
  Watched watched;
  CachingAllocator& allocator = watched.allocator;
  int others = 0;
  Watch watch = watched.over(kMiB);
  watch = allocator.watch(kMiB, [&](const Pressure&) { ++others; });
  allocator.free(allocator.allocate({.bytes = 2 * kMiB}));
  CHECK(watched.told == 0);
  CHECK(others == 1);
  watch = {};
  allocator.free(allocator.allocate({.bytes = 2 * kMiB}));
  CHECK(others == 1);
}

TEST_CASE("a watch may end itself during a call, with all that its function holds") {
  CachingAllocator allocator(std::make_unique<SimulatedSource>(64 * kMiB, 4096), Profile{});
  Watch watch;
  int calls = 0;
  auto held = std::make_shared<int>(7);
  std::weak_ptr<int> seen = held;
  watch = allocator.watch(kMiB, [&watch, &calls, held](const Pressure&) {
    watch.end();
    calls += *held;  // is there still
  });
  held.reset();
  allocator.free(allocator.allocate({.bytes = 2 * kMiB}));
  allocator.free(allocator.allocate({.bytes = 2 * kMiB}));
  CHECK(calls == 7);
  CHECK(seen.expired());
}

TEST_CASE("a watch that ends has waited for a call on another thread", "[concurrent]") {
  CachingAllocator allocator(std::make_unique<SimulatedSource>(64 * kMiB, 4096), Profile{});
  for (int round = 0; round < 200; ++round) {
    int inside = 0;  // plain: to end without waiting is a race
    std::atomic<bool> called = false;
    Watch watch = allocator.watch(kMiB, [&](const Pressure&) {
      ++inside;
      called = true;
      for (volatile int pause = 0; pause < 1000;) pause = pause + 1;
      ++inside;
    });
    std::thread other([&] { allocator.free(allocator.allocate({.bytes = 2 * kMiB})); });
    if (round % 2 == 0)
      while (!called) std::this_thread::yield();
    watch.end();
    if (inside % 2 != 0) FAIL_CHECK("ended in the middle of a call");
    other.join();
  }
}

TEST_CASE("a call of a watch never waits for one on another thread", "[concurrent]") {
  Watched watched;
  watched.allocator.set_limit(kMiB);
  std::atomic<int> inside = 0;
  std::atomic<bool> met = true;
  const Watch watch = watched.allocator.watch({}, [&](const Pressure&) {
    ++inside;
    // Waits until the other thread is inside too. If it were kept outside, this would time out.
    for (int i = 0; i < 20'000 && inside.load() < 2; ++i)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    if (inside.load() < 2) met = false;
  });
  const auto asks = [&] {
    CHECK_THROWS_AS(watched.allocator.allocate({.bytes = 2 * kMiB}), OutOfMemory);
  };
  std::thread other([&] {
    try {
      watched.allocator.free(watched.allocator.allocate({.bytes = 2 * kMiB}));
    } catch (const OutOfMemory&) {  // expected
    }
  });
  asks();
  other.join();
  CHECK(met.load());
}

TEST_CASE("a watch without a function is refused") {
  Watched watched;
  CHECK_ERROR(watched.allocator.watch({}, WatchFunction()), Error, "is empty");
}

TEST_CASE("a threshold passed within another call is told of by the next request") {
  Watched watched;
  CachingAllocator& allocator = watched.allocator;
  std::vector<Block*> blocks;
  int outer_calls = 0;
  const Watch outer = allocator.watch(kMiB, [&](const Pressure&) {
    ++outer_calls;
    blocks.push_back(allocator.allocate({.bytes = 10 * kMiB}));
  });
  const Watch watch = watched.over(5 * kMiB);
  blocks.push_back(allocator.allocate({.bytes = 2 * kMiB}));
  CHECK(outer_calls == 1);
  CHECK(watched.told == 0);
  blocks.push_back(allocator.allocate({.bytes = 1}));
  CHECK(outer_calls == 1);
  CHECK(watched.told == 1);
  CHECK(watched.last.allocated_bytes == 12 * kMiB + 512);
  blocks.push_back(allocator.allocate({.bytes = 1}));
  CHECK(watched.told == 1);
  for (Block* block : blocks) allocator.free(block);
}

TEST_CASE("a call that passes its own threshold again is not told of it") {
  Watched watched;
  CachingAllocator& allocator = watched.allocator;
  Block* held = allocator.allocate({.bytes = 2 * kMiB});
  int calls = 0;
  const Watch watch = allocator.watch(3 * kMiB, [&](const Pressure&) {
    ++calls;
    allocator.free(held);
    held = allocator.allocate({.bytes = 2 * kMiB});
  });
  Block* block = allocator.allocate({.bytes = 2 * kMiB});
  allocator.free(allocator.allocate({.bytes = 1}));
  CHECK(calls == 1);
  allocator.free(block);
  block = allocator.allocate({.bytes = 2 * kMiB});
  CHECK(calls == 2);
  allocator.free(block);
  allocator.free(held);
}

}  // namespace
}  // namespace ebb::tests
