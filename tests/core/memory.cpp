// The public memory functions: figures of a device, limits, peaks and predictions.
#include "ebb/core/memory/memory.h"

#include <map>
#include <string>

#include "ebb/core/base/error.h"
#include "ebb/core/data/data_loader.h"
#include "ebb/core/data/time_series.h"
#include "ebb/core/memory/predict.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/random/random.h"
#include "ebb/core/tensor/tensor.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/kib.h"
#include "ebb/tests/core/temporary_folder.h"

using namespace ebb;
using ebb::tests::kib;
using namespace ebb::literals;

namespace {

std::size_t allocated(const Device& device) { return memory::stats(device).allocated.current; }

}  // namespace

TEST_CASE("a device's figures say what tensors take, and who asked for it", "[host]") {
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
    CHECK(std::string(holders[0].tag.file).find("kib.h") != std::string::npos);
  }
  CHECK(allocated(device) == 0);
  CHECK(memory::stats(device).allocated.peak == 512 + 64_KiB);
  memory::reset_peaks(device);
  CHECK(memory::stats(device).allocated.peak == 0);
  CHECK(memory::release_cached(device).returned_bytes == 2_MiB);
  CHECK(memory::stats(device).reserved.current == 0);
}

TEST_CASE("whatever holds memory says which line of the program asked for it") {
  const Device cpu = Device::cpu();
  const auto lines = [&] {  // lines of this test, and the operators whose memory they hold
    std::map<unsigned, std::string> found;
    for (const memory::Holder& holder : memory::holders(cpu, 10'000))
      if (holder.tag.file == std::string(__FILE__))
        found[holder.tag.line] += holder.tag.operator_name;
    return found;
  };
  const std::size_t before = memory::stats(cpu).allocations;
  const tests::TemporaryFolder folder;
  const std::string file = folder.file("file.csv", "a,y\n1,2\n3,4\n5,6\n7,8\n");
  std::map<unsigned, std::string> wanted;
  const auto expect = [&](const char* what, unsigned line = __builtin_LINE()) {
    wanted[line - 1] = what;
  };
  const Tensor row = Tensor::from({1.f, 2.f});
  expect("from");
  const Tensor rows = Tensor::from({{1, 2}, {3, 4}});
  expect("from");
  const Tensor planes = Tensor::from({{{1.0}}, {{3.0}}});
  expect("from");
  const Tensor range = Tensor::from(std::vector<float>(6), {2, 3});
  expect("from");
  const DataSet read = DataSet::csv(file, {.label = "y"});
  expect("DataSet");
  const DataSet scaled = read.scaled(0.5);
  expect("DataSet");
  const DataSet standardized = read.standardized(read);
  expect("DataSet");
  const auto [rest, held_out] = read.split(0.5, Seed{1});
  expect("DataSet");
  const TimeSeries series({1, 2, 3, 4, 5, 6, 7, 8});
  const Windows windows = series.windows({.length = 2, .validation = 0.3});
  expect("windows");
  DataLoader loader(read, {.batch = 2});
  expect("DataLoader");
  const Batch batch = *loader.begin();
  CHECK(lines() == wanted);
  std::size_t blocks = 0;
  for (const memory::Holder& holder : memory::holders(cpu, 10'000))
    if (wanted.contains(holder.tag.line) && holder.tag.file == std::string(__FILE__))
      blocks += holder.blocks;
  CHECK(memory::stats(cpu).allocations == before + blocks);
  CHECK_ERROR(Tensor::from(std::vector<float>(5), {2, 3}), ShapeError, "memory.cpp:");
  CHECK_ERROR(read.split(2, Seed{1}), Error, "memory.cpp:");
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

TEST_CASE("a prediction goes past the capacity and says so; what the program throws comes through",
          "[host]") {
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
