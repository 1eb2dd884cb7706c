// Every allocation of a training step fails once, one at a time: MEMORY.md, row 11.
#include "ebb/core/device/runtime.h"
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/heap.h"
#include "ebb/tests/properties/failing_steps.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

constexpr std::size_t kNever = ~std::size_t{0};
constexpr std::int64_t kMoreRows = 4 * kBatchRows;

// Rows of a program's batches; the allocations of step `fails` are made to fail.
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

// A model with state that a step writes before its optimizer runs.
BundledModel normalised() {
  return {"normalised mlp with dropout",
          {DType::f32, {5}},
          {DType::f32, {2}},
          [](const Parameters& parameters) {
            const models::Dense first(parameters.scope("first"), 5, 7),
                last(parameters.scope("last"), 7, 2);
            const models::BatchNorm norm(parameters.scope("norm"), 7);
            return [=](const Tensor& x, const Tensor& y) {
              const Tensor hidden = norm(first(x), Phase::training);
              return mse(last(dropout(hidden, 0.4, Phase::training)), y);
            };
          }};
}

// The models with dropout: they allocate everything that the others do, and more.
std::vector<BundledModel> models_to_fail() {
  std::vector<BundledModel> all = bundled_models();
  std::erase_if(all, [](const BundledModel& model) { return !model.name.ends_with("dropout"); });
  all.push_back(normalised());
  return all;
}

// Allocations that fail: the device's, or the host heap's.
enum class Of { device, heap };

// A step whose n-th allocation fails.
struct Attempted {
  bool has_failed = false;  // there was an n-th allocation
  bool has_thrown = false;
  std::optional<float> loss = {};
};

Attempted attempt_step(Of of, std::size_t n, FailingTraining& training, std::int64_t rows,
                       const Device& device) {
  memory::CachingAllocator& allocator = device.runtime().allocator();
  Attempted step;
  of == Of::heap ? HeapFault::arm(n) : allocator.fail_allocation_after(n);
  try {
    step.loss = training.step(rows);
  } catch (const std::bad_alloc&) {
    step.has_thrown = true;
  } catch (const OutOfMemory&) {
    step.has_thrown = true;
  }
  step.has_failed = of == Of::heap ? !HeapFault::disarm() : step.has_thrown;
  allocator.fail_allocation_after(kNever);
  return step;
}

// Checks that nothing has changed when any one allocation of the step fails. Returns the number of
// allocations. An emulated GPU tries only every fourth of the device's, so that the result may be
// up to three more.
std::size_t check(const MakeTraining& make, const Batches& batches, const Device& device,
                  Of of = Of::device) {
  const auto at_start = device.runtime().allocator().allocated_bytes();
  const std::size_t stride = of == Of::device && on_emulated_cuda() ? 4 : 1;
  std::vector<std::optional<float>> losses;
  TrainingState at_end;
  {
    const auto run = make(device);
    for (const std::int64_t rows : batches.rows) losses.push_back(run->step(rows));
    at_end = run->state();
  }
  std::ptrdiff_t live = 0;
  std::size_t n = 0;
  for (bool has_failed = true; has_failed; n += has_failed ? stride : 0) {
    if (n == stride) live = HeapFault::live();  // includes all that is made only once
    CAPTURE(n);
    const auto run = make(device);
    for (std::size_t i = 0; i < batches.rows.size(); ++i) {
      if (i == batches.fails) {
        const TrainingState state = run->state();
        const HeldMemory held = run->held();
        const Attempted step = attempt_step(of, n, *run, batches.rows[i], device);
        has_failed = step.has_failed;
        if (!step.has_thrown) {
          REQUIRE(step.loss == losses[i]);
          continue;
        }
        REQUIRE(run->held() == held);
        REQUIRE(run->state() == state);
        REQUIRE(run->held() == held);
      }
      REQUIRE(run->step(batches.rows[i]) == losses[i]);
    }
    REQUIRE(run->state() == at_end);
  }
  CHECK(device.runtime().allocator().allocated_bytes() == at_start);
  if (of == Of::heap) CHECK(HeapFault::live() == live);
  return n;
}

// Checks the device and its twin, which makes as many allocations.
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
    for (const Method method : kMethods) {
      CAPTURE(model.name, name(method));
      check_both(training(model, method, Way::eager), 10);
    }
}

TEST_CASE("a session's run of which any allocation fails has not happened", "[row11]") {
  for (const BundledModel& model : models_to_fail())
    for (const bool prepared : {false, true})
      for (const Method method : kMethods) {
        if (method == Method::backward || (prepared && method != Method::minimize)) continue;
        CAPTURE(model.name, name(method), prepared);
        check_both(training(model, method, prepared ? Way::prepared : Way::graph), 2);
      }
}

TEST_CASE("a step of which any allocation of the host's heap fails has not happened", "[row11]") {
  if (!on_host()) return;  // devices made for tests allocate where a driver does not
  const auto check_all = [](const MakeTraining& make, std::size_t at_least) {
    for (const Batches& batches : programs()) {
      CAPTURE(batches.name);
      CHECK(check(make, batches, Device::cpu(), Of::heap) > at_least);
    }
  };
  const BundledModel model = normalised();
  for (const Method method : kMethods) {
    CAPTURE(name(method));
    check_all(training(model, method, Way::eager), 100);
    if (method != Method::backward) check_all(training(model, method, Way::graph), 10);
  }
  check_all(training(model, Method::minimize, Way::prepared), 5);
}
