// The figures of a device as operators: what they read, and when.

#include "ebb/core/device/runtime.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/ebb.h"
#include "ebb/graph/graph_state.h"
#include "ebb/graph/passes/passes.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/second_device.h"
#include "ebb/tests/device/host_kernel.h"

using namespace ebb;
using namespace ebb::literals;

namespace {

std::int64_t value(const Tensor& figure) { return figure.item<std::int64_t>(); }

std::int64_t in_use(const Device& device = Device::cpu()) {
  return static_cast<std::int64_t>(memory::stats(device).allocated.current);
}

// An operator whose kernel takes bytes of the device, which stay taken until the test gives them
// back.
class Taken {
 public:
  static constexpr std::int64_t kBytes = 1 << 20;
  ~Taken() { give_back(); }
  static void give_back() {
    for (memory::Block*& block : blocks_)
      Device::cpu().runtime().allocator().free(std::exchange(block, nullptr));
    blocks_.clear();
  }
  // Returns x; after its kernel kBytes more are in use.
  static Tensor take(const Tensor& x) {
    static const OpDef op{.name = "take",
                          .infer = [](Inference& i) { i.output(DType::f32, i.inputs[0].shape); },
                          .stateful = true,
                          .cpu = {run},
                          .cuda = tests::copied<run>};
    return apply_one(op, {x}, {}, CallSite::here());
  }

 private:
  static Status run(const KernelContext& c) {
    auto& allocator = Device::cpu().runtime().allocator();
    blocks_.push_back(allocator.allocate({.bytes = kBytes}));
    for (std::int64_t i = 0; i < c.outputs[0].elements(); ++i)
      c.outputs[0].as<float>()[i] = c.inputs[0].as<float>()[i];
    return {};
  }
  static inline std::vector<memory::Block*> blocks_;
};

struct MeasuredModel {
  Graph graph;
  Tensor x = graph.placeholder("x", DType::f32, {-1});
};

Tensor some() { return Tensor::full({1000}, 2); }

}  // namespace

TEST_CASE("bytes in use are the device's allocated bytes, the scalar's own included") {
  const std::int64_t before = in_use();
  const Tensor held = some();
  const Tensor figure = memory::bytes_in_use(Device::cpu());
  CHECK(figure.dtype() == DType::i64);
  CHECK(figure.rank() == 0);
  CHECK(value(figure) == before + 4096 + 512);
  CHECK(value(memory::bytes_in_use(held)) == value(figure) + 512);
}

TEST_CASE("the most bytes in use are those since the peaks were reset") {
  const Device device = Device::cpu();
  memory::reset_peaks(device);
  { const Tensor large = Tensor::zeros({1 << 20}); }
  const std::int64_t peak = static_cast<std::int64_t>(memory::stats(device).allocated.peak);
  CHECK(value(memory::max_bytes_in_use(device)) == peak);
  memory::reset_peaks(device);
  const Tensor figure = memory::max_bytes_in_use(device);
  CHECK(value(figure) == in_use());
}

TEST_CASE("the limit is the device's, and its capacity where there is none or a higher one") {
  const Device device = tests::make_second_device();
  const Tensor x = Tensor::zeros({3}, DType::f32, device);
  memory::set_limit(device, 5_MiB);
  CHECK(value(memory::bytes_limit(x)) == 5 << 20);
  CHECK(value(memory::bytes_limit(device)) == 5 << 20);
  memory::set_limit(device, std::nullopt);
  const Device own = tests::make_second_device({.capacity_bytes = 1_GiB});
  CHECK(value(memory::bytes_limit(own)) == 1 << 30);
  memory::set_limit(own, 2_GiB);
  CHECK(value(memory::bytes_limit(own)) == 1 << 30);
}

TEST_CASE("figures of a graph count its session: variables, arena, slots and fetches") {
  MeasuredModel m;
  Parameters parameters(m.graph);
  const Tensor w = parameters.declare("w", {1000}, initializers::constant(3));
  const Tensor y = sum(square(m.x * w) + square(w));
  for (const bool passes : {false, true}) {
    Session session(m.graph, {.passes = passes});
    session.initialize();
    const Tensor fed = some();
    const auto fetched = session.run({y, memory::bytes_in_use(y)}, {{m.x, fed}});
    CHECK(value(fetched[1]) == in_use());
    CHECK(session.memory().total_bytes > 0);
    CHECK(value(fetched[1]) > static_cast<std::int64_t>(session.memory().total_bytes));
  }
}

