// The source of a device's memory refuses in the middle of a training step: MEMORY.md, row 11.
#include <algorithm>
#include <functional>

#include "ebb/core/base/error.h"
#include "ebb/core/memory/memory.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/second_device.h"
#include "ebb/tests/fault_source.h"
#include "ebb/tests/properties/failing_steps.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

// A device of host memory whose source refuses memory when a test says so.
class FailingSource {
 public:
  FailingSource()
      : FailingSource(
            std::make_unique<FaultInjectingSource>(std::make_unique<memory::HostSource>())) {}

  const Device& device() const noexcept { return device_; }
  // Lets the source give out at most so many bytes more, until restore().
  void allow_more(std::size_t bytes) noexcept { source_.bound(source_.committed_bytes() + bytes); }
  void restore() noexcept { source_.bound({}); }

 private:
  explicit FailingSource(std::unique_ptr<FaultInjectingSource> source)
      : source_(*source), device_(make_second_device({}, std::move(source))) {}

  FaultInjectingSource& source_;
  const Device device_;
};

constexpr std::int64_t kManyRows = 64 * kBatchRows;

std::vector<MakeTraining> trainings() {
  std::vector<MakeTraining> all;
  for (const BundledModel& model : bundled_models()) {
    if (!model.name.ends_with("dropout")) continue;  // they allocate all the others do, and more
    for (const Method method : {Method::minimize, Method::accumulate}) {
      all.push_back(training(model, method, Way::eager));
      all.push_back(training(model, method, Way::graph));
    }
  }
  return all;
}

// Whether no figure is above `before`; idle memory may have been given back.
bool holds_no_more(const HeldMemory& now, const HeldMemory& before) {
  return now.plans == before.plans &&
         std::equal(now.bytes.begin(), now.bytes.end(), before.bytes.begin(), before.bytes.end(),
                    std::less_equal<>());
}

std::vector<std::optional<float>> losses_of(FailingTraining& training,
                                            const std::vector<std::int64_t>& batches) {
  std::vector<std::optional<float>> losses;
  for (const std::int64_t rows : batches) losses.push_back(training.step(rows));
  return losses;
}

}  // namespace

TEST_CASE("a step that the source refuses memory for has not happened", "[row11]") {
  FailingSource source;
  const std::size_t page = source.device().runtime().profile().page_bytes;
  const std::vector<std::int64_t> batches = {kBatchRows, kBatchRows, kManyRows};
  int failures = 0;
  for (const MakeTraining& of : trainings()) {
    const auto make = [&] {  // the cache decides where blocks lie
      memory::release_cached(source.device());
      return of(source.device());
    };
    std::vector<std::optional<float>> wanted;
    std::vector<HeldMemory> held_after;
    {
      const auto run = make();
      for (const std::int64_t rows : batches) {
        wanted.push_back(run->step(rows));
        held_after.push_back(run->held());
      }
    }
    for (std::size_t at = 0; at < batches.size(); ++at) {
      bool failed = true;
      for (std::size_t room = 0; failed; room = room < 16 * page ? room + page : 2 * room) {
        CAPTURE(at, room);
        const auto run = make();
        for (std::size_t i = 0; i < at; ++i) REQUIRE(run->step(batches[i]) == wanted[i]);
        const TrainingState state = run->state();
        const HeldMemory held = run->held();  // with an empty cache
        source.allow_more(room);
        std::optional<float> loss;
        try {
          loss = run->step(batches[at]);
          failed = false;
        } catch (const OutOfMemory&) {
          ++failures;
        }
        source.restore();
        if (failed) {
          REQUIRE(holds_no_more(run->held(), held));
          REQUIRE(run->state() == state);
          loss = run->step(batches[at]);
        }
        REQUIRE(loss == wanted[at]);
        REQUIRE(run->held() == held_after[at]);
      }
    }
  }
  CHECK(failures > 100);
}

TEST_CASE("a larger batch that the source refuses leaves the smaller one able to run at once",
          "[row11]") {
  FailingSource source;
  for (const MakeTraining& make : trainings()) {
    const auto wanted = losses_of(*make(source.device()), {kBatchRows, kBatchRows, kManyRows});
    const auto run = make(source.device());
    REQUIRE(run->step(kBatchRows) == wanted[0]);
    source.allow_more(0);
    CHECK_THROWS_AS(run->step(1'000'000), OutOfMemory);
    CHECK_THROWS_AS(run->step(1'000'000), OutOfMemory);
    REQUIRE(run->step(kBatchRows) == wanted[1]);
    source.restore();
    REQUIRE(run->step(kManyRows) == wanted[2]);
  }
}
