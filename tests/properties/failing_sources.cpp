// The source of a device's memory refuses in the middle of a training step: MEMORY.md, row 11.
#include "ebb/core/base/error.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/properties/failing_source.h"
#include "ebb/tests/properties/failing_steps.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

constexpr std::int64_t kMoreRows = 64 * kBatchRows;

std::vector<MakeTraining> trainings() {
  std::vector<MakeTraining> all;
  for (const BundledModel& model : bundled_models())
    for (const Method method : {Method::minimize, Method::accumulate}) {
      all.push_back(eager_training(model, method));
      all.push_back(graph_training(model, method));
    }
  return all;
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
  const std::vector<std::int64_t> batches = {kBatchRows, kBatchRows, kMoreRows};
  int failures = 0;
  for (const MakeTraining& make : trainings()) {
    const auto wanted = losses_of(*make(source.device()), batches);
    for (std::size_t at = 0; at < batches.size(); ++at) {
      bool failed = true;
      for (std::size_t room = 0; failed; room = room < 16 * page ? room + page : 2 * room) {
        CAPTURE(at, room);
        const auto training = make(source.device());
        for (std::size_t i = 0; i < at; ++i) REQUIRE(training->step(batches[i]) == wanted[i]);
        const TrainingState state = training->state();
        const HeldMemory held = training->held();  // with an empty cache
        source.allow_more(room);
        std::optional<float> loss;
        try {
          loss = training->step(batches[at]);
          failed = false;
        } catch (const OutOfMemory&) {
          ++failures;
        }
        source.restore();
        if (failed) {
          REQUIRE(training->held() == held);
          REQUIRE(training->state() == state);
          loss = training->step(batches[at]);
        }
        REQUIRE(loss == wanted[at]);
      }
    }
  }
  CHECK(failures > 100);
}

TEST_CASE("a larger batch that the source refuses leaves the smaller one able to run at once",
          "[row11]") {
  FailingSource source;
  for (const MakeTraining& make : trainings()) {
    const auto wanted = losses_of(*make(source.device()), {kBatchRows, kBatchRows, kMoreRows});
    const auto training = make(source.device());
    REQUIRE(training->step(kBatchRows) == wanted[0]);
    source.allow_more(0);
    CHECK_THROWS_AS(training->step(1'000'000), OutOfMemory);
    CHECK_THROWS_AS(training->step(1'000'000), OutOfMemory);
    REQUIRE(training->step(kBatchRows) == wanted[1]);
    source.restore();
    REQUIRE(training->step(kMoreRows) == wanted[2]);
  }
}
