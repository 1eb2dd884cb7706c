// Rows 8, 9 and 22 of the memory behaviours: which memory is given back, which is kept ahead, and
// why.
#include <cstring>
#include <memory>
#include <vector>

#include "ebb/allocator/event_log.h"
#include "ebb/allocator/host_source.h"
#include "ebb/tests/allocator/faulty.h"
#include "ebb/tests/allocator/model.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

using namespace memory;

TEST_CASE("with one live block in each of ten stretches, all but the pages they share goes back") {
  CachingAllocator allocator(std::make_unique<HostSource>(1024 * kMiB), Profile{});
  constexpr std::size_t kBytes = 2 * kMiB + 1000;
  std::vector<Block*> live, freed;
  for (int i = 0; i < 10; ++i) {
    live.push_back(allocator.allocate({.bytes = kBytes}));
    std::memset(live.back()->data(), i, kBytes);
    freed.push_back(allocator.allocate({.bytes = 18 * kMiB}));
  }
  for (Block* block : freed) allocator.free(block);
  const std::size_t before = allocator.reserved_bytes();
  const ReleaseReport report = allocator.release_cached();
  CHECK(report.returned_bytes == before - allocator.reserved_bytes());
  CHECK(report.returned_bytes >= 10 * 18 * kMiB - 20 * 4096);
  CHECK(report.pinned_bytes < 20 * 4096);
  CHECK(report.pinned_bytes == allocator.reserved_bytes() - allocator.allocated_bytes());
  CHECK(allocator.fragmentation().pinned_bytes == report.pinned_bytes);
  for (int i = 0; i < 10; ++i) {
    const auto* bytes =
        static_cast<const unsigned char*>(live[static_cast<std::size_t>(i)]->data());
    CHECK((bytes[0] == i && std::memcmp(bytes, bytes + 1, kBytes - 1) == 0));
  }
  // The holes are filled before the range grows.
  for (Block*& block : freed) block = allocator.allocate({.bytes = 17 * kMiB});
  CHECK(allocator.reserved_bytes() <= before);
  for (Block* block : live) allocator.free(block);
  for (Block* block : freed) allocator.free(block);
  allocator.release_cached();
  CHECK(allocator.reserved_bytes() == 0);
}

TEST_CASE("a release says what a live block keeps in segments of fixed size") {
  Faulty device(in_segments());
  Block* live = device.allocator.allocate({.bytes = 512});
  device.allocator.free(device.allocator.allocate({.bytes = 5 * kMiB}));
  const ReleaseReport report = device.allocator.release_cached();
  CHECK(report.returned_bytes == 20 * kMiB);
  CHECK(report.pinned_bytes == 2 * kMiB - 512);
  CHECK(describe(report) ==
        "20 MiB returned; 2.0 MiB free but kept in pages that live blocks use too");
  device.allocator.free(live);
}

TEST_CASE("a device takes its time to take a segment back, and figures are read meanwhile") {
  struct Slow final : ForwardingSource {
    using ForwardingSource::ForwardingSource;
    bool unmap(void* base, std::size_t bytes) noexcept override {
      seen = allocator->stats().reserved.current;  // would wait forever for a lock that is held
      return ForwardingSource::unmap(base, bytes);
    }
    const CachingAllocator* allocator = nullptr;
    std::size_t seen = 0;
  };
  auto source = std::make_unique<Slow>(std::make_shared<SimulatedSource>(1024 * kMiB, 4096));
  Slow& slow = *source;
  CachingAllocator allocator(std::move(source), in_segments());
  slow.allocator = &allocator;
  allocator.free(allocator.allocate({.bytes = 512}));
  CHECK(allocator.release_cached().returned_bytes == 2 * kMiB);
  CHECK(slow.seen == 2 * kMiB);
  CHECK(allocator.reserved_bytes() == 0);
}

