// A prediction says that a program fits exactly when it then runs: MEMORY.md, rows 14 and 16.
#include <functional>
#include <random>

#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/second_device.h"
#include "ebb/tests/graph/models.h"

using namespace ebb;
using namespace ebb::literals;
using ebb::tests::ClassifierData;
using ebb::tests::ClassifierGraph;

namespace {

using Program = std::function<void(const Device&)>;

bool runs(const Program& program, const Device& device) {
  bool ran = true;
  try {
    program(device);
  } catch (const OutOfMemory&) {
    ran = false;
  }
  REQUIRE(memory::stats(device).allocated.current == 0);
  memory::release_cached(device);
  REQUIRE(memory::stats(device).reserved.current == 0);
  return ran;
}

bool fits(const Program& program, const Device& device) {
  return memory::predict(device, program).fits;
}

// Finds the smallest limit, in pages, under which the program runs. There and around it the twin
// must predict the same, and name a limit that is the smallest around.
void check_border(const Program& program, const Device& device, std::mt19937& random) {
  const std::size_t page = device.runtime().profile().page_bytes;
  std::size_t refused = 0, granted = 1;
  const auto agrees_at = [&](std::size_t limit) {
    CAPTURE(limit);
    memory::set_limit(device, limit);
    const bool predicted = fits(program, device), ran = runs(program, device);
    CHECK(predicted == ran);
    return ran;
  };
  memory::set_limit(device, std::nullopt);
  const memory::Prediction predicted = memory::predict(device, program);
  REQUIRE(predicted.fits);
  REQUIRE(runs(program, device));
  const std::size_t least = predicted.least_limit_bytes;
  CHECK(agrees_at(least));
  CHECK_FALSE(agrees_at(least - 1));
  memory::set_limit(device, std::nullopt);
  while (!agrees_at(granted * page)) granted *= 2;
  while (granted - refused > 1) {
    const std::size_t middle = refused + (granted - refused) / 2;
    (agrees_at(middle * page) ? granted : refused) = middle;
  }
  CHECK(least <= granted * page);
  for (const std::ptrdiff_t off : {-1, 1, 4095}) agrees_at(granted * page + std::size_t(off));
  // A lower limit may be enough again, when a block that lay in the way of a larger range is not
  // there.
  for (int i = 0; i < 6; ++i)
    agrees_at((granted - std::min<std::size_t>(granted, random() % 16)) * page + random() % page);
  memory::set_limit(device, std::nullopt);
}

Program eager_program(std::mt19937& random) {
  const auto seed = static_cast<unsigned>(random());
  return [seed](const Device& device) {
    std::mt19937 draws(seed);
    std::vector<Tensor> held;
    for (int i = 0; i < 40; ++i) {
      const auto size = static_cast<std::int64_t>(draws() % 3 ? 1 + draws() % 20'000
                                                              : 100'000 + draws() % 900'000);
      held.push_back(Tensor::zeros({size}, DType::f32, device));
      if (draws() % 2) held.back() = held.back() * 2 + 1;
      if (draws() % 3 == 0) held.erase(held.begin() + long(draws() % held.size()));
      if (draws() % 16 == 0) memory::release_cached(device);
    }
  };
}

Program session_program(std::mt19937& random, bool preallocates) {
  const auto rows = static_cast<std::int64_t>(1 + random() % 20'000);
  const auto fewer = static_cast<std::int64_t>(1 + random() % 5000);
  const std::size_t ahead = (random() % 8) << 20;
  return [=](const Device& device) {
    const ClassifierGraph model;
    const ClassifierData data(rows, device), less(fewer, device);
    SessionOptions options{.device = device};
    if (preallocates) {
      options.memory_limit = ahead + 3_MiB;
      options.growth = memory::Growth::preallocate;
    }
    Session first = model.open(options), second = model.open({.device = device});
    for (int i = 0; i < 2; ++i) {
      if (!preallocates) first.run(model.train, {{model.x, data.x}, {model.y, data.y}});
      second.run(model.train, {{model.x, less.x}, {model.y, less.y}});
      const Tensor scores = second.run(model.scores, {{model.x, data.x}});
      first.suspend();
      const Tensor eager = scores * 2;
      second.close();
      first.resume();
      second = model.open({.device = device});
    }
  };
}

std::vector<Device> all_devices() {
  using tests::make_second_device;
  return {make_second_device({.captures_programs = true, .capacity_bytes = 1_GiB}),
          make_second_device({.capacity_bytes = 1_GiB}),
          make_second_device({.captures_programs = true, .grows = false, .capacity_bytes = 1_GiB})};
}

}  // namespace

TEST_CASE("an eager program fits by prediction exactly when it runs, at every limit",
          "[row14][row16][host]") {
  std::mt19937 random(11);
  for (const Device& device : all_devices())
    for (int i = 0; i < 2; ++i) {
      CAPTURE(device.name(), i);
      check_border(eager_program(random), device, random);
    }
}

TEST_CASE("a program of sessions fits by prediction exactly when it runs, at every limit",
          "[row14][row16][host]") {
  std::mt19937 random(12);
  for (const Device& device : all_devices())
    for (int i = 0; i < 2; ++i) {
      CAPTURE(device.name(), i);
      const bool preallocates = i % 2 && device.runtime().profile().grows;
      check_border(session_program(random, preallocates), device, random);
    }
}

TEST_CASE("a prediction counts on past the capacity, with the peak of a device that has enough",
          "[row14][host]") {
  std::mt19937 random(13);
  for (int i = 0; i < 6; ++i) {
    const Program program = i % 2 ? session_program(random, false) : eager_program(random);
    const memory::Prediction enough = memory::predict(Device::simulated("cpu", 1_GiB), program);
    const memory::Prediction past = memory::predict(Device::simulated("cpu", 64_KiB), program);
    CHECK(enough.fits);
    CHECK_FALSE(past.fits);
    CHECK(past.peak_bytes >= enough.peak_bytes - enough.peak_bytes / 2);
    CHECK(past.peak_bytes <= enough.peak_bytes);  // arenas have given way
    CHECK(past.reserved_peak_bytes <= enough.reserved_peak_bytes);
    CHECK(past.capacity_bytes == 64_KiB);
    CHECK(past.least_limit_bytes == enough.least_limit_bytes);
  }
}

TEST_CASE("a fraction is of as many bytes on the twin as on its device", "[row10][row14][host]") {
  const ClassifierGraph model;
  for (const Device& device : all_devices()) {
    CAPTURE(device.name());
    const Tensor held = Tensor::zeros({64 << 18}, DType::f32, device);
    memory::set_limit(device, 200_MiB);
    std::vector<std::size_t> limits;
    const Program program = [&](const Device& on) {
      limits.clear();
      Session session(model.graph, {.device = on, .memory_limit = memory::Limit::fraction(0.3)});
      limits.push_back(session.stats().limit);
      session.set_memory_limit(memory::Limit::fraction(0.01));
      limits.push_back(session.stats().limit);
      // A threshold's fraction is of the limit.
      std::size_t allocated = 0;
      const memory::Watch watch = memory::on_threshold(
          on, memory::Limit::fraction(0.5),
          [&](const memory::Pressure& now) { allocated = now.allocated_bytes; });
      const std::size_t before = memory::stats(on).allocated.current;
      std::vector<Tensor> tensors;
      for (std::size_t taken = before; taken < 110_MiB; taken += 1_MiB)
        tensors.push_back(Tensor::zeros({1 << 18}, DType::f32, on));
      limits.push_back(allocated);
      memory::set_limit(on, memory::Limit::fraction(0.75));
      limits.push_back(memory::stats(on).limit);
      memory::set_limit(on, 200_MiB);
    };
    program(device);
    const std::vector<std::size_t> on_device = limits;
    REQUIRE(on_device[2] > 100_MiB);
    memory::predict(device, program);
    CHECK(limits == on_device);
    memory::predict(device, [&](const Device& twin) { memory::predict(twin, program); });
    CHECK(limits == on_device);
  }
}

TEST_CASE("what an idle session's arena holds counts as room, and what a run uses does not",
          "[row14][row16][host]") {
  for (const Device& device : all_devices()) {
    CAPTURE(device.name());
    const ClassifierGraph model;
    const ClassifierData data(20'000, device);
    Session idle = model.open({.device = device});
    const auto train = [&] { idle.run(model.train, feeds(model, data)); };
    train();
    const std::size_t arena = idle.memory().arena_bytes;
    REQUIRE(arena > 2_MiB);
    const Program program = [](const Device& on) {
      std::vector<Tensor> held;
      for (int i = 0; i < 3; ++i) held.push_back(Tensor::zeros({1 << 18}, DType::f32, on));
    };
    memory::release_cached(device);
    const std::size_t reserved = memory::stats(device).reserved.current;
    int ran_in_its_place = 0, refused = 0;
    for (std::size_t limit = reserved - arena; limit < reserved + 4_MiB; limit += 256_KiB) {
      CAPTURE(limit, reserved, arena);
      memory::set_limit(device, std::nullopt);
      memory::release_cached(device);
      train();
      memory::release_cached(device);
      REQUIRE(memory::stats(device).reserved.current == reserved);
      REQUIRE(idle.memory().arena_bytes == arena);
      // Other tensors take the room, since set_limit() would take the arena away at once.
      const Tensor others = Tensor::zeros({static_cast<std::int64_t>(reserved + 4_MiB - limit) / 4},
                                          DType::f32, device);
      memory::set_limit(device, reserved + 4_MiB);
      const bool predicted = fits(program, device);
      bool ran = true;
      try {
        program(device);
      } catch (const OutOfMemory&) {
        ran = false;
      }
      CHECK(predicted == ran);
      ran_in_its_place += ran && idle.memory().arena_bytes < arena;
      refused += !ran;
    }
    if (device.runtime().profile().grows) {  // segments of fixed size have room of their own
      CHECK(ran_in_its_place > 0);
      CHECK(refused > 0);
    }
  }
}
