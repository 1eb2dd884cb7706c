// Rows 10 and 11 of the memory behaviours: limits, and the attempts before OutOfMemory is thrown.
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "ebb/allocator/event_log.h"
#include "ebb/allocator/limit.h"
#include "ebb/tests/allocator/faulty.h"
#include "ebb/tests/allocator/model.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

using namespace memory;

TEST_CASE("callbacks come first, then idle arenas, then the cache, then OutOfMemory") {
  const bool by_limit = GENERATE(true, false);
  CAPTURE(by_limit);
  Faulty device;
  CachingAllocator& allocator = device.allocator;
  const auto session = allocator.make_pool("session"), idle = allocator.make_pool("idle");
  Block* const arena = idle->allocate({.bytes = 4 * kMiB});
  idle->rest(arena);
  Block* freed_by_call = session->allocate({.bytes = 4 * kMiB});
  allocator.free(allocator.allocate({.bytes = 4 * kMiB}));  // cached
  device.bound(by_limit, 12 * kMiB);
  int calls = 0;
  std::size_t missing = 0;
  const Watch watch = allocator.watch({}, [&](const Pressure& pressure) {
    ++calls;
    missing = pressure.missing_bytes;
    session->free(freed_by_call);
    freed_by_call = nullptr;
  });
  const auto cached = [&] { return allocator.fragmentation().free_bytes; };

  session->allocate({.bytes = 4 * kMiB});
  CHECK(calls == 1);
  CHECK(missing == 4 * kMiB);
  CHECK(idle->has_memory(arena));
  CHECK(cached() == 4 * kMiB);

  session->allocate({.bytes = 4 * kMiB});
  CHECK(calls == 2);
  CHECK_FALSE(idle->has_memory(arena));
  CHECK(cached() == 4 * kMiB);

  session->allocate({.bytes = 4 * kMiB});
  CHECK(calls == 3);
  CHECK(cached() == 0);

  CHECK_THROWS_AS(session->allocate({.bytes = 1}), OutOfMemory);
  CHECK(calls == 4);
  CHECK(allocator.reserved_bytes() == 12 * kMiB);
}

TEST_CASE(
    "before OutOfMemory, requests of either size are served from what was kept for the other") {
  Faulty device;
  CachingAllocator& allocator = device.allocator;
  device.source->keep_all(true);  // so that nothing can be given back
  Block* large = allocator.allocate({.bytes = 18 * kMiB});
  allocator.free(large);
  device.source->refuse_all(true);
  Block* small = allocator.allocate({.bytes = 4});
  CHECK(small->data() != nullptr);
  allocator.free(small);
  device.source->refuse_all(false);
  device.source->keep_all(false);
}

TEST_CASE("at the limit a request of 4 bytes is served beside 18 free MiB") {
  Faulty device;
  CachingAllocator& allocator = device.allocator;
  Block* live = allocator.allocate({.bytes = 2 * kMiB});
  allocator.free(allocator.allocate({.bytes = 18 * kMiB}));
  allocator.set_limit(20 * kMiB);
  REQUIRE(allocator.reserved_bytes() == 20 * kMiB);
  Block* small = allocator.allocate({.bytes = 4});
  CHECK(allocator.reserved_bytes() <= 20 * kMiB);
  Block* rest = allocator.allocate({.bytes = 18 * kMiB - 4096});  // everything but small's page
  CHECK_THROWS_AS(allocator.allocate({.bytes = 4096}), OutOfMemory);
  for (Block* block : {live, small, rest}) allocator.free(block);
}

TEST_CASE("idle arenas go oldest pool first, and no more of them than it takes") {
  Faulty device;
  CachingAllocator& allocator = device.allocator;
  std::vector<std::unique_ptr<Pool>> pools;
  std::vector<Block*> arenas;
  for (int i = 0; i < 4; ++i) {
    pools.push_back(allocator.make_pool("session"));
    arenas.push_back(pools.back()->allocate({.bytes = 4 * kMiB}));
  }
  for (const std::size_t i : {3u, 0u, 2u}) pools[i]->rest(arenas[i]);  // the second stays in use
  allocator.set_limit(16 * kMiB);
  Block* block = allocator.allocate({.bytes = 5 * kMiB});
  CHECK_FALSE(pools[0]->has_memory(arenas[0]));
  CHECK(pools[1]->has_memory(arenas[1]));
  CHECK_FALSE(pools[2]->has_memory(arenas[2]));
  CHECK(pools[3]->has_memory(arenas[3]));
  CHECK(pools[3]->wake(arenas[3]));
  CHECK_FALSE(pools[0]->wake(arenas[0]));
  CHECK_THROWS_AS(allocator.allocate({.bytes = 5 * kMiB}), OutOfMemory);  // arenas in use stay
  CHECK(pools[1]->has_memory(arenas[1]));
  CHECK(pools[3]->has_memory(arenas[3]));
  allocator.free(block);
}

