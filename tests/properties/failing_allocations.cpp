// Every allocation of a training step fails once, one at a time, and every request to the source
// of a device's memory: MEMORY.md, row 11.
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ebb/core/device/runtime.h"
#include "ebb/ebb.h"
#include "ebb/tests/bytes.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/second_device.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/fault_source.h"
#include "ebb/tests/heap.h"
#include "ebb/tests/in_mode.h"
#include "ebb/tests/properties/bundled_models.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

constexpr std::size_t kNever = ~std::size_t{0};

// Bits of everything that a step may change; none on a simulated device.
struct TrainingState {
  std::vector<std::string> names = {};  // parameters, slots, and which have a gradient
  std::vector<std::vector<std::byte>> bits = {};
  std::uint64_t random_key = 0, random_counter = 0;
  friend bool operator==(const TrainingState&, const TrainingState&) = default;
};

// Bytes in use on the device, and in a graph those in the session's pool.
struct HeldMemory {
  std::vector<std::size_t> bytes = {};  // requested, allocated, reserved, live blocks, by category
  std::size_t plans = 0;
  friend bool operator==(const HeldMemory&, const HeldMemory&) = default;

  // Appends the figures. A device's include its sessions' pools.
  void add(const memory::Stats& stats) {
    bytes.insert(bytes.end(), {stats.requested.current, stats.allocated.current,
                               stats.reserved.current, stats.allocations});
    for (const memory::Figure& figure : stats.by_category) bytes.push_back(figure.current);
  }
};

// prepared: a graph's steps go through Session::prepare
enum class Way { eager, graph, prepared, compiled };
constexpr bool has_session(Way way) { return way == Way::graph || way == Way::prepared; }

// A program that trains; equal arguments make equal programs.
class FailingTraining {
 public:
  FailingTraining(const BundledModel& model, Method method, Way way, const Device& device)
      : model_(model),
        way_(way),
        device_(device),
        mode_(has_session(way)       ? InMode::graph
              : way == Way::compiled ? InMode::compiled
                                     : InMode::eager,
              DType::f32, Seed{7}, {.device = device, .seed = Seed{3}}),
        loss_(model.make(mode_.parameters)),
        step_(mode_.function(
            {{model.input.dtype, with_rows(model.input, -1)},
             {model.target.dtype, with_rows(model.target, -1)}},
            [this, method](const Tensors& in) -> Tensors {
              return {train(method, loss_(in[0], in[1]), in[0], mode_.parameters)};
            },
            way == Way::prepared)) {
    set_seed(Seed{3});
    if (has_session(way)) mode_.session();  // initialized
  }

  // Makes a step on a batch of `rows` samples. Returns the loss, nothing on a simulated device. A
  // step that throws has changed nothing.
  std::optional<float> step(std::int64_t rows) {
    const Tensors batch = {batch_of(model_.input, rows, device_),
                           batch_of(model_.target, rows, device_)};
    const auto make = [&] { return step_(batch)[0]; };
    const Tensor loss = way_ == Way::eager ? attempt(make) : make();
    if (device_.is_simulated()) return {};
    return loss.item<float>();
  }

  // Leaves out a session's random state, which shows in the next loss.
  TrainingState state() {
    const Parameters& p = mode_.parameters;
    TrainingState state{.random_key = ebb::detail::generator().key,
                        .random_counter = ebb::detail::generator().counter};
    const bool has_slots = !has_session(way_) || mode_.session().memory().optimizer_state_bytes > 0;
    for (const auto* list : {&p.entries(), &p.states(), &p.slots()})
      for (const auto& [name, tensor] : *list) {
        if (list == &p.slots() && !has_slots) continue;  // reading them makes them
        const bool has_gradient = !has_session(way_) && tensor.grad().defined();
        state.names.push_back(name + (has_gradient ? " and its gradient" : ""));
        const Tensor value = mode_[name];
        if (!device_.is_simulated()) state.bits.push_back(bytes_of(value));
      }
    return state;
  }

  HeldMemory held() {
    device_.runtime().allocator().release_cached();
    HeldMemory held;
    held.add(device_.runtime().allocator().stats());
    if (!has_session(way_)) return held;
    const Session& session = mode_.session();
    held.add(session.stats());
    const memory::Breakdown of = session.memory();
    held.bytes.insert(held.bytes.end(),
                      {of.parameter_bytes, of.optimizer_state_bytes, of.arena_bytes});
    held.plans = session.plans();
    return held;
  }

