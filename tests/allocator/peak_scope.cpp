#include "ebb/allocator/peak_scope.h"

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "ebb/tests/allocator/faulty.h"
#include "ebb/tests/allocator/model.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

using namespace memory;

TEST_CASE("scopes that open, are read and close in any order each see exactly their own peak") {
  struct Open {
    std::unique_ptr<PeakScope> scope;
    std::size_t bytes;
    ByCategory split;
  };
  const auto allocator = simulated();
  std::vector<Open> open;
  std::vector<Block*> live;
  ByCategory now{};
  Random random(11);
  const auto total = [&] { return allocator->allocated_bytes(); };
  for (int i = 0; i < 50'000; ++i) {
    const std::size_t kind = random.below(20);
    if (kind == 0 && open.size() < 12) {
      open.push_back({std::make_unique<PeakScope>(*allocator), total(), now});
    } else if (kind == 1 && !open.empty()) {
      std::swap(open[random.below(open.size())], open.back());
      open.pop_back();
    } else if (kind == 2) {
      allocator->reset_peaks();               // of no concern to scopes
    } else if (kind == 3 && !live.empty()) {  // at a peak, its split stays what it was
      Block* block = live[random.below(live.size())];
      const Category category = random.category();
      now[static_cast<std::size_t>(block->category())] -= block->allocated_bytes();
      now[static_cast<std::size_t>(category)] += block->allocated_bytes();
      allocator->recategorise(block, category);
    } else if (random.below(50) < live.size()) {
      std::swap(live[random.below(live.size())], live.back());
      now[static_cast<std::size_t>(live.back()->category())] -= live.back()->allocated_bytes();
      allocator->free(live.back());
      live.pop_back();
    } else {
      live.push_back(allocator->allocate({.bytes = random.bytes(), .category = random.category()}));
      now[static_cast<std::size_t>(live.back()->category())] += live.back()->allocated_bytes();
      for (Open& scope : open) {
        if (total() > scope.bytes) scope.bytes = total(), scope.split = now;
      }
    }
    if (!open.empty() && random.one_in(3)) {
      const Open& read = open[random.below(open.size())];
      if (read.scope->bytes() != read.bytes) FAIL("the peak of a scope is wrong");
      if (read.scope->by_category() != read.split) FAIL("the split at a peak is wrong");
    }
  }
  open.clear();
  for (Block* block : live) allocator->free(block);
}

TEST_CASE("a scope on a pool sees that pool alone, and one on the device sees both") {
  const auto allocator = simulated();
  const auto pool = allocator->make_pool("session");
  Block* before = pool->allocate({.bytes = 512});
  PeakScope of_pool(*pool), of_device(*allocator);
  Block* shared = allocator->allocate({.bytes = 4096});
  pool->free(pool->allocate({.bytes = 1024, .category = Category::workspace}));
  allocator->free(shared);
  pool->free(before);
  CHECK(of_pool.bytes() == 512 + 1024);
  CHECK(of_pool.by_category()[static_cast<std::size_t>(Category::workspace)] == 1024);
  CHECK(of_device.bytes() == 512 + 1024 + 4096);
}

TEST_CASE("a scope that outlives what it measures keeps its last reading") {
  const auto allocator = simulated();
  auto pool = allocator->make_pool("session");
  auto scope = std::make_unique<PeakScope>(*pool);
  pool->allocate({.bytes = 2048});
  pool.reset();
  CHECK(scope->bytes() == 2048);
  scope.reset();
}

TEST_CASE("an arena's categories are those of its split, for scopes on its pool and its device") {
  const auto allocator = simulated();
  const auto pool = allocator->make_pool("session");
  ByCategory split{};
  split[static_cast<std::size_t>(Category::activation)] = 4096;
  split[static_cast<std::size_t>(Category::workspace)] = 512;
  PeakScope of_pool(*pool), of_device(*allocator);
  Block* arena = pool->allocate({.bytes = 4608}, {split, {}});
  CHECK(of_pool.by_category() == split);
  CHECK(of_device.by_category() == split);
  split[static_cast<std::size_t>(Category::temporary)] = 3584;  // what is left of its pages
  REQUIRE(pool->grow(arena, {.bytes = 8192}, {split, {}}));
  CHECK(of_pool.bytes() == 8192);
  CHECK(of_pool.by_category() == split);
  CHECK(of_device.by_category() == split);
  pool->close();
  CHECK(of_pool.bytes() == 8192);
  const PeakScope later(*allocator);
  CHECK(later.bytes() == 0);
  CHECK(later.by_category() == ByCategory{});
}

TEST_CASE("scopes open and close in many threads while others allocate", "[concurrent]") {
  constexpr std::size_t kThreads = 4, kHeld = 1 << 20;
  const auto allocator = simulated();
  Block* held = allocator->allocate({.bytes = kHeld, .category = Category::parameter});
  std::atomic<int> wrong = 0;
  const PeakScope all(*allocator);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      std::optional<PeakScope> outlives;  // each of these closes in the round after its own
      for (int i = 0; i < 2000; ++i) {
        const PeakScope outer(*allocator);
        const std::size_t bytes = 512 * (1 + random.below(8));
        Block* block = allocator->allocate({.bytes = bytes, .category = random.category()});
        outlives.emplace(*allocator);
        allocator->free(block);
        // Both scopes saw this thread's block, and no thread holds more than 4 KiB.
        for (const PeakScope* scope : {&outer, &std::as_const(*outlives)}) {
          const std::size_t peak = scope->bytes();
          if (peak < kHeld + bytes || peak > kHeld + kThreads * 4096) ++wrong;
          std::size_t sum = 0;
          for (const std::size_t part : scope->by_category()) sum += part;
          if (sum < peak) ++wrong;  // read later: more, at most
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(all.bytes() >= kHeld + 4096);
  CHECK(all.bytes() <= kHeld + kThreads * 4096);
  CHECK(PeakScope(*allocator).bytes() == kHeld);
  allocator->free(held);
}

TEST_CASE("a scope is read while another thread ends what it measures", "[concurrent]") {
  const auto allocator = simulated();
  for (int round = 0; round < 200; ++round) {
    auto pool = allocator->make_pool("session");
    pool->allocate({.bytes = 2048});
    PeakScope scope(*pool);
    std::optional<PeakScope> closes(*pool);
    std::atomic<bool> reads = false;
    std::atomic<int> wrong = 0;
    std::thread other([&] {
      for (int i = 0; i < 300; ++i) {
        if (scope.bytes() != 2048) ++wrong;
        reads = true;
      }
      closes.reset();
    });
    while (!reads) std::this_thread::yield();
    pool.reset();
    other.join();
    if (wrong > 0 || scope.bytes() != 2048) FAIL("the last reading was not kept");
  }
}

}  // namespace
}  // namespace ebb::tests
