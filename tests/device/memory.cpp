// The memory of the deferred device.
#include <cstring>

#include "ebb/tests/catch.h"
#include "ebb/tests/device/deferred_fixture.h"

namespace ebb::tests {
namespace {

TEST_CASE("the host can neither read nor write the deferred device's memory") {
  DeferredDevice device;
  volatile float* const x = device.floats(4);
  CHECK_FALSE(dies([] {}));
  CHECK(dies([&] { static_cast<void>(x[0]); }));
  CHECK(dies([&] { x[0] = 1; }));
}

TEST_CASE("new memory of the deferred device is not zero") {
  DeferredDevice device;
  const auto stream = device.backend.make_stream();
  const float value = device.value(stream.get(), device.floats(4));
  CHECK(value != value);
}

TEST_CASE("ranges of the deferred device do not touch, and none takes an address just given back") {
  DeferredMemory memory(1 << 20);
  const std::size_t page = memory.page_bytes();
  auto* const a = static_cast<std::byte*>(memory.reserve(page));
  auto* const b = static_cast<std::byte*>(memory.reserve(page));
  CHECK(b - a >= static_cast<std::ptrdiff_t>(2 * page));
  CHECK(memory.committed_bytes() == 0);
  CHECK(memory.generation_of(a, 1) == 0);
  REQUIRE(memory.commit(a, page));
  REQUIRE(memory.commit(b, page));
  CHECK(memory.generation_of(a, page) != 0);
  CHECK(memory.generation_of(a, page) != memory.generation_of(b, page));
  CHECK(memory.generation_of(a, page + 1) == 0);
  CHECK(memory.generation_of(a + page - 4, 8) == 0);
  CHECK(memory.generation_of(a - 1, 1) == 0);
  memory.decommit(b, page);
  CHECK(memory.generation_of(b, 1) == 0);
  memory.unreserve(b, page);
  CHECK(memory.reserve(page) != b);
}

TEST_CASE("the deferred device's source keeps to its capacity and counts what it has free") {
  const auto memory = std::make_shared<DeferredMemory>(1 << 20);
  DeferredSource source(memory);
  const std::size_t page = source.page_bytes();
  void* const half = source.map(1 << 19);
  CHECK(source.device_memory().total == 1 << 20);
  CHECK(source.device_memory().free == 1 << 19);
  CHECK(source.map((1 << 19) + page) == nullptr);
  void* const rest = source.map(1 << 19);
  CHECK(rest != nullptr);
  CHECK(source.map(page) == nullptr);
  source.unmap(half, 1 << 19);
  CHECK(source.map(1 << 19) != nullptr);
}

TEST_CASE(
    "memory of the deferred device comes and goes in pieces, and what is not given back stays") {
  DeferredDevice device;
  DeferredSource& source = device.source;
  const auto stream = device.backend.make_stream();
  const std::size_t page = source.page_bytes();
  auto* const base = static_cast<std::byte*>(source.reserve(4 * page));
  const auto at = [&](std::size_t pages) { return reinterpret_cast<float*>(base + pages * page); };
  REQUIRE(source.commit(base, page));
  REQUIRE(device.set(stream.get(), at(0), 3).ok());
  CHECK_FALSE(device.backend.fill(stream.get(), at(0), 0, 2 * page).ok());
  const std::uint64_t first = device.memory->generation_of(base, page);
  REQUIRE(source.commit(base + page, 2 * page));
  CHECK(device.memory->committed_bytes() == 3 * page);
  REQUIRE(device.backend.fill(stream.get(), at(1), 0, 2 * page).ok());
  CHECK(device.value(stream.get(), at(0)) == 3);
  CHECK(device.memory->generation_of(base, page) == first);

  REQUIRE(source.decommit(base + page, page));  // in the middle
  CHECK(device.memory->committed_bytes() == 2 * page);
  CHECK_FALSE(device.backend.fill(stream.get(), at(1), 0, page).ok());
  CHECK(device.value(stream.get(), at(2)) == 0);
  CHECK(device.value(stream.get(), at(0)) == 3);
  const std::uint64_t before = device.memory->generation_of(base, page);
  REQUIRE(source.decommit(base, page));
  REQUIRE(source.commit(base, 2 * page));
  CHECK(device.memory->generation_of(base, page) != before);
  const float value = device.value(stream.get(), at(0));
  CHECK(value != value);  // it came without its contents

  REQUIRE(source.decommit(base, 3 * page));
  source.unreserve(base, 4 * page);
  CHECK(device.memory->committed_bytes() == 0);
}

TEST_CASE("giving back what the deferred device did not hand out ends the process") {
  DeferredDevice device;
  DeferredSource& source = device.source;
  const std::size_t page = source.page_bytes();
  auto* const base = static_cast<std::byte*>(source.reserve(3 * page));
  REQUIRE(source.commit(base + page, page));
  CHECK_FALSE(dies([&] { source.decommit(base + page, page); }));
  CHECK(dies([&] { source.decommit(base, page); }));
  CHECK(dies([&] { source.decommit(base + page, 2 * page); }));
  CHECK(dies([&] { source.commit(base, 2 * page); }));
  CHECK(dies([&] { source.commit(base + 2 * page, 2 * page); }));
  CHECK(dies([&] { source.unreserve(base, 3 * page); }));  // with memory
  REQUIRE(source.decommit(base + page, page));
  CHECK(dies([&] { source.unreserve(base, page); }));
  CHECK_FALSE(dies([&] { source.unreserve(base, 3 * page); }));
  source.unreserve(base, 3 * page);
}

TEST_CASE("addresses of the deferred device come round after all were used") {
  DeferredMemory memory(std::size_t{1} << 34);
  constexpr std::size_t kRange = std::size_t{8} << 30;
  void* const first = memory.reserve(kRange);
  memory.unreserve(first, kRange);
  bool came_round = false;
  for (int i = 0; i < 10'000 && !came_round; ++i) {
    void* const range = memory.reserve(kRange);
    REQUIRE(range != nullptr);
    memory.unreserve(range, kRange);
    came_round = range == first;
  }
  CHECK(came_round);
}

TEST_CASE("giving memory back to the deferred device does the work that may use the memory first") {
  DeferredDevice device;
  const auto stream = device.backend.make_stream();
  float* const x = device.floats(1);
  float* const y = device.floats(1);
  REQUIRE(device.set(stream.get(), x, 3).ok());
  REQUIRE(launch_affine(device, stream.get(), y, x, {2, 1}).status.ok());
  REQUIRE(device.source.decommit(x, device.source.page_bytes()));
  CHECK(device.backend.waiting() == 0);
  CHECK(device.value(stream.get(), y) == 7);
}

TEST_CASE("an allocator over the deferred device gives back what work still waits for") {
  const auto memory = std::make_shared<DeferredMemory>(kTestCapacity);
  DeferredBackend backend(memory);
  memory::Profile profile;
  profile.page_bytes = memory->page_bytes();
  memory::CachingAllocator allocator(std::make_unique<DeferredSource>(memory), profile);
  const auto stream = backend.make_stream();
  memory::Block* const block = allocator.allocate({.bytes = 4096});
  REQUIRE(backend.fill(stream.get(), block->data(), 1, 4096).ok());
  allocator.free(block);
  allocator.release_cached();
  CHECK(memory->committed_bytes() == 0);
  CHECK(backend.synchronise(stream.get()).ok());
}

}  // namespace
}  // namespace ebb::tests
