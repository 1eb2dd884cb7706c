// Rows 10 and 11 of the memory behaviours: limits, and what is tried before OutOfMemory is thrown.
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

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
  if (by_limit)
    allocator.set_limit(12 * kMiB);
  else
    device.source->bound(12 * kMiB);
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
  CHECK(missing == (by_limit ? 4 * kMiB : 0));
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
  Block* rest = allocator.allocate({.bytes = 18 * kMiB - 4096});  // and all but its page is left
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
  for (const std::size_t i : {3, 0, 2}) pools[i]->rest(arenas[i]);  // the second one runs
  allocator.set_limit(16 * kMiB);
  Block* block = allocator.allocate({.bytes = 5 * kMiB});
  CHECK_FALSE(pools[0]->has_memory(arenas[0]));
  CHECK(pools[1]->has_memory(arenas[1]));
  CHECK_FALSE(pools[2]->has_memory(arenas[2]));
  CHECK(pools[3]->has_memory(arenas[3]));
  CHECK(pools[3]->wake(arenas[3]));
  CHECK_FALSE(pools[0]->wake(arenas[0]));
  CHECK_THROWS_AS(allocator.allocate({.bytes = 5 * kMiB}), OutOfMemory);  // what runs stays
  CHECK(pools[1]->has_memory(arenas[1]));
  CHECK(pools[3]->has_memory(arenas[3]));
  allocator.free(block);
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

}  // namespace
}  // namespace ebb::tests