 private:
  const BundledModel model_;
  const Way way_;
  const Device device_;
  InMode mode_;
  const Loss loss_;
  const InMode::Function step_;
};
using MakeTraining = std::function<std::unique_ptr<FailingTraining>(const Device&)>;

MakeTraining training(const BundledModel& model, Method method, Way way) {
  return [=](const Device& device) {
    return std::make_unique<FailingTraining>(model, method, way, device);
  };
}

// Rows of a program's batches; the allocations of step `fails` are made to fail.
struct Batches {
  const char* name;
  std::vector<std::int64_t> rows;
  std::size_t fails;
};

std::vector<Batches> programs(std::int64_t more = 4 * kBatchRows) {
  const std::int64_t n = kBatchRows;
  return {{"the first step", {n, n, n}, 0},
          {"a warm step", {n, n, n, n}, 2},
          {"a larger batch", {n, n, more, n}, 2}};
}

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

// What fails: an allocation of the device's or of the host's heap, or a request to its source.
enum class Of { device, heap, source };

// A step whose n-th allocation fails, or whose source gives so many pages, from 16 on twice as many
// each time.
struct Attempted {
  bool has_failed = false;  // there was an n-th allocation
  bool has_thrown = false;
  std::optional<float> loss = {};
};

Attempted attempt_step(Of of, std::size_t n, FailingTraining& training, std::int64_t rows,
                       const Device& device, FailingSource* source) {
  memory::CachingAllocator& allocator = device.runtime().allocator();
  Attempted step;
  if (of == Of::heap) HeapFault::arm(n);
  if (of == Of::device) allocator.fail_allocation_after(n);
  if (of == Of::source)
    source->allow_more((n < 16 ? n : std::size_t{16} << (n - 16)) *
                       device.runtime().profile().page_bytes);
  try {
    step.loss = training.step(rows);
  } catch (const std::bad_alloc&) {
    step.has_thrown = true;
  } catch (const OutOfMemory&) {
    step.has_thrown = true;
  }
  step.has_failed = of == Of::heap ? !HeapFault::disarm() : step.has_thrown;
  allocator.fail_allocation_after(kNever);
  if (source) source->restore();
  return step;
}

// Whether the figures are those of before, or where the source failed, none is above: idle memory
// may have been given back.
bool holds_no_more(const HeldMemory& now, const HeldMemory& before, Of of) {
  if (of != Of::source) return now == before;
  return now.plans == before.plans &&
         std::equal(now.bytes.begin(), now.bytes.end(), before.bytes.begin(), before.bytes.end(),
                    std::less_equal<>());
}

