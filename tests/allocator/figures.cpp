// The allocator's figures against a plain model that also keeps peaks, totals and splits, unlike
// random.cpp.
#include <memory>
#include <vector>

#include "ebb/allocator/host_source.h"
#include "ebb/allocator/simulated_source.h"
#include "ebb/tests/allocator/random_program.h"

namespace ebb::tests {
namespace {

using namespace memory;

constexpr std::size_t kCapacity = std::size_t{1} << 30;

std::unique_ptr<MemorySource> simulated() {
  return std::make_unique<SimulatedSource>(kCapacity, 4096);
}

TEST_CASE("the figures of a device are the sums over its pools and its cache, those of a model") {
  const bool grows = GENERATE(true, false);
  CAPTURE(grows);
  CachingAllocator allocator(simulated(), grows ? Profile{} : in_segments());
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

TEST_CASE("a device and its simulated twin hold the same figures after every call") {
  const bool grows = GENERATE(true, false);
  CAPTURE(grows);
  const Profile profile = grows ? Profile{} : in_segments();
  RandomProgram host(std::make_unique<HostSource>(kCapacity), profile, 3);
  RandomProgram twin(simulated(), profile, 3);
  for (int i = 0; i < 2'000; ++i) {
    host.step();
    twin.step();
    Stats a = host.allocator().stats(), b = twin.allocator().stats();
    a.device_free = b.device_free = a.device_total = b.device_total = 0;  // they differ
    if (!(a == b)) FAIL("the twin's figures differ at call " << i);
  }
  CHECK(host.refused() == twin.refused());
  host.finish();
  twin.finish();
}

TEST_CASE("the figures of allocated bytes do not depend on what the cache holds") {
  CachingAllocator fresh(simulated(), Profile{}), used(simulated(), Profile{});
  used.free(used.allocate({.bytes = 9'000'000}));
  used.free(used.allocate({.bytes = 700'000}));
  for (CachingAllocator* allocator : {&fresh, &used}) {
    allocator->reset_peaks();
    Block* a = allocator->allocate({.bytes = 8'999'999});
    Block* b = allocator->allocate({.bytes = 1});
    CHECK(allocator->stats().allocated.peak == 9'000'448 + 512);
    allocator->free(a);
    allocator->free(b);
  }
}

}  // namespace
}  // namespace ebb::tests
