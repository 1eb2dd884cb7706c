// The figures of a device, limits, peaks and predictions, as users ask for them.
#include "ebb/core/memory/memory.h"

#include "ebb/core/base/error.h"
#include "ebb/core/memory/predict.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/random/random.h"
#include "ebb/core/tensor/tensor.h"
#include "ebb/tests/catch.h"

using namespace ebb;
using namespace ebb::literals;

namespace {

// f32, so many KiB.
Tensor kib(std::int64_t size, const Device& device) {
  return Tensor::zeros({size * 256}, DType::f32, device);
}

std::size_t allocated(const Device& device) { return memory::stats(device).allocated.current; }

}  // namespace

TEST_CASE("a device's figures say what tensors take, and who asked for it") {
  const Device device = Device::simulated("cpu", 1_GiB);
  CHECK(memory::stats(device).allocated.peak == 0);
  {
    const Tensor small = Tensor::zeros({3}, DType::f32, device), large = kib(64, device);
    const memory::Stats stats = memory::stats(device);
    CHECK(stats.requested.current == 12 + 64_KiB);
    CHECK(stats.allocated.current == 512 + 64_KiB);
    CHECK(stats.reserved.current == 2_MiB);
    const std::vector<memory::Holder> holders = memory::holders(device, 1);
    REQUIRE(holders.size() == 1);
    CHECK(holders[0].bytes == 64_KiB);
    CHECK(std::string(holders[0].tag.file).find("memory.cpp") != std::string::npos);
  }
  CHECK(allocated(device) == 0);
  CHECK(memory::stats(device).allocated.peak == 512 + 64_KiB);
  memory::reset_peaks(device);
  CHECK(memory::stats(device).allocated.peak == 0);
  CHECK(memory::release_cached(device).returned_bytes == 2_MiB);
  CHECK(memory::stats(device).reserved.current == 0);
}

TEST_CASE("a limit on a device holds, can be lowered below what is in use, and lifted") {
  const Device device = Device::simulated("cpu", 1_GiB);
  memory::set_limit(device, 4_MiB);
  const Tensor kept = kib(2048, device);
  CHECK_ERROR(kib(4096, device), OutOfMemory, "out of memory");
  memory::set_limit(device, 1_MiB);
  CHECK(allocated(device) == 2_MiB);
  CHECK_ERROR(kib(2048, device), OutOfMemory, "limit");
  memory::set_limit(device, std::nullopt);
  CHECK_NOTHROW(kib(4096, device));
}

TEST_CASE("peak scopes on a device nest, and count what was there before") {
  const Device device = Device::cpu();
  const Tensor before = kib(1, device);
  const std::size_t held = allocated(device);
  const memory::PeakScope outer(device);
  { const Tensor first = kib(8, device); }
  const memory::PeakScope inner(device);
  { const Tensor second = kib(4, device); }
  CHECK(outer.bytes() == held + 8_KiB);
  CHECK(inner.bytes() == held + 4_KiB);
}

TEST_CASE("a prediction is byte for byte what the program then takes") {
  const auto program = [](const Device& here) {
    const Tensor a = kib(10, here).with_grad();
    Tensor loss = sum(square(a * 3 + 1) * a);
    loss.backward();
  };
  const memory::Prediction predicted = memory::predict(Device::cpu(), program);
  const std::size_t held = allocated(Device::cpu());
  const memory::PeakScope peak(Device::cpu());
  program(Device::cpu());
  CHECK(predicted.peak_bytes == peak.bytes() - held);
  CHECK(predicted.peak_bytes > 20_KiB);
  CHECK(predicted.held_bytes == 0);
  CHECK(predicted.fits);
  std::size_t sum = 0;
  for (const std::size_t bytes : predicted.by_category) sum += bytes;
  CHECK(sum == predicted.peak_bytes);
}

TEST_CASE("a prediction touches nothing real and draws nothing at random") {
  const memory::Stats before = memory::stats(Device::cpu());
  set_seed(Seed{5});
  const std::vector<float> expected = uniform({4}).to_vector<float>();
  set_seed(Seed{5});
  std::vector<Tensor> kept;
  const memory::Prediction predicted = memory::predict(Device::cpu(), [&](const Device& twin) {
    kept.push_back(uniform({1 << 20}, {.device = twin}));
  });
  CHECK(memory::stats(Device::cpu()).allocated.current == before.allocated.current);
  CHECK(memory::stats(Device::cpu()).reserved.current == before.reserved.current);
  CHECK(predicted.held_bytes == 4_MiB);
  CHECK(uniform({4}).to_vector<float>() == expected);
}

TEST_CASE(
    "a prediction goes past the capacity and says so; what the program throws comes through") {
  const Device small = Device::simulated("cpu", 1_MiB);
  const memory::Prediction predicted =
      memory::predict(small, [](const Device& twin) { kib(4096, twin); });
  CHECK_FALSE(predicted.fits);
  CHECK(predicted.peak_bytes == 4_MiB);
  CHECK(predicted.reserved_peak_bytes == 4_MiB);
  CHECK(predicted.capacity_bytes == 1_MiB);
  CHECK(memory::stats(small).allocated.peak == 0);  // a twin of its own
  CHECK_ERROR(memory::predict(small, [](const Device& twin) { kib(1, twin).to_vector<float>(); }),
              SimulatedRead, "memory.cpp");
}
