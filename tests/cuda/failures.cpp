// A GPU that refuses or breaks: one clear error, nothing lost on the host, nothing leaked.
#include <numeric>
#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/data/data_loader.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/update.h"
#include "ebb/core/parameters/early_stopping.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/graph/session.h"
#include "ebb/optim/accumulator.h"
#include "ebb/optim/sgd.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/cuda/fixture.h"

using namespace ebb;
using namespace ebb::tests;
using emulated::Fault;

namespace {

using Floats = std::vector<float>;

std::size_t in_use(const Device& device) { return memory::stats(device).allocated.current; }

// Uses every kind of work: values are copied in, computed with in both modes, and copied out.
float all_kinds_of_work(const Device& device) {
  const Tensor x = Tensor::from(std::vector<float>{1, 2, 3}, {3}, device).with_grad();
  sum(x * x).backward();
  const Parameters eager(device);
  const SlotRequest slot[] = {{"a/step", {DType::i64, {}}}};
  eager.find_or_make_slots(slot);  // filled with zeros
  Graph graph;
  const Tensor fed = graph.placeholder("fed", DType::f32, {3});
  const Parameters parameters(graph, Seed{1});
  const Tensor w = parameters.declare("w", {3}, initializers::uniform(1, 1));
  Session session(graph, {.device = device});
  session.initialize(parameters);
  return session.run(sum(fed * w), {{fed, x.grad()}}).item<float>();
}

}  // namespace

TEST_CASE("a full GPU refuses with the figures, and serves when there is room again") {
  const Machine machine;
  machine->set_capacity(std::size_t{64} << 20);
  {
    const Device device = own_cuda();
    const Tensor held = Tensor::full({6 << 20}, 1, DType::f32, device);  // 24 MiB
    CHECK_THROWS_AS(Tensor::full({16 << 20}, 1, DType::f32, device), OutOfMemory);
    CHECK_THROWS_WITH(Tensor::full({16 << 20}, 1, DType::f32, device),
                      Catch::Contains("no room for 64 MiB") && Catch::Contains("failures.cpp"));
    CHECK(in_use(device) == held.bytes());
    CHECK(
        (Tensor::full({1 << 20}, 1, DType::f32, device) + held.item<float>({0})).item<float>({7}) ==
        2);
  }
  machine->set_capacity(std::size_t{4} << 30);
}

TEST_CASE(
    "a chain that cannot be compiled is an error with the compiler's words, and may be later") {
  const Machine machine;
  const Device device = own_cuda();
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {4096}), y = exp(x * 0.5) - 1.75;
  const Feeds fed = {{x, Tensor::zeros({4096}, DType::f32, device)}};
  Session session(graph, {.device = device});
  machine->inject(Fault::compile, 0, 6);
  CHECK_THROWS_WITH(session.run(y, fed), Catch::Contains("[fused] a kernel cannot be compiled: "
                                                         "fused.cu(1): error: as a test wants it"));
  machine->inject(Fault::compile, 0, -1);
  CHECK(session.run(y, fed).to_vector<float>() == Floats(4096, -0.75f));
}

TEST_CASE("updates of which a later launch fails are torn, those of the earlier ones as well") {
  const Machine machine;
  constexpr int kMany = 300;  // more than one launch takes
  Graph graph;
  Parameters parameters(graph);
  Tensor loss;
  for (int i = 0; i < kMany; ++i) {
    const Tensor term =
        sum(square(parameters.declare("p" + std::to_string(i), {3}, initializers::normal(0, 1))));
    loss = loss.defined() ? loss + term : term;
  }
  const Tensor step = optim::Sgd({.learning_rate = 0.1}).minimize(loss, parameters);
  const Device device = own_cuda();
  device.runtime().set_poisons(false);  // poisoning runs step by step and merges no launches
  Session whole(graph, {.device = device}), session(graph, {.device = device});
  whole.initialize();
  session.initialize();
  const std::size_t launches =
      machine.count(&emulated::Statistics::launches, [&] { whole.run(step); });
  machine->inject(Fault::launch, launches - 1, 701);  // cudaErrorLaunchOutOfResources
  CHECK_THROWS_WITH(session.run(step), Catch::Contains("[sgd_update]"));
  for (const char* name : {"p0", "p150", "p299"})
    CHECK_THROWS_WITH(session.value(parameters[name]), Catch::Contains("sgd_update"));
}

