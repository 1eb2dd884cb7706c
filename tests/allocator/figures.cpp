// The allocator's figures against a plain model that also keeps peaks, totals and splits, unlike
// random.cpp.
#include <vector>

#include "ebb/tests/allocator/faulty.h"
#include "ebb/tests/allocator/model.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

using namespace memory;

TEST_CASE("the figures of a device are the sums over its pools and its cache, those of a model") {
  const bool grows = GENERATE(true, false);
  CAPTURE(grows);
  const auto made = simulated(grows ? Profile{} : in_segments());
  CachingAllocator& allocator = *made;
  const auto a = allocator.make_pool("a"), b = allocator.make_pool("b");
  Model device, of_a, of_b;
  Random random(10);
  struct Owned {
    Block* block;
    Pool* pool;    // null: of the cache
    Model* model;  // the pool's
  };
  std::vector<Owned> live;
  std::size_t refused = 0;
  const auto allocate = [&](Pool* pool, Model* model) {
    const Request request{.bytes = random.bytes(), .category = random.category()};
    try {
      live.push_back({pool ? pool->allocate(request) : allocator.allocate(request), pool, model});
    } catch (const OutOfMemory&) {
      ++refused;
      return;
    }
    device.allocate(request.bytes, request.category);
    if (model) model->allocate(request.bytes, request.category);
    const auto at = reinterpret_cast<std::uintptr_t>(live.back().block->data());
    if (at % 512 != 0) FAIL("not aligned to 512");
  };
  const auto free_one = [&] {
    std::swap(live[random.below(live.size())], live.back());
    const auto [block, pool, model] = live.back();
    live.pop_back();
    const std::size_t bytes = block->requested_bytes();
    const Category from = block->category(), to = pool ? from : random.category();
    for (Model* each : {&device, model})
      if (each) each->recategorise(bytes, from, to), each->free(bytes, to);
    if (!pool) allocator.recategorise(block, to);
    pool ? pool->free(block) : allocator.free(block);
  };
  for (int i = 0; i < 100'000; ++i) {
    const std::size_t kind = random.below(500);
    if (kind == 0) {
      allocator.release_cached();
    } else if (kind == 1) {
      allocator.set_limit(random.below(120 << 20));
    } else if (kind == 2) {
      allocator.reset_peaks();
      device.reset_peaks();
    } else if (random.below(100) < live.size()) {
      free_one();
    } else if (const std::size_t owner = random.below(3); owner == 0) {
      allocate(nullptr, nullptr);
    } else {
      owner == 1 ? allocate(a.get(), &of_a) : allocate(b.get(), &of_b);
    }
    if (!device.agrees_with(allocator.stats())) FAIL("the device's figures are wrong");
    if (!of_a.agrees_with(a->stats())) FAIL("a's figures are wrong");
    if (!of_b.agrees_with(b->stats())) FAIL("b's figures are wrong");
  }
  CHECK(refused > 100);  // else the limits were never felt
  while (!live.empty()) free_one();
}

}  // namespace
}  // namespace ebb::tests
