// Random programs on the whole allocator: figures, bytes and contents stay right whatever is
// refused, and are those of the device's twin.
#include "ebb/allocator/host_source.h"
#include "ebb/allocator/simulated_source.h"
#include "ebb/tests/allocator/random_program.h"

namespace ebb::tests {
namespace {

using namespace memory;

constexpr std::size_t kCapacity = std::size_t{1} << 30;

std::unique_ptr<MemorySource> make_source(bool on_host) {
  if (on_host) return std::make_unique<HostSource>(kCapacity);
  return std::make_unique<SimulatedSource>(kCapacity, 4096);
}

// A profile small enough that programs need several ranges, and segments of several sizes.
Profile make_profile(bool grows) {
  Profile profile = grows ? Profile{} : in_segments();
  profile.range_bytes = std::size_t{64} << 20;
  return profile;
}

TEST_CASE("random programs keep the figures of a plain model and give everything back") {
  const bool grows = GENERATE(true, false);
  const bool injects = GENERATE(false, true);
  std::size_t refused = 0, taken = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    INFO("grows " << grows << ", injects " << injects << ", seed " << seed);
    RandomProgram program(make_source(false), make_profile(grows), seed, {.injects = injects});
    program.source().bound(std::size_t{150} << 20);
    for (int i = 0; i < 1'000; ++i) program.step();
    program.finish();
    refused += program.refused();
    taken += program.taken();
  }
  CHECK(refused > 100);  // else nothing was put to the test
  CHECK(taken > 50);
}

TEST_CASE(
    "what is written into live blocks of a random program stays, whatever is taken and moved") {
  const bool grows = GENERATE(true, false);
  const bool injects = GENERATE(false, true);
  for (std::uint64_t seed = 100; seed < 104; ++seed) {
    INFO("grows " << grows << ", injects " << injects << ", seed " << seed);
    RandomProgram program(make_source(true), make_profile(grows), seed,
                          {.injects = injects, .writes = true});
    program.source().bound(std::size_t{100} << 20);
    for (int i = 0; i < 400; ++i) program.step();
    program.finish();
  }
}

TEST_CASE("a device and its simulated twin hold the same figures after every call") {
  const bool grows = GENERATE(true, false);
  CAPTURE(grows);
  const Profile profile = grows ? Profile{} : in_segments();
  RandomProgram host(make_source(true), profile, 3);
  RandomProgram twin(make_source(false), profile, 3);
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

constexpr int kSteps = 300;  // of a program on devices of many capacities

bool runs(std::size_t capacity, bool grows, std::uint64_t seed) {
  RandomProgram program(std::make_unique<SimulatedSource>(std::size_t{1} << 40, 4096),
                        make_profile(grows), seed);
  program.source().bound(capacity);
  for (int i = 0; i < kSteps && program.refused_by_device() == 0; ++i) program.step();
  const bool ran = program.refused_by_device() == 0;
  if (ran) program.finish();
  return ran;
}

bool fits(std::size_t capacity, bool grows, std::uint64_t seed) {
  const auto twin = std::make_shared<SimulatedSource>(capacity, 4096);
  RandomProgram program(std::make_unique<ForwardingSource>(twin), make_profile(grows), seed);
  for (int i = 0; i < kSteps; ++i) program.step();
  CHECK(program.refused_by_device() == 0);  // the twin goes past its capacity
  return twin->fits();
}

TEST_CASE("a random program fits on the twin exactly when it runs on a device of that capacity") {
  const bool grows = GENERATE(true, false);
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    INFO("grows " << grows << ", seed " << seed);
    // Finds the least capacity, to the page, that the program runs on.
    std::size_t low = 0, high = std::size_t{1} << 19;  // pages
    while (high - low > 1) {
      const std::size_t middle = (low + high) / 2;
      (runs(middle * 4096, grows, seed) ? high : low) = middle;
    }
    CHECK(fits(high * 4096, grows, seed));
    CHECK_FALSE(fits(low * 4096, grows, seed));
    CHECK_FALSE(fits(high * 4096 - 1, grows, seed) != runs(high * 4096 - 1, grows, seed));
    for (int percent = 10; percent < 100; percent += 10) {
      const std::size_t capacity = high * 4096 / 100 * static_cast<std::size_t>(percent);
      CHECK(fits(capacity, grows, seed) == runs(capacity, grows, seed));
    }
  }
}

}  // namespace
}  // namespace ebb::tests
