// Each piece of work that CUDA refuses or fails, one after the other.
#include <numeric>
#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/data/data_loader.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/update.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/cuda/fixture.h"

using namespace ebb;
using namespace ebb::tests;
using emulated::Fault;

namespace {

std::size_t allocated_on(const Device& device) { return memory::stats(device).allocated.current; }

// Uses every kind of work: values go in, are computed with in both modes, and come out.
float program(const Device& device) {
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

TEST_CASE("every piece of work that CUDA refuses or fails is an error, and nothing is lost by it") {
  const Machine machine;
  const struct {
    Fault fault;
    int code;
  } kinds[] = {{Fault::copy, 2}, {Fault::fill, 2}, {Fault::launch, 701}, {Fault::execute, 700}};
  for (const auto& [fault, code] : kinds) {
    const bool loses = fault == Fault::execute;
    Device device = own_cuda();
    device.runtime().set_poisons(false);  // what poison cannot fill is let be
    std::size_t failures = 0;
    for (bool done = false; !done; ++failures) {
      CAPTURE(static_cast<int>(fault), failures);
      machine->inject(fault, failures, code);
      try {
        done = program(device) == 12;
        CHECK(done);
      } catch (const Error& error) {
        CHECK_THAT(error.what(), Catch::Contains("cudaError"));
      }
      machine->inject(fault, 0, -1);
      REQUIRE(failures < 100);
      if (loses && !done) {
        CHECK_THROWS_AS(Tensor::full({1}, 1, DType::f32, device), Error);  // it stays lost
        CHECK(allocated_on(device) == 0);
        machine->lose_device(0, 0);
        device = own_cuda();
        device.runtime().set_poisons(false);
      }
      CHECK(allocated_on(device) == 0);
    }
    CHECK(failures > 1);  // there is such work
    CHECK(program(device) == 12);
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
      CHECK(session.run(next).item<float>({1}) == 6);
      done = true;
    } catch (const Error&) {
      CHECK(session.memory().total_bytes == held);
      CHECK(session.memory().optimizer_state_bytes == 0);
    }
    REQUIRE(failures < 10);
  }
  CHECK(failures == 3);  // two slots
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
