#include <new>

#include "ebb/tests/allocator/faulty.h"
#include "ebb/tests/allocator/model.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/heap.h"

namespace ebb::tests {
namespace {

using namespace memory;

Stats without_reserved(Stats stats) {
  stats.reserved = {};
  stats.device_free = stats.segments = 0;
  return stats;
}

TEST_CASE(
    "a limit lowered below what is in use gives back what is free, and then refuses only new "
    "segments") {
  Faulty faulty(in_segments());
  CachingAllocator& allocator = faulty.allocator;
  Block* kept = allocator.allocate({.bytes = 30 * kMiB});
  allocator.free(allocator.allocate({.bytes = 40 * kMiB}));
  Block* small = allocator.allocate({.bytes = 100});
  CHECK(allocator.reserved_bytes() == 72 * kMiB);

  allocator.set_limit(10 * kMiB);
  CHECK(allocator.reserved_bytes() == 32 * kMiB);  // the cached 40 MiB went, the blocks did not
  CHECK_THROWS_AS(allocator.allocate({.bytes = 2 * kMiB}), OutOfMemory);
  Block* from_cache = allocator.allocate({.bytes = kMiB});  // needs no new segment
  CHECK(allocator.stats().limit == 10 * kMiB);

  allocator.set_limit({});
  allocator.free(allocator.allocate({.bytes = 2 * kMiB}));
  for (Block* block : {kept, small, from_cache}) allocator.free(block);
}

TEST_CASE("after trimming, a segment that fills the limit exactly is granted") {
  Faulty faulty(in_segments());
  CachingAllocator& allocator = faulty.allocator;
  allocator.set_limit(40 * kMiB);
  Block* kept = allocator.allocate({.bytes = 12 * kMiB});
  allocator.free(allocator.allocate({.bytes = 14 * kMiB}));
  Block* filling = allocator.allocate({.bytes = 28 * kMiB});
  CHECK(allocator.reserved_bytes() == 40 * kMiB);
  allocator.free(filling);
  const auto pool = allocator.make_pool("session");
  pool->free(pool->allocate({.bytes = 28 * kMiB}));
  allocator.free(kept);
  pool->allocate({.bytes = 40 * kMiB});
  CHECK(allocator.reserved_bytes() == 40 * kMiB);
}

TEST_CASE("a request at the limit trims the oldest free segments, until just enough came back") {
  // Two free segments of 12 MiB, limit 30: a request of 18 MiB needs exactly one of them back, 24
  // MiB needs both.
  const auto [request, left] =
      GENERATE(table<std::size_t, std::size_t>({{14, 26}, {18, 30}, {24, 24}}));
  Faulty faulty(in_segments());
  CachingAllocator& allocator = faulty.allocator;
  allocator.set_limit(30 * kMiB);
  Block* first = allocator.allocate({.bytes = 12 * kMiB});
  Block* second = allocator.allocate({.bytes = 12 * kMiB});
  const void* newer = second->data();
  allocator.free(first);
  allocator.free(second);
  Block* block = allocator.allocate({.bytes = request * kMiB});
  CHECK(allocator.reserved_bytes() == left * kMiB);
  if (request < 24) {
    Block* again = allocator.allocate({.bytes = 12 * kMiB});
    CHECK(again->data() == newer);
    allocator.free(again);
  }
  allocator.free(block);
}

TEST_CASE(
    "a request is served from a smaller segment when the limit leaves no room for the usual one") {
  Faulty faulty(in_segments());
  faulty.allocator.set_limit(3 * kMiB);
  Block* block = faulty.allocator.allocate({.bytes = 2 * kMiB + 1});
  CHECK(faulty.allocator.reserved_bytes() == 2 * kMiB + 4096);
  faulty.allocator.free(block);
}

TEST_CASE(
    "segments are 2 MiB for small requests, 20 MiB for medium ones, else multiples of 2 MiB") {
  const auto [bytes, segment] = GENERATE(table<std::size_t, std::size_t>({
      {1, 2 * kMiB},
      {kMiB, 2 * kMiB},
      {kMiB + 1, 20 * kMiB},
      {10 * kMiB, 20 * kMiB},
      {10 * kMiB + 1, 12 * kMiB},
      {50 * kMiB, 50 * kMiB},
  }));
  Faulty faulty(in_segments());
  Block* block = faulty.allocator.allocate({.bytes = bytes});
  CHECK(faulty.allocator.reserved_bytes() == segment);
  faulty.allocator.free(block);
}

// After each call that hands out memory, makes the host's heap refuse once.
class ExhaustingSource final : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;
  void* reserve(std::size_t bytes) noexcept override {
    return arm(ForwardingSource::reserve(bytes));
  }
  void* map(std::size_t bytes) noexcept override { return arm(ForwardingSource::map(bytes)); }
  void unreserve(void* base, std::size_t bytes) noexcept override {
    ++unreserved;
    ForwardingSource::unreserve(base, bytes);
  }

  int unreserved = 0;

 private:
  static void* arm(void* base) noexcept {
    HeapFault::arm();
    return base;
  }
};

TEST_CASE("what the device gave goes back where the host has no memory left to adopt it") {
  const bool grows = GENERATE(true, false);
  CAPTURE(grows);
  auto owned =
      std::make_unique<ExhaustingSource>(std::make_shared<SimulatedSource>(1024 * kMiB, 4096));
  const ExhaustingSource& source = *owned;
  CachingAllocator allocator(std::move(owned), grows ? Profile{} : in_segments());
  const std::size_t free_bytes = source.device_memory().free;
  CHECK_THROWS_AS(allocator.allocate({.bytes = 5 * kMiB}), std::bad_alloc);
  CHECK_FALSE(HeapFault::disarm());  // the failure happened
  CHECK(source.unreserved == 1);
  CHECK(source.device_memory().free == free_bytes);
  CHECK(allocator.reserved_bytes() == 0);
  CHECK(allocator.stats().segments == 0);
  CHECK(allocator.stats().allocations == 0);
  if (grows) {
    const auto pool = allocator.make_pool("session");
    CHECK_THROWS_AS(pool->allocate({.bytes = 5 * kMiB}), std::bad_alloc);
    CHECK_FALSE(HeapFault::disarm());
    CHECK(source.unreserved == 2);
    CHECK(allocator.reserved_bytes() == 0);
  }
}

TEST_CASE("a refused request changes no figure") {
  Faulty faulty;
  Block* block = faulty.allocator.allocate({.bytes = 5 * kMiB, .category = Category::gradient});
  const auto pool = faulty.allocator.make_pool("session", 3 * kMiB);
  const Stats before = without_reserved(faulty.allocator.stats());
  faulty.source->refuse_all(true);
  const auto bytes = GENERATE(std::size_t{21 * kMiB}, std::size_t{1}, std::size_t{1} << 63,
                              ~std::size_t{0}, ~std::size_t{0} - 511);
  CHECK_THROWS_AS(faulty.allocator.allocate({.bytes = bytes}), OutOfMemory);
  CHECK_THROWS_AS(pool->allocate({.bytes = bytes}), OutOfMemory);
  CHECK(without_reserved(faulty.allocator.stats()) == before);
  CHECK(pool->stats().allocations == 0);
  faulty.allocator.free(block);
}

}  // namespace
}  // namespace ebb::tests