TEST_CASE("what a device does not take back is reported, stays reserved, and goes the next time") {
  const bool grows = GENERATE(true, false);
  const bool closes_again = GENERATE(true, false);
  CAPTURE(grows, closes_again);
  Faulty device(grows ? Profile{} : in_segments());
  CachingAllocator& allocator = device.allocator;
  const auto pool = allocator.make_pool("session");
  Block* pooled = pool->allocate({.bytes = 4 * kMiB});
  Block* arena = pool->allocate({.bytes = 4 * kMiB});
  allocator.free(allocator.allocate({.bytes = 20 * kMiB}));
  device.source->keep_all(true);
  const ReleaseReport report = allocator.release_cached();
  CHECK(report.returned_bytes == 0);
  CHECK(report.refused_bytes == 20 * kMiB);
  CHECK(describe(report) == "0 bytes returned; 20 MiB free but not taken back by the device");
  pool->free(pooled);
  CHECK(pool->allocated_bytes() == 4 * kMiB);
  CHECK(pool->reserved_bytes() == 8 * kMiB);
  CHECK(pool->suspend().returned_bytes == 0);
  CHECK(pool->has_memory(arena));
  CHECK(allocator.reserved_bytes() == 28 * kMiB);
  CHECK(allocator.reserved_bytes() == device.source->committed_bytes());
  const CloseReport closed = pool->close();
  CHECK(closed.freed_bytes == 4 * kMiB);
  CHECK(closed.returned_bytes == 0);
  device.source->keep_all(false);
  if (closes_again) CHECK(pool->close().returned_bytes == 8 * kMiB);
  CHECK(allocator.release_cached().returned_bytes == (closes_again ? 20 : 28) * kMiB);
  CHECK(pool->close().returned_bytes == 0);
  CHECK(device.source->committed_bytes() == 0);
}

TEST_CASE("what is preallocated is added to what is in use, and counts as nothing else") {
  Faulty device;
  CachingAllocator& allocator = device.allocator;
  Block* live = allocator.allocate({.bytes = 10 * kMiB});
  allocator.free(allocator.allocate({.bytes = 20 * kMiB}));
  allocator.reset_peaks();
  const Stats before = allocator.stats();
  const auto log = std::make_shared<EventLog>(100);
  allocator.set_recorder(log);
  allocator.preallocate(64 * kMiB);
  CHECK(allocator.reserved_bytes() == 64 * kMiB);
  const Stats after = allocator.stats();
  CHECK(after.allocated == before.allocated);
  CHECK(after.requested == before.requested);
  CHECK(after.by_category == before.by_category);
  REQUIRE(log->read().events.size() == 1);
  CHECK(log->read().events[0].kind == EventKind::map);
  CHECK(log->read().events[0].bytes == 34 * kMiB);
  allocator.set_recorder(nullptr);
  Block* block = allocator.allocate({.bytes = 50 * kMiB});
  CHECK(allocator.reserved_bytes() == 64 * kMiB);
  allocator.free(block);
  allocator.free(live);
}

TEST_CASE(
    "what is preallocated stays through a release, to the byte, until it is asked for no more") {
  const std::size_t bytes = GENERATE(10 * kMiB, 10 * kMiB + 100, 100);
  Faulty device;
  CachingAllocator& allocator = device.allocator;
  allocator.preallocate(bytes);
  allocator.free(allocator.allocate({.bytes = 40 * kMiB}));
  const ReleaseReport report = allocator.release_cached();
  CHECK(allocator.reserved_bytes() == Profile{}.in_pages(bytes));
  CHECK(report.preallocated_bytes == allocator.reserved_bytes());
  CHECK(report.pinned_bytes == 0);
  allocator.preallocate(0);
  CHECK(allocator.release_cached().returned_bytes == Profile{}.in_pages(bytes));
}

TEST_CASE(
    "the device's preallocation gives way to a pool under pressure, a pool's to nobody else") {
  Faulty device;
  CachingAllocator& allocator = device.allocator;
  allocator.set_limit(20 * kMiB);
  allocator.preallocate(20 * kMiB);
  const auto a = allocator.make_pool("a"), b = allocator.make_pool("b");
  a->preallocate(8 * kMiB);
  CHECK(a->reserved_bytes() == 8 * kMiB);
  CHECK(allocator.reserved_bytes() == 20 * kMiB);
  Block* of_b = b->allocate({.bytes = 12 * kMiB});
  CHECK_THROWS_AS(b->allocate({.bytes = 1}), OutOfMemory);
  CHECK_THROWS_AS(allocator.allocate({.bytes = 1}), OutOfMemory);
  Block* of_a = a->allocate({.bytes = 8 * kMiB});
  CHECK(a->reserved_bytes() == 8 * kMiB);
  a->free(of_a);
  CHECK(a->reserved_bytes() == 8 * kMiB);
  b->free(of_b);
  CHECK(a->close().returned_bytes == 8 * kMiB);
}

