// Every epoch looks alike.
#include "ebb/core/device/runtime.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/second_device.h"
#include "ebb/tests/device/own_deferred.h"
#include "ebb/tests/graph/trainings.h"

namespace ebb::tests {
namespace {

constexpr std::int64_t kColumns = 2048;
constexpr std::int64_t kBatch = 32;

struct Held {
  std::size_t allocated, reserved;
  bool operator==(const Held&) const = default;
};

// What the device holds after each step.
std::vector<Held> epochs(const std::string& mode, const DataSet& data, const Device& device,
                         int count, std::int64_t ahead) {
  std::vector<Held> held;
  const auto training = make_training(mode, kColumns, device);
  DataLoader loader(data, {.batch = kBatch, .shuffle = Seed{1}, .device = device, .ahead = ahead});
  for (int epoch = 0; epoch < count; ++epoch)
    for (auto [x, y] : loader) {
      static_cast<void>(training->step({x, y}));
      const memory::Stats stats = device.runtime().allocator().stats();
      held.push_back({stats.allocated.current, stats.reserved.current});
    }
  return held;
}

TEST_CASE("from the second step of each shape on a device holds the same, epoch after epoch",
          "[concurrent]") {
  const DataSet data = samples(6 * kBatch + 5, kColumns);  // two shapes
  constexpr std::size_t kSteps = 7;
  const OwnDeferred captures, in_place(1, false);
  for (const char* mode : kModes)
    for (const std::int64_t ahead : {0, 1})
      for (const Device& device : {make_second_device(), make_second_device().twin(),
                                   *captures.device, *in_place.device}) {
        INFO(mode << " on " << device.name() << ", ahead " << ahead);
        device.runtime().allocator().release_cached();
        const std::vector<Held> held = epochs(mode, data, device, 5, ahead);
        REQUIRE(held.size() == 5 * kSteps);
        for (std::size_t step = 2; step < kSteps - 1; ++step) CHECK(held[step] == held[1]);
        for (std::size_t step = 2 * kSteps; step < held.size(); ++step) {
          CHECK(held[step] == held[step - kSteps]);
          CHECK(held[step].reserved == held[2 * kSteps - 1].reserved);
        }
        CHECK(device.runtime().allocator().stats().allocated.current == 0);
      }
}

}  // namespace
}  // namespace ebb::tests
