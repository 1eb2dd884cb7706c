// What ebb makes of a device that refuses or fails.
#include <memory>
#include <optional>
#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/update.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/core/tensor/tensor.h"
#include "ebb/graph/random.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/deferred_backend.h"
#include "ebb/tests/device/host_kernel.h"

namespace ebb::tests {
namespace {

using Work = DeferredBackend::Work;
using Fault = DeferredBackend::Fault;

// A device of the test's own, that programs run on like on any other.
struct Faulty {
  Faulty() {
    const auto memory = std::make_shared<DeferredMemory>(std::size_t{1} << 30);
    auto own = std::make_unique<DeferredBackend>(memory);
    backend = own.get();
    Runtime::Parts parts;
    parts.name = "faulty";
    parts.profile.page_bytes = memory->page_bytes();
    parts.profile.range_bytes = std::size_t{1} << 30;
    parts.profile.captures_programs = true;
    parts.source = std::make_unique<DeferredSource>(memory);
    parts.backend = std::move(own);
    device.emplace(Runtime::make(std::move(parts)));
    device->runtime().set_poisons(false);  // what poison cannot fill is let be
  }
  std::size_t allocated() const { return device->runtime().allocator().allocated_bytes(); }

  DeferredBackend* backend = nullptr;
  std::optional<Device> device;
};

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

TEST_CASE(
    "every piece of work that a device refuses or fails is an error, and nothing is lost by "
    "it") {
  const Faulty faulty;
  DeferredBackend& backend = *faulty.backend;
  for (const Work work : {Work::copy_in, Work::copy_out, Work::copy, Work::fill, Work::launch})
    for (const Fault fault : {Fault::refused, Fault::failed, Fault::later}) {
      std::size_t failures = 0;
      for (bool done = false; !done; ++failures) {
        INFO(name(work) << ", fault " << static_cast<int>(fault) << ", after " << failures);
        backend.inject(work, fault, failures);
        try {
          done = program(*faulty.device) == 12;
          CHECK(done);
        } catch (const Error& error) {
          CHECK_THAT(error.what(), Catch::Contains("as the test asked for"));
        }
        // A device that was lost stays lost.
        if (!done && fault == Fault::later)
          CHECK_THROWS_AS(Tensor::full({1}, 1, DType::f32, *faulty.device), Error);
        backend.restore();
        REQUIRE(failures < 100);
        CHECK(faulty.allocated() == 0);
      }
      CHECK(failures > 1);  // there is such work
      CHECK(program(*faulty.device) == 12);
    }
}

TEST_CASE("slots whose first values a device refuses to write are made again, with values") {
  const Faulty faulty;
  Graph graph;
  const Parameters parameters(graph, Seed{1});
  const Tensor w = parameters.declare("w", {3}, initializers::constant(1));
  const SlotRequest slots[] = {{"w/a", {DType::f32, {3}}}, {"w/b", {DType::f32, {3}}}};
  const Tensors moments = parameters.find_or_make_slots(slots);
  const Tensor next = add_assign(w, moments[0] + moments[1] + uniform(graph, {3}));
  float wanted = 0;
  {
    Session session(graph, {.device = *faulty.device, .seed = Seed{1}});
    session.initialize(parameters);
    wanted = session.run(next).item<float>({1});
  }
  for (const Work work : {Work::fill, Work::copy_in}) {
    Session session(graph, {.device = *faulty.device, .seed = Seed{1}});
    session.initialize(parameters);
    const std::size_t held = session.memory().total_bytes;
    int failures = 0;
    for (std::size_t n = 0;; ++n) {
      CAPTURE(n);
      faulty.backend->inject(work, Fault::refused, n);
      try {
        const Tensor result = session.run(next);
        CHECK(result.item<float>({1}) == wanted);
        break;
      } catch (const Error&) {
        ++failures;
        CHECK(session.memory().total_bytes == held);
        CHECK(session.memory().optimizer_state_bytes == 0);
      }
    }
    CHECK(failures == (work == Work::fill ? 2 : 1));  // the slots; the random state
    faulty.backend->restore();
  }
  CHECK(faulty.allocated() == 0);
}

TEST_CASE("a session whose values another has read may change them") {
  const Faulty faulty;
  Graph graph;
  const Parameters parameters(graph, Seed{1});
  const Tensor w = parameters.declare("w", {3}, initializers::constant(1));
  const Tensor next = add_assign(w, 5);
  Session one(graph, {.device = *faulty.device}), other(graph, {.device = *faulty.device});
  one.initialize(parameters);
  other.copy_from(one);
  one.run(next);
  CHECK(other.value(w).item<float>({1}) == 1);
  CHECK(one.value(w).item<float>({1}) == 6);
}

namespace {
constexpr auto run_op = [](const KernelContext& c) -> Status {
  if (c.stream == nullptr) return Status::refuse("has no stream");
  *c.outputs[0].as<float>() = *c.inputs[0].as<float>();
  return {};
};
}  // namespace

TEST_CASE("a kernel is given the stream that it is to use, in both modes") {
  static const OpDef op{.name = "streaming",
                        .infer = [](Inference& i) { i.output(DType::f32, i.inputs[0].shape); },
                        .cpu = {run_op},
                        .cuda = tests::copied<run_op>};
  const Faulty faulty;
  const Tensor x = Tensor::full({1}, 3, DType::f32, *faulty.device);
  CHECK(apply_one(op, {x}, {}, CallSite::here()).item<float>() == 3);
  Graph graph;
  const Tensor fed = graph.placeholder("fed", DType::f32, {1});
  const Tensor y = apply_one(op, {fed}, {}, CallSite::here());
  Session session(graph, {.device = *faulty.device});
  for (const bool poisons : {false, true}) {
    faulty.device->runtime().set_poisons(poisons);
    CHECK(session.run(y, {{fed, x}}).item<float>() == 3);
  }
}

}  // namespace
}  // namespace ebb::tests
