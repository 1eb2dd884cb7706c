// The twin says that a program fits exactly when it runs on a device of that capacity.
#include "ebb/allocator/simulated_source.h"
#include "ebb/tests/allocator/random_program.h"

namespace ebb::tests {
namespace {

using namespace memory;

constexpr int kSteps = 300;

Profile make_profile(bool grows) {
  Profile profile = grows ? Profile{} : in_segments();
  profile.range_bytes = std::size_t{64} << 20;
  return profile;
}

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
