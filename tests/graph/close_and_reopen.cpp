// A training that is closed and opened again between any two steps goes on as if it had not been.
#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/files/safetensors.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/second_device.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/graph/trainings.h"

namespace ebb::tests {
namespace {

constexpr std::int64_t kColumns = 2048;  // large enough to be worth a thread
constexpr std::int64_t kBatch = 32;
constexpr std::int64_t kSamples = 6 * kBatch + 5;

DataLoaderOptions options(const Device& device, std::int64_t ahead = 1) {
  return {.batch = kBatch, .shuffle = Seed{5}, .device = device, .ahead = ahead};
}

memory::Stats stats(const Device& device) { return device.runtime().allocator().stats(); }

std::vector<float> uninterrupted(const std::string& mode, const DataSet& data, const Device& device,
                                 std::size_t steps) {
  set_seed(Seed{1});
  const auto training = make_training(mode, kColumns, device);
  DataLoader loader(data, options(device, 0));
  return training->train(loader, steps);
}

// Closes and reopens a training `cycles` times, with `steps_between` steps in between.
void cycle(const std::string& mode, const Device& device, std::size_t cycles,
           std::size_t steps_between) {
  INFO(mode << " on " << device.name());
  const TemporaryFolder folder;
  const std::string file = folder.path("run.safetensors");
  const DataSet data = samples(kSamples, kColumns);
  const std::vector<float> expected = uninterrupted(mode, data, device, cycles * steps_between);
  const memory::Stats before = stats(device);
  std::size_t reserved = 0;
  std::vector<float> losses;
  for (std::size_t i = 0; i < cycles; ++i) {
    {
      set_seed(Seed{i ? 100 + i : 1});  // as in another process
      DataLoader loader(data, options(device));
      const auto training = make_training(mode, kColumns, device);
      if (i) training->restore(file, &loader);
      const std::vector<float> some = training->train(loader, steps_between);
      losses.insert(losses.end(), some.begin(), some.end());
      training->save(file, &loader);
    }
    const memory::Stats after = stats(device);
    REQUIRE(after.allocated.current == before.allocated.current);
    if (i == 0) reserved = after.reserved.current;
    REQUIRE(after.reserved.current == reserved);
  }
  CHECK(losses == expected);
}

TEST_CASE("a hundred times closed, reopened and restored, losses and memory are the same",
          "[concurrent]") {
  for (const char* mode : kModes) cycle(mode, make_second_device(), 100, 2);
}

TEST_CASE("closed and reopened between any two steps, losses are the same", "[concurrent]") {
  for (const char* mode : kModes) cycle(mode, Device::cpu(), 15, 1);
}

TEST_CASE("a recording marks each save, the end of a session or compiled step, and a refusal") {
  const TemporaryFolder folder;
  const DataSet data = samples(kSamples, kColumns);
  const Device device = Device::cpu();
  DataLoader loader(data, options(device));
  const auto marks_of = [&](const auto& program) {
    const memory::Recording recording(device);
    program();
    std::string marks;
    for (const memory::RecordedEvent& event : recording.events())
      if (event.kind == memory::EventKind::mark) marks += std::string(event.operator_name) + "; ";
    return marks;
  };
  const auto train = [&](const char* mode) {
    const auto training = make_training(mode, kColumns, device);
    training->train(loader, 1);
    training->save(folder.path("run"), &loader);
  };
  CHECK(marks_of([&] { train("graph"); }) == "save; close; ");
  CHECK(marks_of([&] { train("eager"); }) == "save; ");
  CHECK(marks_of([&] {
          const auto step = compile([](const Tensor& x) { return x * 2; });
          step(Tensor::zeros({5}, DType::f32, device));
        }) == "close; ");
  const std::int64_t rows = std::int64_t{1} << 46;
  CHECK(marks_of([&] {
          CHECK_THROWS_AS(Tensor::zeros({rows}, DType::f32, device), OutOfMemory);
        }) == "refused: 256 TiB by full; ");
}

TEST_CASE("what is saved before a first step has the random state of that step") {
  const TemporaryFolder folder;
  const DataSet data = samples(kSamples, kColumns);
  const Device device = Device::cpu();
  for (const char* mode : kModes) {
    const std::vector<float> expected = uninterrupted(mode, data, device, 3);
    set_seed(Seed{1});
    make_training(mode, kColumns, device)->save(folder.path("run"), nullptr);
    set_seed(Seed{100});  // as in another process
    const auto training = make_training(mode, kColumns, device);
    training->restore(folder.path("run"), nullptr);
    DataLoader loader(data, options(device));
    CHECK(training->train(loader, 3) == expected);
  }
}

TEST_CASE("either mode goes on in the middle of the other's epoch") {
  const TemporaryFolder folder;
  const DataSet data = samples(kSamples, kColumns);
  const Device device = Device::cpu();
  DataLoader first(data, options(device));
  const auto graph = make_training("graph", kColumns, device);
  graph->train(first, 3);
  graph->save(folder.path("run"), &first);
  DataLoader second(data, options(device));
  const auto eager = make_training("eager", kColumns, device);
  eager->restore(folder.path("run"), &second);
  CHECK(eager->weights() == graph->weights());
  DataLoader straight(data, options(device, 0));
  auto next = straight.begin();
  for (int i = 0; i < 3; ++i) ++next;
  const Batch batch = *second.begin();
  CHECK(batch.target.to_vector<std::int32_t>() == (*next).target.to_vector<std::int32_t>());
  CHECK(batch.input.to_vector<float>() == (*next).input.to_vector<float>());
}

TEST_CASE("a loader that was used goes on where the file says, and so do its later passes") {
  const TemporaryFolder folder;
  const DataSet data = samples(kSamples, kColumns);
  const Device device = Device::cpu();
  for (const char* mode : kModes) {
    const std::vector<float> expected = uninterrupted(mode, data, device, 24);
    set_seed(Seed{1});
    const auto training = make_training(mode, kColumns, device);
    DataLoader loader(data, options(device));
    training->train(loader, 4);
    training->save(folder.path("run"), &loader);
    for (int i = 0; i < 3; ++i) {
      training->train(loader, 3);
      training->restore(folder.path("run"), &loader);
      CHECK(training->train(loader, 20) ==
            std::vector<float>(expected.begin() + 4, expected.end()));
    }
  }
}

TEST_CASE("a file without a loader, or another loader's, is refused by name and changes nothing") {
  const TemporaryFolder folder;
  const std::string with = folder.path("with"), without = folder.path("without");
  const DataSet data = samples(kSamples, kColumns);
  const Device device = Device::cpu();
  for (const char* mode : kModes) {
    const auto saved = make_training(mode, kColumns, device);
    DataLoader loader(data, options(device));
    saved->train(loader, 3);
    saved->save(with, &loader);
    saved->save(without, nullptr);

    const auto training = make_training(mode, kColumns, device);
    const std::vector<float> weights = training->weights();
    const auto refuses = [&](const std::string& file, DataLoader other, const std::string& why) {
      const Resumable::Position before = other.position();
      CHECK_ERROR(training->restore(file, &other), FileError, why);
      CHECK_ERROR(training->restore(file, &other), FileError, file);
      CHECK(training->weights() == weights);
      CHECK(other.position() == before);
    };
    refuses(without, DataLoader(data, options(device)), "has no loader's position");
    DataLoaderOptions other = options(device);
    other.batch = 16;
    refuses(with, DataLoader(data, other),
            "saved with a loader of 197 samples in batches of 32, shuffled; this one has 197 "
            "samples in batches of 16, shuffled");
    refuses(with, DataLoader(samples(100, kColumns), options(device)),
            "of 197 samples in batches of 32, shuffled; this one has 100 samples in batches of 32");
    other = options(device);
    other.drop_last = true;
    refuses(with, DataLoader(data, other), "in batches of 32, none of fewer, shuffled");
    other = options(device);
    other.shuffle = std::nullopt;
    refuses(with, DataLoader(data, other), "in batches of 32, in order");

    // A position restored with parameters of another shape changes nothing either.
    DataLoader same(data, options(device));
    const auto small = make_training(mode, 16, device);
    CHECK_ERROR(small->restore(with, &same), FileError, "hidden.weight");
    CHECK(same.position() == DataLoader(data, options(device)).position());
    training->restore(with, nullptr);  // without a loader the position is skipped
    CHECK(training->weights() == saved->weights());
  }
}

TEST_CASE("a session of a simulated device is restored with a loader's position") {
  const TemporaryFolder folder;
  const DataSet data = samples(kSamples, kColumns);
  const Device twin = Device::cpu().twin();
  for (const char* mode : kModes) {
    const auto saved = make_training(mode, kColumns, Device::cpu());
    DataLoader loader(data, options(Device::cpu()));
    saved->train(loader, 3);
    saved->save(folder.path("run"), &loader);
    const auto simulated = make_training(mode, kColumns, twin);
    DataLoader shapes(data, options(twin));
    simulated->restore(folder.path("run"), &shapes);
    CHECK(shapes.position() == loader.position());
    std::int64_t left = 0;
    for (const Batch& batch : shapes) {
      simulated->step(batch);
      ++left;
    }
    CHECK(left == 4);
  }
}

}  // namespace
}  // namespace ebb::tests