TEST_CASE(
    "what pools took of the device's preallocation is there again when they free it or close") {
  const bool by_limit = GENERATE(true, false);
  CAPTURE(by_limit);
  Faulty device;
  CachingAllocator& allocator = device.allocator;
  device.bound(by_limit, 20 * kMiB);
  allocator.preallocate(20 * kMiB);
  const auto pool = allocator.make_pool("session");
  const auto in_cache = [&] { return allocator.fragmentation().free_bytes; };
  Block* first = pool->allocate({.bytes = 6 * kMiB});
  Block* second = pool->allocate({.bytes = 6 * kMiB});
  CHECK(in_cache() == 8 * kMiB);
  CHECK_THROWS_AS(allocator.allocate({.bytes = 9 * kMiB}), OutOfMemory);
  CHECK(in_cache() == 8 * kMiB);
  pool->free(first);
  CHECK(in_cache() == 14 * kMiB);
  pool->free(second);
  CHECK(in_cache() == 20 * kMiB);
  pool->allocate({.bytes = 12 * kMiB});
  CHECK(in_cache() == 8 * kMiB);
  pool->close();
  CHECK(in_cache() == 20 * kMiB);
  CHECK(allocator.reserved_bytes() == 20 * kMiB);
}

TEST_CASE(
    "a suspended pool keeps nothing ahead, whatever is freed meanwhile, until it is resumed") {
  Faulty device;
  const auto pool = device.allocator.make_pool("session");
  pool->preallocate(8 * kMiB);
  Block* block = pool->allocate({.bytes = 4 * kMiB});
  CHECK(pool->reserved_bytes() == 8 * kMiB);
  CHECK(pool->suspend().returned_bytes == 8 * kMiB);
  pool->free(block);
  CHECK(pool->reserved_bytes() == 0);
  pool->resume();
  CHECK(pool->reserved_bytes() == 8 * kMiB);
}

TEST_CASE("a pool's limit lowered below what it keeps ahead gives that back, as far as it has to") {
  Faulty device;
  const auto pool = device.allocator.make_pool("session");
  pool->preallocate(8 * kMiB);
  Block* block = pool->allocate({.bytes = 4 * kMiB});
  pool->set_limit(6 * kMiB);
  CHECK(pool->reserved_bytes() == 6 * kMiB);
  pool->free(block);
  CHECK(pool->reserved_bytes() == 6 * kMiB);  // as much as the limit allows
  pool->set_limit({});
  pool->free(pool->allocate({.bytes = 4096}));
  CHECK(pool->reserved_bytes() == 8 * kMiB);
}

TEST_CASE(
    "what a pool keeps ahead is its own to the last byte, whatever the device's limit is then") {
  Faulty device;
  const auto pool = device.allocator.make_pool("session");
  pool->preallocate(8 * kMiB);
  device.allocator.set_limit(4 * kMiB);
  Block* block = pool->allocate({.bytes = 8 * kMiB});
  CHECK(pool->reserved_bytes() == 8 * kMiB);
  pool->free(block);
  CHECK(pool->reserved_bytes() == 4 * kMiB);  // as much again as the limit allows by now
  device.allocator.set_limit(7 * kMiB);
  pool->free(pool->allocate({.bytes = 4096}));
  CHECK(pool->reserved_bytes() == 7 * kMiB);
}

TEST_CASE("a preallocation that is refused throws, and changes nothing that is in use") {
  Faulty device;
  CachingAllocator& allocator = device.allocator;
  device.source->bound(1024 * kMiB);  // a real device: a twin would go past its capacity
  Block* live = allocator.allocate({.bytes = 4 * kMiB});
  const auto pool = allocator.make_pool("session", 8 * kMiB);
  for (const std::size_t bytes :
       {std::size_t{2000} * kMiB, std::size_t{1} << 63, ~std::size_t{0}}) {
    CHECK_THROWS_AS(allocator.preallocate(bytes), OutOfMemory);
    CHECK_THROWS_AS(pool->preallocate(bytes), OutOfMemory);
  }
  CHECK(allocator.allocated_bytes() == 4 * kMiB);
  CHECK(pool->reserved_bytes() == 0);
  allocator.free(live);
  allocator.release_cached();
  CHECK(device.source->committed_bytes() == 0);
  Faulty fixed(in_segments());
  CHECK_ERROR(fixed.allocator.preallocate(kMiB), Error, "no range to preallocate");
}

