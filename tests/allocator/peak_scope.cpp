#include "ebb/allocator/peak_scope.h"

#include <memory>
#include <vector>

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
      allocator->reset_peaks();  // of no concern to scopes
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

}  // namespace
}  // namespace ebb::tests
