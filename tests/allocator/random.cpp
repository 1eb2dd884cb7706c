// Random programs on the whole allocator: figures, bytes and contents stay right whatever is
// refused.
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

}  // namespace
}  // namespace ebb::tests