TEST_CASE("an accumulation of which a later launch fails is torn: it is not added to once more") {
  const Machine machine;
  const Device device = own_cuda();
  Parameters parameters(device);
  for (int i = 0; i < 300; ++i)
    parameters.declare("p" + std::to_string(i), {3}, initializers::normal(0, 1));
  const auto loss = [&] {
    Tensor total;
    for (const Parameters::Entry& entry : parameters.entries()) {
      const Tensor term = sum(square(entry.tensor));
      total = total.defined() ? total + term : term;
    }
    return total;
  };
  const optim::Accumulator accumulator(optim::Sgd({.learning_rate = 0.1}), {.samples = 4});
  const Tensor samples = Tensor::full({}, 1, DType::i64, device);
  const auto minimize = [&] { accumulator.minimize(loss(), parameters, samples); };
  minimize();
  const std::size_t launches = machine.count(&emulated::Statistics::launches, minimize);
  // Launches after the sums: their count, the updates, and the clearing of each sum and of the
  // count.
  const std::size_t after = 1 + 1 + 3 + 300 + 1;
  machine->inject(Fault::launch, launches - after - 1, 701);
  CHECK_THROWS_WITH(minimize(), Catch::Contains("[accumulate]"));
  CHECK_THROWS_WITH(minimize(), Catch::Contains("accumulat"));
}

TEST_CASE("an accumulation whose update fails leaves no sums, of frozen parameters neither") {
  const Machine machine;
  const Device device = own_cuda();
  device.runtime().set_poisons(false);  // poisoning runs step by step and merges no launches
  const optim::Accumulator accumulator(optim::Sgd({.learning_rate = 0.1}), {.samples = 4});
  const Tensor samples = Tensor::full({}, 1, DType::i64, device);
  const auto minimize = [&](const Parameters& parameters) {
    accumulator.minimize(sum(square(parameters["a.w"])) + sum(square(parameters["b.w"])),
                         parameters, samples);
  };
  // Parameters after one accumulation into a and b, with b frozen since.
  const auto begun = [&] {
    const Parameters parameters(device);
    for (const char* name : {"a", "b"})
      parameters.scope(name).declare("w", {3}, initializers::constant(1));
    minimize(parameters);
    parameters.scope("b").set_trainable(false);
    return parameters;
  };
  const Parameters whole = begun();
  const std::size_t launches =
      machine.count(&emulated::Statistics::launches, [&] { minimize(whole); });
  // The last four launches: the update, and the clearing of both sums and of the count.
  for (const std::size_t from_end : {1u, 2u, 3u, 4u}) {
    CAPTURE(from_end);
    const Parameters parameters = begun();
    machine->inject(Fault::launch, launches - from_end, 701);
    CHECK_THROWS_AS(minimize(parameters), Error);
    for (const char* slot : {"a.w/sgd.accumulated", "b.w/sgd.accumulated", "sgd/samples"})
      CHECK_THROWS_WITH(parameters[slot].clone(), Catch::Contains("accumulator"));
  }
  // Before them come the count and, in one launch, the sums. If that launch fails, nothing was
  // added.
  const Parameters parameters = begun();
  machine->inject(Fault::launch, launches - 6, 701);
  CHECK_THROWS_WITH(minimize(parameters), Catch::Contains("[accumulate]"));
  CHECK(parameters["sgd/samples"].item<std::int64_t>() == 1);
  CHECK(parameters["a.w/sgd.accumulated"].to_vector<float>() == std::vector<float>(3, 2));
  minimize(parameters);
  CHECK(parameters["a.w/sgd.accumulated"].to_vector<float>() == std::vector<float>(3, 4));
}