TEST_CASE("figures are read anew in each run, and of each node by itself") {
  MeasuredModel m;
  const Tensor first = memory::bytes_in_use(m.x), second = memory::bytes_in_use(m.x);
  const Tensor of_graph = memory::bytes_in_use(m.graph);
  CHECK(m.graph.size() == 4);
  Session session(m.graph);
  const Tensor fed = some();
  const auto run = [&] {
    const auto figures = session.run({first, second, of_graph}, {{m.x, fed}});
    CHECK(value(figures[0]) == value(figures[1]));
    CHECK(value(figures[0]) == value(figures[2]));
    return value(figures[0]);
  };
  const std::int64_t before = run();
  CHECK(run() == before);
  const Tensor more = Tensor::zeros({1 << 18});
  CHECK(run() == before + (1 << 20));
}

TEST_CASE("figures are read after what they follow, in whatever order they are fetched") {
  const Taken taken;
  MeasuredModel m;
  const Tensor before = memory::bytes_in_use(m.x);
  const Tensor one = Taken::take(m.x);
  const Tensor between = memory::bytes_in_use(one);
  const Tensor most = memory::max_bytes_in_use(one);
  const Tensor two = Taken::take(one);
  const Tensor after = memory::bytes_in_use(two);
  for (const bool passes : {false, true}) {
    Taken::give_back();
    memory::reset_peaks(Device::cpu());
    Session session(m.graph, {.passes = passes});
    const auto figures = session.run({after, most, before, between}, {{m.x, some()}});
    CHECK(value(figures[3]) == value(figures[2]) + Taken::kBytes);
    CHECK(value(figures[1]) == value(figures[3]));
    CHECK(value(figures[0]) == value(figures[3]) + Taken::kBytes);
  }
}

TEST_CASE("an update of state that a figure makes waits for what the figure follows") {
  MeasuredModel m;
  Parameters parameters(m.graph);
  const Tensor last = parameters.state("last", {}, initializers::zeros(), DType::i64);
  const Tensor y = square(m.x * 2);
  const Tensor kept = assign(last, memory::bytes_in_use(y));
  ebb::detail::Draft draft = prune(m.graph.state(), Device::cpu().runtime(), {kept});
  infer(draft, {{m.x, {1000}}});
  resolve(draft);
  add_dependencies(draft);
  std::string order;
  for (const auto step : ebb::detail::order(draft, true).order)
    order += std::string(draft.steps[step].node->op->name) + " ";
  CHECK(order == "multiply square bytes_in_use assign ");
}

TEST_CASE("a session reads the figures of its own device") {
  const Device second = tests::make_second_device();
  MeasuredModel m;
  const Tensor figure = memory::bytes_in_use(m.x * 2);
  Session here(m.graph), there(m.graph, {.device = second});
  const Tensor fed = Tensor::zeros({10}, DType::f32, second);
  const Tensor of_second = there.run(figure, {{m.x, fed}});
  CHECK(value(of_second) == in_use(second));
  const Tensor of_first = here.run(figure, {{m.x, some()}});
  CHECK(value(of_first) != value(of_second));
}

TEST_CASE("while a graph traces, the figure of a device is a node of it: each run reads it again") {
  Graph graph;
  Tensor figure;
  {
    ebb::detail::TapeMode mode = ebb::detail::tape_mode();
    mode.tracing = &graph.state();
    const ebb::detail::TapeModeScope tracing(mode);
    figure = memory::bytes_in_use(Device::cpu());
  }
  REQUIRE(figure.is_symbolic());
  Session session(graph);
  const std::int64_t before = value(session.run(figure));
  const Tensor more = Tensor::zeros({1 << 18});
  CHECK(value(session.run(figure)) == before + (1 << 20));
}

TEST_CASE("on a simulated device figures take their bytes, as planned, and have no values") {
  const Device twin = Device::simulated("cpu", 1_GiB);
  MeasuredModel m;
  const Tensor figure = memory::bytes_in_use(m.x * 2);
  Session session(m.graph, {.device = twin});
  const Tensor fed = Tensor::zeros({1000}, DType::f32, twin);
  const std::int64_t before = in_use(twin);
  const Tensor fetched = session.run(figure, {{m.x, fed}});
  const memory::Plan plan = m.graph.plan({figure}, {{m.x, {1000}}}, twin);
  CHECK(in_use(twin) - before == static_cast<std::int64_t>(plan.peak_bytes) + 512);
  CHECK_ERROR(fetched.item<std::int64_t>(), SimulatedRead, "memory_figures.cpp");
  CHECK_ERROR(memory::bytes_in_use(twin).item<std::int64_t>(), SimulatedRead, "");
}

TEST_CASE("figures pass no gradient on, and follow no number") {
  const Tensor x = some().with_grad();
  const Tensor figure = memory::bytes_in_use(x);
  CHECK_FALSE(figure.requires_grad());
  CHECK_ERROR(memory::bytes_in_use(3), Error, "[bytes_in_use] takes a tensor here, not a number");
}
