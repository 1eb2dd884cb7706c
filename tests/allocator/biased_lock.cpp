#include "ebb/allocator/biased_lock.h"

#include <array>
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

TEST_CASE("no two threads are ever inside, whenever the bias is revoked", "[concurrent]") {
  int violations = 0;
  for (int round = 0; round < 300; ++round) {
    BiasedLock lock;
    std::size_t count =
        0;  // plain: a race is an error to the thread sanitizer, and a lost count here
    constexpr std::size_t kVisits = 100;
    const std::size_t alone = static_cast<std::size_t>(round);
    std::thread owner([&] {
      for (std::size_t i = 0; i < alone + kVisits; ++i) {
        BiasedLock::Guard guard(lock);
        ++count;
      }
    });
    std::array<std::thread, 2> visitors;
    for (std::thread& visitor : visitors) {
      visitor = std::thread([&] {
        for (std::size_t i = 0; i < kVisits; ++i) {
          BiasedLock::Guard guard(lock);
          ++count;
        }
      });
    }
    owner.join();
    for (std::thread& visitor : visitors) visitor.join();
    if (count != alone + 3 * kVisits) ++violations;
  }
  CHECK(violations == 0);
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