TEST_CASE("every piece of work that CUDA refuses or fails is an error, and nothing is lost by it") {
  const Machine machine;
  const struct {
    Fault fault;
    int code;
  } kinds[] = {{Fault::copy, 2}, {Fault::fill, 2}, {Fault::launch, 701}, {Fault::execute, 700}};
  for (const auto& [fault, code] : kinds) {
    const bool loses = fault == Fault::execute;
    Device device = own_cuda();
    device.runtime().set_poisons(false);  // a poisoning fill that fails is ignored
    std::size_t failures = 0;
    for (bool done = false; !done; ++failures) {
      CAPTURE(static_cast<int>(fault), failures);
      machine->inject(fault, failures, code);
      try {
        done = all_kinds_of_work(device) == 12;
        CHECK(done);
      } catch (const Error& error) {
        CHECK_THAT(error.what(), Catch::Contains("(code " + std::to_string(code) + ")"));
      }
      machine->inject(fault, 0, -1);
      REQUIRE(failures < 100);
      if (loses && !done) {
        CHECK_THROWS_AS(Tensor::full({1}, 1, DType::f32, device), Error);  // it stays lost
        CHECK(in_use(device) == 0);
        machine->lose_device(0);
        device = own_cuda();
        device.runtime().set_poisons(false);
      }
      CHECK(in_use(device) == 0);
    }
    CHECK(failures > 1);  // there is such work
    CHECK(all_kinds_of_work(device) == 12);
  }
}

TEST_CASE("slots whose first values a device refuses to write are made again, with values") {
  const Machine machine;
  const Device device = own_cuda();
  device.runtime().set_poisons(false);
  Graph graph;
  const Parameters parameters(graph, Seed{1});
  const Tensor w = parameters.declare("w", {3}, initializers::constant(1));
  const SlotRequest slots[] = {{"w/a", {DType::f32, {3}}}, {"w/b", {DType::f32, {3}}}};
  const Tensors moments = parameters.find_or_make_slots(slots);
  const Tensor next = add_assign(w, moments[0] + moments[1] + 5);
  Session session(graph, {.device = device});
  session.initialize(parameters);
  const std::size_t held = session.memory().total_bytes;
  std::size_t failures = 0;
  for (bool done = false; !done; ++failures) {
    CAPTURE(failures);
    machine->inject(Fault::fill, failures, 2);
    try {
      const float next_value = session.run(next).item<float>({1});
      CHECK(next_value == 6);
      done = true;
    } catch (const Error&) {
      CHECK(session.memory().total_bytes == held);
      CHECK(session.memory().optimizer_state_bytes == 0);
    }
    REQUIRE(failures < 10);
  }
  CHECK(failures == 3);  // two slots
}

TEST_CASE("a copy of the best weights that fails half-way leaves the best as it was") {
  const Machine machine;
  const Parameters parameters(own_cuda());
  const Tensor a = parameters.declare("a", {2}, initializers::constant(1));
  const Tensor b = parameters.declare("b", {2}, initializers::constant(2));
  EarlyStopping stopping;
  CHECK(stopping.update(1, parameters));
  a.impl()->storage->fill(0);
  b.impl()->storage->fill(0);
  machine->inject(Fault::copy, 1, 2);  // of b
  CHECK_THROWS_AS(stopping.update(0.5, parameters), Error);
  CHECK(stopping.best() == 1);
  stopping.restore(parameters);
  CHECK(a.to_vector<float>() == Floats{1, 1});
  CHECK(b.to_vector<float>() == Floats{2, 2});
}

TEST_CASE("what goes wrong while a batch is made is thrown at its turn, and it can be made again",
          "[concurrent]") {
  constexpr std::int64_t kColumns = 256, kBatch = 8, kSamples = 5 * kBatch;
  const Machine machine;
  const Device device = own_cuda();
  std::vector<std::int32_t> all(kSamples);
  std::iota(all.begin(), all.end(), 0);
  const DataSet data(Tensor::full({kSamples, kColumns}, 1), Tensor::from(all, {kSamples}));
  for (const std::int64_t ahead : {0, 1, 3})
    for (std::size_t copies = 0; copies < 10; ++copies) {
      CAPTURE(ahead, copies);
      DataLoader loader(data, {.batch = kBatch, .device = device, .ahead = ahead});
      std::vector<Tensor> targets;
      std::vector<std::size_t> failed;
      machine->inject(Fault::copy, copies, 2);
      for (auto position = loader.begin(); position != loader.end();) {
        try {
          targets.push_back((*position).target.clone());
        } catch (const Error&) {
          failed.push_back(targets.size());
          continue;
        }
        ++position;
      }
      CHECK(failed.size() == 1);
      std::vector<std::int32_t> seen;
      for (const Tensor& target : targets)
        for (const std::int32_t value : target.to_vector<std::int32_t>()) seen.push_back(value);
      CHECK(seen == all);
    }
}