TEST_CASE("reserved is requested and rounding and the ends of pages and what is free, each told") {
  Faulty device;
  CachingAllocator& allocator = device.allocator;
  const auto pool = allocator.make_pool("session");
  pool->allocate({.bytes = 5000});                         // 5120 of 8192
  Block* a = allocator.allocate({.bytes = 2 * kMiB + 1});  // 512 more than 2 MiB, of 4 MiB
  const Fragmentation parts = allocator.fragmentation();
  CHECK(parts.rounding_bytes == 120 + 511);
  CHECK(parts.page_rounding_bytes == 3072);
  CHECK(parts.free_bytes == 2 * kMiB - 512);
  CHECK(parts.pinned_bytes == 4096 - 512);
  CHECK(parts.largest_free_bytes == 2 * kMiB - 512);
  CHECK(parts.free_pieces == 1);
  const Stats stats = allocator.stats();
  CHECK(stats.reserved.current == stats.requested.current + parts.rounding_bytes +
                                      parts.page_rounding_bytes + parts.free_bytes);
  allocator.free(a);
}

TEST_CASE("a refused preallocation of a pool leaves it what it had ahead") {
  const bool no_addresses = GENERATE(true, false);
  CAPTURE(no_addresses);
  Faulty device;
  device.source->bound(50 * kMiB);
  const auto pool = device.allocator.make_pool("session");
  pool->preallocate(10 * kMiB);
  device.source->refuse_addresses(no_addresses);
  CHECK_THROWS_AS(pool->preallocate(100 * kMiB), OutOfMemory);
  device.source->refuse_addresses(false);
  CHECK(pool->reserved_bytes() == 10 * kMiB);
  pool->free(pool->allocate({.bytes = 20 * kMiB}));
  CHECK(pool->reserved_bytes() == 10 * kMiB);
  pool->preallocate(40 * kMiB);
  CHECK(pool->reserved_bytes() == 40 * kMiB);
  CHECK(pool->close().returned_bytes == 40 * kMiB);
  CHECK(device.source->committed_bytes() == 0);
}

TEST_CASE("a pool that is closed preallocates nothing") {
  Faulty device;
  const auto pool = device.allocator.make_pool("session");
  pool->close();
  CHECK_ERROR(pool->preallocate(kMiB), Error, "pool session is closed");
  CHECK(device.allocator.reserved_bytes() == 0);
}

TEST_CASE("what a pool holds ahead is a segment while it has memory") {
  Faulty device;
  const auto pool = device.allocator.make_pool("session");
  const auto segments = [&] {
    CHECK(device.allocator.stats().segments == pool->stats().segments);
    return pool->stats().segments;
  };
  pool->preallocate(8 * kMiB);
  CHECK(segments() == 1);
  Block* part = pool->allocate({.bytes = 3 * kMiB});
  CHECK(segments() == 2);
  Block* rest = pool->allocate({.bytes = 5 * kMiB});
  CHECK(segments() == 2);  // nothing is ahead
  pool->free(rest);
  CHECK(segments() == 2);
  pool->free(part);
  CHECK(segments() == 1);
  pool->close();
  CHECK(segments() == 0);
}

TEST_CASE("large requests use what small ones have left over, before more memory is asked for") {
  Faulty device;
  CachingAllocator& allocator = device.allocator;
  std::vector<Block*> blocks;
  const auto allocate = [&](int count, std::size_t bytes) {
    for (int i = 0; i < count; ++i) blocks.push_back(allocator.allocate({.bytes = bytes}));
  };
  const auto free_all = [&] {
    for (Block* block : blocks) allocator.free(block);
    blocks.clear();
  };
  allocate(800, kMiB / 4);
  free_all();
  allocate(50, 4 * kMiB);
  CHECK(allocator.reserved_bytes() <= 216 * kMiB);
  CHECK(allocator.reserved_bytes() >= 200 * kMiB);
  free_all();
  // Small blocks stay out of memory that large ones left: long-lived ones would cut it up.
  allocator.release_cached();
  allocate(1, 64 * kMiB);
  free_all();
  allocate(1, kMiB / 4);
  CHECK(allocator.reserved_bytes() == 66 * kMiB);
  CHECK(allocator.fragmentation().largest_free_bytes == 64 * kMiB);
  free_all();
}

}  // namespace
}  // namespace ebb::tests
