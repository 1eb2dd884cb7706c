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

TEST_CASE(
    "segments of the deferred device do not touch, and none takes an address just given back") {
  DeferredMemory memory(1 << 20);
  const std::size_t page = memory.page_bytes();
  auto* const a = static_cast<std::byte*>(memory.map(page));
  auto* const b = static_cast<std::byte*>(memory.map(page));
  CHECK(b - a >= static_cast<std::ptrdiff_t>(2 * page));
  CHECK(memory.segment_of(a, page) != 0);
  CHECK(memory.segment_of(a, page) != memory.segment_of(b, page));
  CHECK(memory.segment_of(a, page + 1) == 0);
  CHECK(memory.segment_of(a + page - 4, 8) == 0);
  CHECK(memory.segment_of(a - 1, 1) == 0);
  memory.unmap(b, page);
  CHECK(memory.segment_of(b, 1) == 0);
  CHECK(memory.map(page) != b);
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

TEST_CASE("a segment of the deferred device grows where it is until it meets the next") {
  DeferredDevice device;
  DeferredSource& source = device.source;
  const auto stream = device.backend.make_stream();
  const std::size_t page = source.page_bytes();
  auto* const x = static_cast<float*>(source.map(page));
  REQUIRE(device.set(stream.get(), x, 3).ok());
  CHECK_FALSE(device.backend.fill(stream.get(), x, 0, 2 * page).ok());
  REQUIRE(source.grow(x, page, 2 * page));
  CHECK(device.memory->mapped_bytes() == 2 * page);
  CHECK(device.backend.fill(stream.get(), x + page / sizeof *x, 0, page).ok());
  CHECK(device.value(stream.get(), x) == 3);
  auto* const next = static_cast<float*>(source.map(page));
  const auto room = static_cast<std::size_t>(next - x) * sizeof *x;
  CHECK_FALSE(source.grow(x, 2 * page, room));
  CHECK(source.grow(x, 2 * page, room - page));
  CHECK_FALSE(source.grow(next, page, kTestCapacity));
}

TEST_CASE("memory of the deferred device comes round after all addresses were used") {
  DeferredMemory memory(std::size_t{1} << 34);
  std::size_t used = 0;
  while (used < std::size_t{160} << 30) {  // twice the addresses and more
    void* const segment = memory.map(std::size_t{8} << 30);
    REQUIRE(segment != nullptr);
    memory.unmap(segment, std::size_t{8} << 30);
    used += std::size_t{8} << 30;
  }
  CHECK(memory.mapped_bytes() == 0);
}

TEST_CASE("unmap of the deferred device does the work that may use the memory first") {
  DeferredDevice device;
  const auto stream = device.backend.make_stream();
  float* const x = device.floats(1);
  float* const y = device.floats(1);
  REQUIRE(device.set(stream.get(), x, 3).ok());
  REQUIRE(launch_affine(device, stream.get(), y, x, {2, 1}).status.ok());
  device.source.unmap(x, device.source.page_bytes());
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
  CHECK(memory->mapped_bytes() == 0);
  CHECK(backend.synchronise(stream.get()).ok());
}

}  // namespace
}  // namespace ebb::tests
