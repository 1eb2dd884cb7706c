// Batches move without filling the device: they are made ahead by a thread, in the same order, with
// the same values, in memory that was there from the start.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <thread>

#include "ebb/core/base/error.h"
#include "ebb/core/data/data_loader.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/counting.h"
#include "ebb/tests/core/second_device.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/fault_source.h"

namespace ebb::tests {
namespace {

using Order = std::vector<std::int32_t>;

constexpr std::int64_t kColumns = 1024;
constexpr std::int64_t kBatch = 64;  // 256 KiB of inputs: worth a thread on the host too
constexpr std::int64_t kSamples = 9 * kBatch + 5;

DataSet wide() { return counting(kSamples, kColumns); }

DataLoaderOptions options(const Device& device, std::int64_t ahead, bool shuffled = true) {
  DataLoaderOptions result = {.batch = kBatch, .device = device, .ahead = ahead};
  if (shuffled) result.shuffle = Seed{3};
  return result;
}

Order targets_of(const Batch& batch) { return tests::targets_of(batch.input, batch.target); }

std::vector<Order> pass(DataLoader& loader) {
  std::vector<Order> batches;
  for (const Batch& batch : loader) batches.push_back(targets_of(batch));
  return batches;
}

// Returns the device's figures without those that depend on the machine.
memory::Stats stats(const Device& device) {
  memory::Stats stats = device.runtime().allocator().stats();
  stats.device_free = stats.device_total = 0;
  return stats;
}

void nap() { std::this_thread::sleep_for(std::chrono::microseconds(300)); }

// Returns the number of threads, after waiting for joined threads to leave the list.
std::ptrdiff_t threads(std::ptrdiff_t expected) {
  std::ptrdiff_t count = 0;
  for (int i = 0; i < 10'000; ++i) {
    count = std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
    if (count == expected) break;
    nap();
  }
  return count;
}
std::ptrdiff_t threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

// Ways of going through a loader; step() is called after each batch.
using Step = std::function<void()>;
using Way = void (*)(DataLoader&, const Step&);
constexpr Way kWays[] = {
    [](DataLoader& loader, const Step& step) {
      for (auto [x, y] : loader) step();
    },
    [](DataLoader& loader, const Step& step) {  // a slow consumer
      for (auto [x, y] : loader) {
        nap();
        step();
      }
    },
    [](DataLoader& loader, const Step& step) {  // holds some batches
      std::vector<Batch> held;
      for (auto batch : loader) {
        if (held.size() % 3 != 1) held.push_back(batch);
        step();
        if (held.size() == 5) held.clear();
      }
    },
    [](DataLoader& loader, const Step& step) {  // holds each batch until it has the next
      Batch last;
      for (auto position = loader.begin(); position != loader.end(); ++position) {
        last = *position;
        step();
      }
    },
    [](DataLoader& loader, const Step& step) {  // breaks off, in the first batch and later
      for (int batches : {1, 2, 5})
        for (auto [x, y] : loader) {
          step();
          if (--batches == 0) break;
        }
    },
    [](DataLoader& loader, const Step& step) {  // a pass within a pass
      int outer = 0;
      for (auto [x, y] : loader) {
        step();
        if (++outer % 4 == 2)
          for (auto [inner_x, inner_y] : loader) step();
      }
    },
    [](DataLoader& loader, const Step& step) {  // iterators that advance separately
      auto first = loader.begin();
      auto second = first;
      for (int i = 0; i < 4; ++i, ++second) {
        const Batch batch = *second;
        step();
      }
      for (int i = 0; i < 9; ++i, ++first) {
        const Batch batch = *first;
        step();
      }
      ++second;
      const Batch batch = *second;
      step();
    }};

// Returns the device's figures after each step.
std::vector<memory::Stats> figures(const DataSet& data, const Device& device, std::int64_t ahead,
                                   Way way) {
  std::vector<memory::Stats> all;
  {
    DataLoader loader(data, options(device, ahead));
    all.push_back(stats(device));
    for (int i = 0; i < 2; ++i) way(loader, [&] { all.push_back(stats(device)); });
    all.push_back(stats(device));
  }
  all.push_back(stats(device));
  return all;
}

TEST_CASE("batches made ahead have the order and the values of those that are not, held or not",
          "[concurrent]") {
  const DataSet data = wide();
  const Device device = Device::cpu();
  for (const bool shuffled : {false, true}) {
    DataLoader plain(data, options(device, 0, shuffled));
    const std::vector<Order> first = pass(plain), second = pass(plain);
    CHECK(first.size() == 10);
    CHECK(first.back().size() == 5);
    CHECK((first == second) != shuffled);
    for (const std::int64_t ahead : {0, 1, 2, 3, 100}) {
      DataLoader loader(data, options(device, ahead, shuffled));
      CHECK(pass(loader) == first);
      std::vector<Batch> held;
      for (const Batch& batch : loader) held.push_back(batch);
      std::vector<Order> seen;
      for (const Batch& batch : held) seen.push_back(targets_of(batch));
      CHECK(seen == second);
    }
  }
}

TEST_CASE("a loader's figures do not depend on whether or when a thread makes its batches") {
  const DataSet data = wide();
  for (std::size_t number = 0; number < std::size(kWays); ++number)
    for (const std::int64_t ahead : {0, 1, 2, 5}) {
      const Way way = kWays[number];
      INFO("way " << number << ", ahead " << ahead);
      const Device device = own_test_device();
      const auto on_twin = figures(data, device.twin(), ahead, way);
      CHECK(on_twin.back().allocated.current == 0);
      CHECK(figures(data, device, ahead, way) == on_twin);
      CHECK(figures(data, own_test_device(), ahead, way) == on_twin);
    }
}

TEST_CASE("a loader's memory is one batch, and one for each that is made ahead", "[concurrent]") {
  const DataSet data = wide();
  const std::size_t batch_bytes = kBatch * (kColumns + 1) * 4;
  for (const Device& device : {own_test_device(), Device::cpu().twin()})
    for (const std::int64_t ahead : {0, 1, 2, 9, 100}) {
      {
        DataLoader loader(data, options(device, ahead));
        const memory::Stats made = stats(device);
        const std::size_t batches = static_cast<std::size_t>(std::min<std::int64_t>(ahead, 9) + 1);
        CHECK(made.requested.current == batches * batch_bytes);
        CHECK(made.by_category[static_cast<std::size_t>(memory::Category::input)].current ==
              made.allocated.current);
        for (int i = 0; i < 2; ++i)
          for (auto [x, y] : loader) CHECK(stats(device) == made);
        CHECK(stats(device) == made);
      }
      CHECK(stats(device).allocated.current == 0);
    }
}

TEST_CASE("passes that overlap, and copies of iterators, have batches ahead of their own",
          "[concurrent]") {
  const DataSet data = wide();
  const Device device = Device::cpu();
  DataLoader plain(data, options(device, 0));
  const std::vector<Order> first = pass(plain), second = pass(plain);
  DataLoader loader(data, options(device, 2));
  std::vector<Order> outer;
  for (const Batch& batch : loader) {
    outer.push_back(targets_of(batch));
    if (outer.size() == 4) CHECK(pass(loader) == second);
  }
  CHECK(outer == first);

  DataLoader anew(data, options(device, 2));
  auto fast = anew.begin();
  auto slow = fast;
  for (std::size_t i = 0; i < 3; ++i, ++fast) CHECK(targets_of(*fast) == first[i]);
  for (std::size_t i = 0; i < 2; ++i) ++fast;  // skips batches that were made ahead
  CHECK(targets_of(*fast) == first[5]);
  for (std::size_t i = 0; i < 10; ++i, ++slow) CHECK(targets_of(*slow) == first[i]);
  CHECK(targets_of(*fast) == first[5]);
}

TEST_CASE("a pass that is left ends its thread, however it is left", "[concurrent]") {
  const DataSet data = wide();
  const Device device = own_test_device();
  for (int batches = 0; batches < 4; ++batches) {
    const std::ptrdiff_t before = threads();
    std::optional<DataLoader> loader(std::in_place, data, options(device, 2));
    const memory::Stats made = stats(device);
    auto left = batches;
    for (const Batch& batch : *loader) {
      CHECK(batch.input.shape() == Shape{kBatch, kColumns});
      CHECK(threads(before + 1) == before + 1);
      if (left-- == 0) break;
    }
    CHECK(threads(before) == before);
    left = batches;
    const auto leave = [&] {
      for (const Batch& batch : *loader)
        if (left-- == 0) throw std::runtime_error("left at " + batch.input.to_string());
    };
    CHECK_THROWS_AS(leave(), std::runtime_error);
    CHECK(threads(before) == before);
    CHECK(stats(device) == made);

    auto position = loader->begin();
    for (int i = 0; i < batches; ++i, ++position) static_cast<void>(*position);
    Batch last = *position;
    loader.reset();
    for (; position != DataLoader::End(); ++position) last = *position;
    CHECK(targets_of(last).size() == 5);
  }
  CHECK(stats(device).allocated.current == 0);
}

TEST_CASE("an iterator that is the last to go ends its thread before it lets go of the rest",
          "[concurrent]") {
  const std::ptrdiff_t before = threads();
  std::ptrdiff_t left = -1;  // threads that are left when the loader's device goes
  std::optional<DataLoader::Iterator> last;
  {
    struct Source final : ForwardingSource {
      explicit Source(std::function<void()> goes)
          : ForwardingSource(std::make_shared<memory::HostSource>()), goes(std::move(goes)) {}
      ~Source() override { goes(); }
      const std::function<void()> goes;
    };
    Runtime::Parts parts;
    parts.name = "short-lived";
    parts.source = std::make_unique<Source>([&] { left = threads(before); });
    parts.backend = ebb::detail::make_cpu_backend();
    last = DataLoader(wide(), options(Runtime::make(std::move(parts)), 2)).begin();
  }
  static_cast<void>(**last);
  CHECK(threads(before + 1) == before + 1);
  CHECK(left == -1);
  last.reset();
  CHECK(left == before);
}

TEST_CASE("there is a thread only where it serves") {
  const DataSet data = wide();
  const auto extra_threads = [](const DataSet& set, const DataLoaderOptions& options) {
    const std::ptrdiff_t before = threads();
    std::ptrdiff_t most = 0;
    for (auto [x, y] : DataLoader(set, options)) most = std::max(most, threads() - before);
    CHECK(threads(before) == before);
    return most;
  };
  const Device host = make_second_device();
  const DataSet small(Tensor::full({100, 2}, 1), Tensor::full({100}, 0, DType::i32));
  CHECK(extra_threads(data, options(host, 1)) == 1);
  CHECK(extra_threads(data, options(host, 0)) == 0);
  CHECK(extra_threads(data, options(host.twin(), 1)) == 0);
  CHECK(extra_threads(data, {.batch = kSamples, .device = host}) == 0);  // one batch
  CHECK(extra_threads(small, {.batch = 10, .device = host}) == 0);       // gathered in no time
  const DataSet targets(Tensor::from(std::vector<float>(4 * 2), {4, 2}),
                        Tensor::from(std::vector<float>(4 << 16), {4, 1 << 16}));
  CHECK(extra_threads(targets, {.batch = 1, .device = host}) == 1);  // inputs and targets count
  if (on_cuda()) CHECK(extra_threads(small, {.batch = 10}) == 1);    // copies while it computes
}

TEST_CASE("memory that is filled again is not while earlier work still reads it", "[concurrent]") {
  const DataSet data = wide();
  for (int round = 0; round < 3; ++round) {
    DataLoader plain(data, options(Device::cpu(), 0));
    const std::vector<Order> expected = pass(plain);
    for (const std::int64_t ahead : {1, 2}) {
      DataLoader loader(data, options(Device::cpu(), ahead));
      std::vector<Tensor> later;  // a GPU computes these only when they are read
      for (auto [x, y] : loader) later.push_back(x * 2);
      for (std::size_t i = 0; i < later.size(); ++i) {
        const std::vector<float> twice = later[i].to_vector<float>();
        for (std::size_t row = 0; row < expected[i].size(); ++row)
          CHECK(twice[row * kColumns + 1] == static_cast<float>(2 * expected[i][row] + 2));
      }
    }
  }
}

TEST_CASE("where memory runs short, nothing is made ahead that would take more") {
  const DataSet data = wide();
  const Device device = Device::cpu().twin();
  DataLoader loader(data, options(device, 1));
  device.runtime().allocator().fail_allocation_after(0);
  auto position = loader.begin();
  std::vector<Batch> held;
  for (int i = 0; i < 2; ++i, ++position) held.push_back(*position);
  const memory::Stats before = stats(device);
  CHECK_ERROR(*position, OutOfMemory, "loader_ahead.cpp");
  CHECK(stats(device) == before);
  held.pop_back();
  const void* const free = detail::data((*position).input);
  CHECK(free != detail::data(held[0].input));
  CHECK(stats(device) == before);
}

// Runs on the host only: a GPU's state does not survive fork(). Nor does the heap of GCC 12's
// address sanitizer: its locks stay locked in the child if the loader's thread was allocating.
#ifndef __SANITIZE_ADDRESS__
TEST_CASE("the child of a process that was forked within a pass goes on by itself") {
  const DataSet data = wide();
  if (!on_host()) return;
  DataLoader plain(data, options(Device::cpu(), 0));
  const std::vector<Order> expected = pass(plain);
  for (const std::size_t at : {0u, 1u, 8u}) {
    DataLoader loader(data, options(Device::cpu(), 1));
    pid_t child = -1;
    std::vector<Order> seen;
    for (const Batch& batch : loader) {
      if (seen.size() == at) child = ::fork();
      if (child == 0) ::alarm(60);
      seen.push_back(targets_of(batch));
    }
    if (child == 0) ::_exit(seen == expected && pass(loader) != seen ? 0 : 1);
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(seen == expected);
  }
}
#endif

TEST_CASE("an iterator that takes over another's pass ends its own first", "[concurrent]") {
  DataLoader second(wide(), {.batch = kBatch});
  for (int round = 0; round < 20; ++round) {
    DataLoader::Iterator it = [] { return DataLoader(wide(), {.batch = kBatch}).begin(); }();
    CHECK((*it).target.shape()[0] == kBatch);  // its loader is gone, its thread is at work
    it = second.begin();
    CHECK((*it).target.shape()[0] == kBatch);
  }
}

}  // namespace
}  // namespace ebb::tests
