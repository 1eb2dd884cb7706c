#include "ebb/allocator/biased_lock.h"

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "ebb/allocator/peak_scope.h"
#include "ebb/allocator/simulated_source.h"
#include "ebb/tests/allocator/model.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

using namespace memory;

TEST_CASE("the first thread keeps the bias until another one visits", "[concurrent]") {
  BiasedLock lock;
  const bool offered = lock.biased();  // not where the kernel has no membarrier
  for (int i = 0; i < 3; ++i) BiasedLock::Guard guard(lock);
  CHECK(lock.biased() == offered);
  std::thread([&] { BiasedLock::Guard guard(lock); }).join();
  CHECK_FALSE(lock.biased());
}

// Stays inside for a moment, and notices when somebody else has been there meanwhile.
struct Room {
  BiasedLock lock;
  std::size_t visits = 0;  // plain: a race here is an error to the thread sanitizer
  std::atomic<int> inside = 0;

  bool visit(int visitor) {
    BiasedLock::Guard guard(lock);
    ++visits;
    bool alone = true;
    for (int i = 0; i < 4; ++i) {
      inside.store(visitor, std::memory_order_relaxed);
      alone &= inside.load(std::memory_order_relaxed) == visitor;
      for (volatile int pause = 0; pause < 8;) pause = pause + 1;
      alone &= inside.load(std::memory_order_relaxed) == visitor;
    }
    return alone;
  }
};

// Revoking happens once in the life of a lock, so this takes many locks: in each of them the owner
// goes in and out as fast as it can while the visitor arrives.
TEST_CASE("no two threads are ever inside while the bias is revoked", "[concurrent]") {
  constexpr std::size_t kRooms = 10'000;
  const auto rooms = std::make_unique<Room[]>(kRooms);
  std::atomic<std::size_t> owned = 0, visited = 0;  // rooms
  std::atomic<std::size_t> visits = 0, intrusions = 0;
  std::thread owner([&] {
    for (std::size_t room = 0; room < kRooms; ++room) {
      for (int i = 0; i == 0 || visited.load() <= room; ++i) {
        if (!rooms[room].visit(1)) ++intrusions;
        ++visits;
        if (i == 0) owned.store(room + 1);
        if (i % 2048 == 2047) std::this_thread::yield();  // the visitor may want this very core
      }
    }
  });
  std::thread visitor([&] {
    for (std::size_t room = 0; room < kRooms; ++room) {
      while (owned.load() <= room) std::this_thread::yield();
      for (std::size_t wait = 0; wait < room % 64; ++wait) (void)owned.load();
      for (int i = 0; i < 3; ++i) {
        if (!rooms[room].visit(2)) ++intrusions;
        ++visits;
      }
      visited.store(room + 1);
    }
  });
  owner.join();
  visitor.join();
  CHECK(intrusions == 0);
  std::size_t counted = 0;
  for (std::size_t room = 0; room < kRooms; ++room) counted += rooms[room].visits;
  CHECK(counted == visits);
}

TEST_CASE("a thread may inherit the bias of one that has ended", "[concurrent]") {
  BiasedLock lock;
  std::size_t count = 0;
  for (int i = 0; i < 200; ++i) {
    std::thread([&] {
      for (int j = 0; j < 10; ++j) {
        BiasedLock::Guard guard(lock);
        ++count;
      }
    }).join();
  }
  CHECK(count == 2000);
}

TEST_CASE("totals are exact and figures return to zero after many threads", "[concurrent]") {
  CachingAllocator allocator(std::make_unique<SimulatedSource>(std::size_t{1} << 30, 4096),
                             Profile{});
  constexpr std::size_t kThreads = 4;
  std::array<std::size_t, kThreads> requested{};
  std::array<std::thread, kThreads> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads[t] = std::thread([&, t] {
      Random random(100 + t);
      const auto pool = allocator.make_pool("session");
      std::vector<Block*> live, pooled;
      for (int i = 0; i < 8'000; ++i) {
        PeakScope peak(allocator);
        if (random.below(30) < live.size()) {
          allocator.free(live.back());
          live.pop_back();
        } else {
          const std::size_t bytes = random.bytes();
          requested[t] += bytes;
          live.push_back(allocator.allocate({.bytes = bytes, .category = random.category()}));
          allocator.recategorise(live.back(), random.category());
        }
        if (random.one_in(50))
          requested[t] += 3000, pooled.push_back(pool->allocate({.bytes = 3000}));
        if (random.one_in(300)) allocator.release_cached();
        if (random.one_in(300) && !pooled.empty()) pool->free(pooled.back()), pooled.pop_back();
        if (random.one_in(100)) (void)allocator.holders(3);
        if (peak.bytes() > allocator.stats().allocated.peak) FAIL_CHECK("a scope above the peak");
      }
      for (Block* block : live) allocator.free(block);
    });
  }
  std::size_t total = 0;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads[t].join();
    total += requested[t];
  }
  allocator.release_cached();
  const Stats stats = allocator.stats();
  CHECK(stats.requested.total == total);
  CHECK(stats.requested.current == 0);
  CHECK(stats.allocated.current == 0);
  CHECK(stats.reserved.current == 0);
  CHECK(stats.allocations == 0);
  CHECK(stats.segments == 0);
  for (const Figure& figure : stats.by_category) CHECK(figure.current == 0);
}

}  // namespace
}  // namespace ebb::tests
