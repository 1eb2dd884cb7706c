// Limits, growth, and memory returned to a device: MEMORY.md, rows 8 to 10.
#include <atomic>
#include <random>
#include <thread>

#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/tensor/tensor.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/kib.h"
#include "ebb/tests/core/second_device.h"
#include "ebb/tests/device/test_device.h"

using namespace ebb;
using ebb::tests::kib;
using namespace ebb::literals;

namespace {

// Devices of 1 GiB each, real and simulated.
std::vector<Device> devices() {
  const auto real = [] { return tests::make_second_device({.capacity_bytes = 1_GiB}); };
  return {real(), Device::simulated("cpu", 1_GiB), real().twin()};
}

std::size_t reserved(const Device& device) { return memory::stats(device).reserved.current; }

}  // namespace

TEST_CASE("release_cached says how much went and how much could not, and why", "[row8][host]") {
  for (const Device& device : devices()) {
    CAPTURE(device.name());
    std::vector<Tensor> kept, gone;
    for (int i = 0; i < 40; ++i) {
      kept.push_back(kib(1, device));
      gone.push_back(kib(i % 2 ? 1 : 300, device));
    }
    const Tensor large = kib(20'000, device);
    gone.push_back(kib(30'000, device));
    gone.clear();
    const std::size_t before = reserved(device);
    const memory::Fragmentation parts = memory::fragmentation(device);
    CHECK(parts.free_bytes > parts.pinned_bytes);
    const memory::ReleaseReport report = memory::release_cached(device);
    CHECK(report.returned_bytes == parts.free_bytes - parts.pinned_bytes);
    CHECK(report.pinned_bytes == parts.pinned_bytes);
    CHECK(report.pinned_bytes > 0);
    CHECK(report.refused_bytes == 0);
    CHECK(report.preallocated_bytes == 0);
    CHECK(reserved(device) == before - report.returned_bytes);
    CHECK(reserved(device) == memory::stats(device).allocated.current + report.pinned_bytes);
    const std::string line = memory::describe(report);
    CHECK(line.find(memory::format_bytes(report.returned_bytes)) != std::string::npos);
    CHECK(line.find(memory::format_bytes(report.pinned_bytes)) != std::string::npos);
    CHECK(memory::release_cached(device).returned_bytes == 0);
    kept.clear();
    CHECK(memory::release_cached(device).pinned_bytes == 0);
    CHECK(reserved(device) == memory::stats(device).allocated.current);
  }
}

TEST_CASE("a device that preallocates holds its limit, whatever is freed, and no more",
          "[row9][host]") {
  for (const Device& device : devices())
    for (const bool with_limit : {true, false}) {
      CAPTURE(device.name(), with_limit);
      const Tensor before = kib(100, device);
      if (with_limit) memory::set_limit(device, 64_MiB);
      { const Tensor cached = kib(3000, device); }
      const memory::Stats stats = memory::stats(device);
      const memory::Profile& profile = device.runtime().profile();
      const std::size_t left = profile.left_free(memory::available(device));
      const std::size_t most = with_limit ? 64_MiB : profile.whole_pages(1_GiB - left);
      memory::set_growth(device, memory::Growth::preallocate);
      CHECK(reserved(device) == most);
      CHECK(memory::stats(device).allocated == stats.allocated);
      {
        const Tensor some = kib(static_cast<std::int64_t>(most / 2048), device);
        CHECK(reserved(device) == most);
        CHECK_THROWS_AS(device.is_simulated() && !with_limit
                            ? throw OutOfMemory({})
                            : kib(static_cast<std::int64_t>(most / 1024), device),
                        OutOfMemory);
        CHECK(reserved(device) == most);
      }
      const memory::ReleaseReport report = memory::release_cached(device);
      CHECK(report.returned_bytes == 0);
      CHECK(report.preallocated_bytes > 0);
      CHECK(reserved(device) == most);
      memory::set_growth(device, memory::Growth::on_demand);
      memory::release_cached(device);
      CHECK(reserved(device) <= 104_KiB);
      memory::set_limit(device, std::nullopt);
    }
}

TEST_CASE("a limit in fractions is one of the capacity", "[row10][host]") {
  for (const Device& device : devices()) {
    memory::set_limit(device, memory::Limit::fraction(0.25));
    CHECK(memory::stats(device).limit == 256_MiB);
    const Tensor most = kib(200 * 1024, device);
    CHECK_THROWS_AS(kib(60 * 1024, device), OutOfMemory);
    memory::set_limit(device, memory::Limit::fraction(1));
    CHECK(memory::stats(device).limit == 1_GiB);
    memory::set_limit(device, std::nullopt);
  }
}

TEST_CASE("a device that preallocates leaves what its pools have reserved out", "[row9][host]") {
  for (const Device& device : devices()) {
    CAPTURE(device.name());
    memory::set_limit(device, 64_MiB);
    const auto pool = device.runtime().allocator().make_pool("session");
    pool->allocate({.bytes = 24_MiB});
    memory::set_growth(device, memory::Growth::preallocate);
    CHECK(reserved(device) == 64_MiB);
    CHECK(memory::fragmentation(device).free_bytes == 40_MiB);
    pool->close();
    memory::set_growth(device, memory::Growth::on_demand);
    memory::release_cached(device);
    memory::set_limit(device, std::nullopt);
  }
}

TEST_CASE("a threshold in fractions is one of the limit, or of the capacity without one",
          "[row17][host]") {
  for (const Device& device : devices())
    for (const bool with_limit : {true, false}) {
      CAPTURE(device.name(), with_limit);
      if (with_limit) memory::set_limit(device, 64_MiB);
      int told = 0;
      const memory::Watch watch = memory::on_threshold(device, memory::Limit::fraction(0.5),
                                                       [&](const memory::Pressure&) { ++told; });
      const std::int64_t half = with_limit ? 32 * 1024 : 512 * 1024;  // KiB
      { const Tensor reached = kib(half, device); }
      CHECK(told == 0);
      { const Tensor passed = kib(half + 1, device); }
      CHECK(told == 1);
      memory::release_cached(device);
      memory::set_limit(device, std::nullopt);
    }
}

TEST_CASE("a limit lowered at run time returns what is cached and refuses only what is new",
          "[row10][host]") {
  for (const Device& device : devices()) {
    CAPTURE(device.name());
    const Tensor kept = kib(10 * 1024, device);
    { const Tensor gone = kib(50 * 1024, device); }
    CHECK(reserved(device) >= 60_MiB);
    memory::set_limit(device, 20_MiB);
    CHECK(reserved(device) <= 20_MiB);
    memory::set_limit(device, 1_MiB);
    CHECK(reserved(device) == 10_MiB);
    CHECK_THROWS_AS(kib(4, device), OutOfMemory);
    CHECK(memory::available(device) == 0);
    memory::set_limit(device, 10_MiB + 4_KiB);
    CHECK_NOTHROW(kib(4, device));
    memory::set_limit(device, std::nullopt);
  }
}

TEST_CASE("reserved bytes stay below a limit that others change, with four threads allocating",
          "[row10][concurrent]") {
  const Device device = tests::own_test_device();
  constexpr std::size_t kHigh = 6_MiB, kLow = 2_MiB;
  memory::set_limit(device, kHigh);
  std::atomic<bool> stop = false;
  std::atomic<int> refused = 0, served = 0, beyond = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      while (!stop) try {
          const Tensor a = kib(1 + random() % 1500, device), b = a + 1;
          ++served;
          beyond += reserved(device) > kHigh;
        } catch (const OutOfMemory&) {
          ++refused;
        }
    });
  for (int i = 0; i < 100 || served < 60 || refused < 20; ++i) {
    memory::set_limit(device, i % 2 ? kHigh : kLow);
    if (i % 8 == 0) memory::release_cached(device);
    std::this_thread::yield();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(beyond == 0);
  CHECK(memory::stats(device).allocated.current == 0);
  memory::release_cached(device);
  CHECK(reserved(device) == 0);
}
