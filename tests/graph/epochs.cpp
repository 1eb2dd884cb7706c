// Every epoch looks alike: MEMORY.md, row 24.
#include <functional>

#include "ebb/core/device/runtime.h"
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/second_device.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/graph/trainings.h"

namespace ebb::tests {
namespace {

constexpr std::int64_t kWidth = 2048;
constexpr std::int64_t kBatchSize = 32;

struct Held {
  std::size_t allocated, reserved;
  bool operator==(const Held&) const = default;
};

// Returns the device's bytes after each step.
std::vector<Held> epochs(const std::string& mode, const DataSet& data, const Device& device,
                         int count, std::int64_t ahead) {
  std::vector<Held> held;
  const auto training = make_training(mode, kWidth, device);
  DataLoader loader(data,
                    {.batch = kBatchSize, .shuffle = Seed{1}, .device = device, .ahead = ahead});
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
  const DataSet data = samples(6 * kBatchSize + 5, kWidth);  // two shapes
  constexpr std::size_t kSteps = 7;
  for (const char* mode : kModes)
    for (const std::int64_t ahead : {0, 1})
      for (const Device& device : {own_test_device(), own_test_device().twin(),
                                   make_second_device({.captures_programs = true})}) {
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

// A training step on inputs of the given length.
using Step = std::function<void(std::int64_t length)>;

Step lstm_step(const std::string& mode, const Device& device) {
  struct OfLstm {
    OfLstm(bool as_graph, const Device& on) : mode(as_graph, DType::f32, Seed{7}, {.device = on}) {}
    InMode mode;
    models::Lstm lstm{mode.parameters, 4, {.hidden = 16}};
    InMode::Function step =
        mode.function({{DType::f32, {8, -1, 4}}}, [this](const Tensors& in) -> Tensors {
          return {optim::Adam().minimize(mean(square(lstm(in[0]).hidden)), mode.parameters)};
        });
  };
  const auto all = std::make_shared<OfLstm>(mode == "graph", device);
  return [=](std::int64_t length) {
    all->step({Tensor::zeros({8, length, 4}, DType::f32, device)});
  };
}

Step mlp_step(const std::string& mode, const Device& device) {
  const std::shared_ptr<Training> training = make_training(mode, kWidth, device);
  return [=](std::int64_t length) {
    training->step({Tensor::zeros({length, kWidth}, DType::f32, device),
                    Tensor::zeros({length}, DType::i32, device)});
  };
}

// Returns the reserved bytes after each step, or nothing if memory ran out.
std::vector<std::size_t> reserved_after(const Step& step, const Device& device, int passes) {
  std::vector<std::size_t> reserved;
  try {
    for (int pass = 0; pass < passes; ++pass)
      for (std::int64_t length = 8; length <= 208; length += 20) {
        step(length);
        reserved.push_back(memory::stats(device).reserved.current);
      }
  } catch (const OutOfMemory&) {
    return {};
  }
  return reserved;
}

TEST_CASE("inputs of many lengths reserve as much in the third pass as in the second, at any limit",
          "[row24][host]") {
  using Make = Step (*)(const std::string&, const Device&);
  const auto captures = [] {
    return make_second_device({.captures_programs = true, .capacity_bytes = 1 << 30});
  };
  for (const Make make : {lstm_step, mlp_step})
    for (const std::string mode : kModes) {
      const bool is_lstm = make == Make(lstm_step);
      CAPTURE(mode, is_lstm);
      const auto device_with = [&](std::size_t limit) {
        const Device device = captures().twin();
        memory::set_limit(device, limit);
        return device;
      };
      const auto check = [&](std::size_t limit, const Device& device) {
        CAPTURE(limit, device.name());
        const std::vector<std::size_t> reserved = reserved_after(make(mode, device), device, 4);
        if (reserved.empty()) return false;
        const std::size_t each = reserved.size() / 4;
        for (std::size_t i = 2 * each; i < reserved.size(); ++i)
          if (limit == memory::kNoLimit)
            CHECK(reserved[i] == reserved[2 * each - 1]);
          else
            CHECK(reserved[i] == reserved[i - each]);
        CHECK(reserved.back() <= limit);
        return true;
      };
      CHECK(check(memory::kNoLimit, device_with(memory::kNoLimit)));
      CHECK(check(memory::kNoLimit, captures()));
      std::size_t refused = 0, granted = 512;
      while (granted - refused > 1) {
        const std::size_t middle = refused + (granted - refused) / 2, limit = middle << 16;
        (check(limit, device_with(limit)) ? granted : refused) = middle;
      }
      for (const std::size_t limit : {granted << 16, (granted << 16) + 1'000'000}) {
        const Device device = captures();
        memory::set_limit(device, limit);
        CHECK(check(limit, device));
      }
    }
}

}  // namespace
}  // namespace ebb::tests