TEST_CASE(
    "as much gives way as a limit or the device is short of, which is less than the request") {
  const bool by_limit = GENERATE(true, false);
  CAPTURE(by_limit);
  Faulty device;
  CachingAllocator& allocator = device.allocator;
  const auto a = allocator.make_pool("a"), b = allocator.make_pool("b");
  Block* const of_a = a->allocate({.bytes = 4 * kMiB});
  Block* const of_b = b->allocate({.bytes = 4 * kMiB});
  a->rest(of_a);
  b->rest(of_b);
  device.bound(by_limit, 11 * kMiB);
  const auto own = allocator.make_pool("own");
  own->allocate({.bytes = 6 * kMiB});
  CHECK_FALSE(a->has_memory(of_a));
  CHECK(b->has_memory(of_b));
  CHECK(allocator.reserved_bytes() == 10 * kMiB);
}

TEST_CASE("an idle arena that the device does not take back stays idle, and the others go") {
  Faulty device;
  CachingAllocator& allocator = device.allocator;
  const auto a = allocator.make_pool("a"), b = allocator.make_pool("b");
  Block* const of_a = a->allocate({.bytes = 4 * kMiB});
  Block* const of_b = b->allocate({.bytes = 4 * kMiB});
  a->rest(of_a);
  b->rest(of_b);
  device.source->keep_at(of_a->data());
  allocator.set_limit(8 * kMiB);
  Block* block = allocator.allocate({.bytes = 4 * kMiB});
  CHECK(a->has_memory(of_a));
  CHECK_FALSE(b->has_memory(of_b));
  CHECK(allocator.reserved_bytes() == 8 * kMiB);
  device.source->keep_at(nullptr);
  Block* another = allocator.allocate({.bytes = 4 * kMiB});
  CHECK_FALSE(a->wake(of_a));
  allocator.free(block);
  allocator.free(another);
}

TEST_CASE("a pool at its own limit leaves the cache alone, and what the device preallocates") {
  Faulty device;
  CachingAllocator& allocator = device.allocator;
  allocator.preallocate(8 * kMiB);
  const auto pool = allocator.make_pool("session", 4 * kMiB);
  int calls = 0;
  const Watch watch = allocator.watch({}, [&](const Pressure& pressure) {
    ++calls;
    CHECK(pressure.reserved_bytes == 8 * kMiB);
    CHECK(pressure.missing_bytes == 4 * kMiB);
  });
  const auto log = std::make_shared<EventLog>(100);
  allocator.set_recorder(log);
  CHECK_THROWS_AS(pool->allocate({.bytes = 8 * kMiB}), OutOfMemory);
  CHECK(calls == 1);
  CHECK(log->read().events.size() == 1);  // the mark of the refusal
  allocator.set_recorder(nullptr);
}

TEST_CASE("room is what nobody uses: cached pages and idle arenas, not what a pool keeps ahead") {
  Faulty device;
  CachingAllocator& allocator = device.allocator;
  allocator.set_limit(32 * kMiB);
  Block* live = allocator.allocate({.bytes = 2 * kMiB});
  allocator.free(allocator.allocate({.bytes = 6 * kMiB}));
  CHECK(allocator.reserved_bytes() == 8 * kMiB);
  CHECK(allocator.room_bytes() == 30 * kMiB);
  const auto idle = allocator.make_pool("idle"), ahead = allocator.make_pool("ahead");
  idle->rest(idle->allocate({.bytes = 4 * kMiB}));
  CHECK(allocator.room_bytes() == 30 * kMiB);
  ahead->preallocate(8 * kMiB);
  Block* const arena = ahead->allocate({.bytes = 3 * kMiB});
  ahead->rest(arena);
  CHECK(allocator.room_bytes() == 22 * kMiB);
  Block* block = allocator.allocate({.bytes = 22 * kMiB});  // exactly that much can be had
  CHECK(allocator.room_bytes() == 0);
  CHECK_THROWS_AS(allocator.allocate({.bytes = 1}), OutOfMemory);
  CHECK(ahead->has_memory(arena));
  for (Block* each : {live, block}) allocator.free(each);
}

