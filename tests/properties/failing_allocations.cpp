// Every allocation of a training step fails once, one at a time: MEMORY.md, row 11.
#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/properties/failing_steps.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

constexpr std::size_t kNever = ~std::size_t{0};
constexpr std::int64_t kMoreRows = 4 * kBatchRows;

// The batches of a program: the step at `fails` is the one whose allocations fail.
struct Batches {
  const char* name;
  std::vector<std::int64_t> rows;
  std::size_t fails;
};

std::vector<Batches> programs() {
  const std::int64_t n = kBatchRows;
  return {{"the first step", {n, n, n}, 0},
          {"a warm step", {n, n, n, n}, 2},
          {"a larger batch", {n, n, kMoreRows, n}, 2}};
}

// Those with dropout allocate what the others do and more: enough where a step takes long.
std::vector<BundledModel> models_to_fail() {
  std::vector<BundledModel> all = bundled_models();
  if (!on_host())
    std::erase_if(all, [](const BundledModel& model) { return !model.name.ends_with("dropout"); });
  return all;
}

// Whether the step fails when its n-th allocation does; then nothing has changed.
bool fails_at(std::size_t n, FailingTraining& training, std::int64_t rows, const Device& device) {
  const TrainingState state = training.state();
  const HeldMemory held = training.held();
  device.runtime().allocator().fail_allocation_after(n);
  bool failed = false;
  try {
    training.step(rows);
  } catch (const OutOfMemory&) {
    failed = true;
  }
  device.runtime().allocator().fail_allocation_after(kNever);
  if (failed) {
    REQUIRE(training.held() == held);
    REQUIRE(training.state() == state);
    REQUIRE(training.held() == held);
  }
  return failed;
}

// Returns how many allocations the step has; on an emulated GPU, where only every fourth fails, up
// to three more.
std::size_t check(const MakeTraining& make, const Batches& batches, const Device& device) {
  std::vector<std::optional<float>> losses;
  {
    const auto training = make(device);
    for (const std::int64_t rows : batches.rows) losses.push_back(training->step(rows));
  }
  const auto at_start = device.runtime().allocator().allocated_bytes();
  const std::size_t stride = on_emulated_cuda() ? 4 : 1;
  std::size_t n = 0;
  for (bool failed = true; failed; n += failed ? stride : 0) {
    CAPTURE(n);
    const auto training = make(device);
    for (std::size_t i = 0; i < batches.rows.size(); ++i) {
      if (i == batches.fails) failed = fails_at(n, *training, batches.rows[i], device);
      if (i == batches.fails && !failed) break;
      REQUIRE(training->step(batches.rows[i]) == losses[i]);
    }
  }
  CHECK(device.runtime().allocator().allocated_bytes() == at_start);
  return n;
}

// The same on the device and on its twin, which has as many.
void check_both(const MakeTraining& make, std::size_t at_least) {
  for (const Batches& batches : programs()) {
    CAPTURE(batches.name);
    const std::size_t allocations = check(make, batches, Device::cpu());
    CHECK(allocations >= at_least);
    CHECK(check(make, batches, Device::cpu().twin()) == allocations);
  }
}

}  // namespace

TEST_CASE("an eager step of which any allocation fails has not happened", "[row11]") {
  for (const BundledModel& model : models_to_fail())
    for (const Method method :
         {Method::minimize, Method::minimize_own_rule, Method::accumulate, Method::backward}) {
      CAPTURE(model.name, name(method));
      check_both(eager_training(model, method), 10);
    }
}

TEST_CASE("a session's run of which any allocation fails has not happened", "[row11]") {
  for (const BundledModel& model : models_to_fail())
    for (const Method method : {Method::minimize, Method::minimize_own_rule, Method::accumulate}) {
      CAPTURE(model.name, name(method));
      check_both(graph_training(model, method), 2);
    }
}

TEST_CASE("a prepared step of which any allocation fails has not happened", "[row11]") {
  for (const BundledModel& model : models_to_fail()) {
    CAPTURE(model.name);
    check_both(graph_training(model, Method::minimize, true), 2);
  }
}