// Checks that nothing has changed when any one allocation of the step fails. Returns the number of
// allocations. An emulated GPU tries only every fourth of the device's, so that the result may be
// up to three more.
std::size_t check(const MakeTraining& of_model, const Batches& batches, const Device& device,
                  Of of = Of::device, FailingSource* source = nullptr) {
  const auto at_start = device.runtime().allocator().allocated_bytes();
  const std::size_t stride = of == Of::device && on_emulated_cuda() ? 4 : 1;
  const auto make = [&] {
    if (of == Of::source) memory::release_cached(device);  // the cache decides where blocks lie
    return of_model(device);
  };
  std::vector<std::optional<float>> losses;
  TrainingState at_end;
  HeldMemory held_at_end;
  {
    const auto run = make();
    for (const std::int64_t rows : batches.rows) losses.push_back(run->step(rows));
    at_end = run->state();
    held_at_end = run->held();
  }
  std::ptrdiff_t live = 0;
  std::size_t n = 0;
  for (bool has_failed = true; has_failed; n += has_failed ? stride : 0) {
    if (n == stride) live = HeapFault::live();  // includes all that is made only once
    CAPTURE(n);
    const auto run = make();
    for (std::size_t i = 0; i < batches.rows.size(); ++i) {
      if (i == batches.fails) {
        const TrainingState state = run->state();
        const HeldMemory held = run->held();
        const Attempted step = attempt_step(of, n, *run, batches.rows[i], device, source);
        has_failed = step.has_failed;
        if (!step.has_thrown) {
          REQUIRE(step.loss == losses[i]);
          continue;
        }
        REQUIRE(holds_no_more(run->held(), held, of));
        REQUIRE(run->state() == state);
        REQUIRE(holds_no_more(run->held(), held, of));
      }
      REQUIRE(run->step(batches.rows[i]) == losses[i]);
    }
    REQUIRE(run->state() == at_end);
    if (of == Of::source) REQUIRE(run->held() == held_at_end);
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
  for (const BundledModel& model : bundled_models())
    for (const Method method : kMethods) {
      CAPTURE(model.name, name(method));
      check_both(training(model, method, Way::eager), 10);
    }
}

TEST_CASE("a compiled call of which any allocation fails has not happened", "[row11]") {
  for (const BundledModel& model : bundled_models())
    for (const Method method : kMethods) {
      CAPTURE(model.name, name(method));
      check_both(training(model, method, Way::compiled), 2);
    }
}

TEST_CASE("a session's run of which any allocation fails has not happened", "[row11]") {
  for (const BundledModel& model : bundled_models())
    for (const bool prepared : {false, true})
      for (const Method method : kMethods) {
        if (method == Method::backward || (prepared && method != Method::minimize)) continue;
        CAPTURE(model.name, name(method), prepared);
        check_both(training(model, method, prepared ? Way::prepared : Way::graph), 2);
      }
}

TEST_CASE("a step of which any allocation of the host's heap fails has not happened", "[row11]") {
  if (!on_host()) return;  // devices made for tests allocate where a driver does not
  const auto check_all = [](Method method, Way way, std::size_t at_least) {
    for (const Batches& batches : programs()) {
      // The heap does not know how large an eager batch is.
      if (way == Way::eager && batches.name == std::string("a larger batch")) continue;
      CAPTURE(name(method), way == Way::eager, batches.name);
      const MakeTraining make = training(bundled_models().back(), method, way);
      CHECK(check(make, batches, Device::cpu(), Of::heap) > at_least);
    }
  };
  for (const Method method : kMethods) {
    check_all(method, Way::eager, 100);
    if (method != Method::backward) check_all(method, Way::graph, 10);
  }
  check_all(Method::minimize, Way::prepared, 5);
  check_all(Method::backward, Way::compiled, 10);
}

TEST_CASE("a step that the source refuses memory for has not happened, and a smaller one runs",
          "[row11]") {
  constexpr std::int64_t kManyRows = 64 * kBatchRows;
  FailingSource source;
  std::size_t failures = 0;
  for (const BundledModel& model : bundled_models())
    for (const Method method : {Method::minimize, Method::accumulate})
      for (const Way way : {Way::eager, Way::graph, Way::compiled}) {
        CAPTURE(model.name, name(method), static_cast<int>(way));
        const MakeTraining make = training(model, method, way);
        for (const Batches& batches : programs(kManyRows))
          failures += check(make, batches, source.device(), Of::source, &source);

        const std::vector<std::int64_t> rows = {kBatchRows, kBatchRows, kManyRows};
        std::vector<std::optional<float>> wanted;
        {
          const auto straight = make(source.device());
          for (const std::int64_t each : rows) wanted.push_back(straight->step(each));
        }
        const auto run = make(source.device());
        REQUIRE(run->step(rows[0]) == wanted[0]);
        source.allow_more(0);
        for (int i = 0; i < 2; ++i) CHECK_THROWS_AS(run->step(1'000'000), OutOfMemory);
        REQUIRE(run->step(rows[1]) == wanted[1]);
        source.restore();
        REQUIRE(run->step(rows[2]) == wanted[2]);
      }
  CHECK(failures > 100);
}

TEST_CASE("a scope that the heap had no memory for leaves nothing in the name of another layer",
          "[row11]") {
  const Device device = Device::simulated("cpu", std::size_t{1} << 30);
  const Parameters parameters(device);
  for (std::size_t i = 0; i < 8; ++i) {
    HeapFault::arm(i);
    try {
      parameters.scope("a_scope_of_a_long_name_" + std::to_string(i));
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
    }
    HeapFault::disarm();
    const std::string name = "short" + std::to_string(i);
    const unsigned layer = parameters.scope(name).layer();
    CHECK(CallSite().in(layer).layer_name() == name);
  }
}

TEST_CASE("a file is the old one or the new one, whichever allocation of its saving fails",
          "[host]") {
  const TemporaryFolder folder;
  const std::string file = folder.path("parameters.safetensors");
  const auto save = [&](double value) {
    const Parameters parameters(Device::cpu());
    parameters.declare("of", {3, 4}, initializers::constant(value));
    parameters.save(file);
  };
  save(1);
  std::size_t failures = 0;
  for (bool fails = true; fails; ++failures) {
    HeapFault::arm(failures);
    try {
      save(2);
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    }
    fails = !HeapFault::disarm();
    const float first = load_safetensors(file).at("of").to_vector<float>()[0];
    CHECK((first == 1 || first == 2));
    CHECK(folder.count() == 1);
  }
  CHECK(failures > 50);
}