TEST_CASE("at a pool's own limit only its own idle blocks give way") {
  Faulty device;
  CachingAllocator& allocator = device.allocator;
  const auto other = allocator.make_pool("other"), own = allocator.make_pool("own", 8 * kMiB);
  Block* const of_other = other->allocate({.bytes = 4 * kMiB});
  other->rest(of_other);
  Block* const of_own = own->allocate({.bytes = 4 * kMiB});
  own->rest(of_own);
  allocator.free(allocator.allocate({.bytes = 4 * kMiB}));
  own->allocate({.bytes = 8 * kMiB});
  CHECK_FALSE(own->has_memory(of_own));
  CHECK(other->has_memory(of_other));
  CHECK(allocator.fragmentation().free_bytes == 4 * kMiB);
  CHECK_THROWS_AS(own->allocate({.bytes = 1}), OutOfMemory);
}

TEST_CASE(
    "a limit lowered at run time trims the cache, then takes idle arenas, and spares the rest") {
  Faulty device;
  CachingAllocator& allocator = device.allocator;
  const auto running = allocator.make_pool("running"), idle = allocator.make_pool("idle");
  running->allocate({.bytes = 4 * kMiB});
  Block* const arena = idle->allocate({.bytes = 4 * kMiB});
  idle->rest(arena);
  Block* live = allocator.allocate({.bytes = 4 * kMiB});
  allocator.free(allocator.allocate({.bytes = 8 * kMiB}));
  REQUIRE(allocator.reserved_bytes() == 20 * kMiB);
  allocator.set_limit(15 * kMiB);
  CHECK(allocator.reserved_bytes() == 15 * kMiB);
  CHECK(idle->has_memory(arena));
  allocator.set_limit(11 * kMiB);
  CHECK(allocator.reserved_bytes() == 8 * kMiB);
  CHECK_FALSE(idle->has_memory(arena));
  allocator.set_limit(kMiB);
  CHECK(allocator.reserved_bytes() == 8 * kMiB);
  CHECK_THROWS_AS(allocator.allocate({.bytes = 1}), OutOfMemory);
  allocator.set_limit({});
  allocator.free(allocator.allocate({.bytes = 1}));
  allocator.free(live);
}

TEST_CASE("what the device refuses has never been reserved, in no figure") {
  Faulty device;
  CachingAllocator& allocator = device.allocator;
  device.source->bound(3 * kMiB);
  Block* const block = allocator.allocate({.bytes = 2 * kMiB + 4096});  // a whole step is refused
  CHECK_THROWS_AS(allocator.allocate({.bytes = 2 * kMiB}), OutOfMemory);
  const auto pool = allocator.make_pool("session");
  CHECK_THROWS_AS(pool->allocate({.bytes = 2 * kMiB}), OutOfMemory);
  const Figure reserved = allocator.stats().reserved;
  CHECK(reserved.current == device.source->committed_bytes());
  CHECK(reserved.peak == reserved.current);
  CHECK(reserved.total == reserved.current);
  CHECK(pool->stats().reserved == Figure{});
  CHECK(allocator.stats().segments == 1);
  allocator.free(block);
  allocator.release_cached();
  device.source->refuse_all(true);
  CHECK_THROWS_AS(allocator.allocate({.bytes = 1}), OutOfMemory);
  CHECK(allocator.stats().segments == 0);  // there are addresses, and nothing behind them
}

TEST_CASE("the largest request that would have been served is served, and no larger one") {
  for (const std::size_t limit :
       {std::size_t{1000}, std::size_t{4097}, kMiB + 100, 10 * kMiB + 7}) {
    CAPTURE(limit);
    Faulty device;
    CachingAllocator& allocator = device.allocator;
    allocator.set_limit(limit);
    const std::size_t room =
        refusal_of([&] { allocator.allocate({.bytes = 64 * kMiB}); }).facts().room_bytes;
    CHECK(room == limit / 4096 * 4096);
    CHECK(allocator.room_bytes() == room);
    if (room == 0) continue;
    Block* const block = allocator.allocate({.bytes = room});
    CHECK_THROWS_AS(allocator.allocate({.bytes = 1}), OutOfMemory);
    allocator.free(block);
    allocator.release_cached();
    // An arena can grow into the room, and memory that its pool holds ahead counts.
    const auto pool = allocator.make_pool("session");
    if (room >= 8192) pool->preallocate(4096);
    const std::size_t half = std::max(room / 2 / 4096, std::size_t{1}) * 4096;
    Block* const arena = pool->allocate({.bytes = half}, {}, true);
    if (room >= 8192) pool->preallocate(half + 4096);
    const std::size_t grown =
        refusal_of([&] { pool->grow(arena, {.bytes = 4 * half}, {}); }).facts().room_bytes;
    CHECK(grown == room);
    CHECK(pool->grow(arena, {.bytes = grown}, {}));
  }
}

TEST_CASE(
    "a pool's limit lowered at run time takes its oldest idle block, and no more than it has to") {
  Faulty device;
  const auto pool = device.allocator.make_pool("session");
  std::vector<Block*> blocks;
  for (int i = 0; i < 3; ++i) blocks.push_back(pool->allocate({.bytes = 4 * kMiB}));
  for (const std::size_t i : {2u, 0u, 1u}) pool->rest(blocks[i]);
  pool->set_limit(8 * kMiB);
  CHECK_FALSE(pool->has_memory(blocks[0]));
  CHECK(pool->has_memory(blocks[1]));
  CHECK(pool->has_memory(blocks[2]));
  CHECK(pool->wake(blocks[1]));
  pool->set_limit(kMiB);
  CHECK(pool->has_memory(blocks[1]));  // not resting, so it stays
  CHECK(pool->reserved_bytes() == 4 * kMiB);
}

TEST_CASE(
    "trimming takes the largest free stretch first, from its end, and no more than it has to") {
  Faulty device;
  CachingAllocator& allocator = device.allocator;
  std::vector<Block*> freed, live;
  for (const std::size_t size : {4u, 16u, 8u}) {
    freed.push_back(allocator.allocate({.bytes = size * kMiB}));
    live.push_back(allocator.allocate({.bytes = 2 * kMiB}));
  }
  const void* const of_16 = freed[1]->data();
  for (Block* block : freed) allocator.free(block);
  const auto largest = [&] { return allocator.fragmentation().largest_free_bytes; };
  const auto pieces = [&] { return allocator.fragmentation().free_pieces; };
  REQUIRE(allocator.reserved_bytes() == 34 * kMiB);
  allocator.set_limit(24 * kMiB);  // 10 of the 16
  CHECK(allocator.reserved_bytes() == 24 * kMiB);
  CHECK(largest() == 8 * kMiB);
  CHECK(pieces() == 3);
  allocator.set_limit(16 * kMiB);  // the 8
  CHECK(largest() == 6 * kMiB);
  CHECK(pieces() == 2);
  live.push_back(allocator.allocate({.bytes = 6 * kMiB}));
  CHECK(live.back()->data() == of_16);
  for (Block* block : live) allocator.free(block);
}

TEST_CASE("a limit is bytes or a fraction of the capacity of 0 to 1, and nothing else") {
  CHECK(Limit::fraction(0.5).bytes_of(1000) == 500);
  CHECK(Limit::fraction(0).bytes_of(1000) == 0);
  CHECK(Limit::fraction(1).bytes_of(1000) == 1000);
  CHECK(Limit(7).bytes_of(1000) == 7);
  CHECK(Limit(std::size_t{7}).bytes_of(1000) == 7);
  for (const double fraction : {50.0, 1.001, -0.5, std::nan("")})
    CHECK_ERROR(Limit::fraction(fraction), Error, "takes a fraction of 0 to 1");
  CHECK_ERROR(Limit(-1), Error, "-1 bytes are no limit");
  CHECK_ERROR(Limit(std::int64_t{-5'000'000'000}), Error, "-5000000000 bytes");
}

TEST_CASE("what the device did not take back of a pool's block it is asked for again when short") {
  const bool in_pool = GENERATE(true, false);
  const bool by_limit = GENERATE(true, false);
  CAPTURE(in_pool, by_limit);
  Faulty device;
  CachingAllocator& allocator = device.allocator;
  device.bound(by_limit, 20 * kMiB);
  const auto pool = allocator.make_pool("session"), other = allocator.make_pool("other");
  Block* block = pool->allocate({.bytes = 15 * kMiB});
  device.source->keep_all(true);
  pool->free(block);
  CHECK(pool->reserved_bytes() == 15 * kMiB);
  CHECK_THROWS_AS(other->allocate({.bytes = 15 * kMiB}), OutOfMemory);
  device.source->keep_all(false);
  if (in_pool) {
    other->allocate({.bytes = 15 * kMiB});
    CHECK(pool->reserved_bytes() == 0);
    CHECK(pool->stats().segments == 0);
  } else {
    allocator.free(allocator.allocate({.bytes = 15 * kMiB}));
  }
  CHECK(pool->close().returned_bytes == 0);
  other->close();
  allocator.release_cached();
  CHECK(device.source->committed_bytes() == 0);
}

TEST_CASE("a pool at its own limit is given what the device did not take back of it") {
  Faulty device;
  const auto pool = device.allocator.make_pool("session", 20 * kMiB);
  Block* block = pool->allocate({.bytes = 15 * kMiB});
  device.source->keep_all(true);
  pool->free(block);
  device.source->keep_all(false);
  pool->allocate({.bytes = 15 * kMiB});
  CHECK(pool->reserved_bytes() == 15 * kMiB);
  CHECK(device.source->committed_bytes() == 15 * kMiB);
}

}  // namespace
}  // namespace ebb::tests
