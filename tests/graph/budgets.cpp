// Plans that are made to fit a budget: MEMORY.md, rows 14 and 18.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/ebb.h"
#include "ebb/graph/passes/offload.h"
#include "ebb/graph/passes/passes.h"
#include "ebb/graph/passes/timeline.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/host_kernel.h"
#include "ebb/tests/line.h"

using namespace ebb;
using namespace ebb::literals;

namespace {

// Rows whose activations take several pages of the device.
std::int64_t many_rows() {
  constexpr std::size_t kSmall = 64_KiB;
  const std::size_t page = Device::cpu().runtime().profile().page_bytes;
  return static_cast<std::int64_t>(512 * (std::max(page, kSmall) / kSmall));
}

// A training step of equal layers, which keeps an activation for each of them. Its loss is the root
// of a mean, which micro-batches do not have.
struct Deep {
  Graph graph;
  Tensor x, train;
  Parameters params{graph, Seed{1}};

  explicit Deep(int layers) {
    x = graph.placeholder("x", DType::f32, {-1, 16});
    Tensor y = x;
    for (int i = 0; i < layers; ++i)
      y = models::Dense(params.scope("layer" + std::to_string(i)), 16, 16, Activation::tanh)(y);
    train = optim::Sgd({.learning_rate = 0.1}).minimize(sqrt(mean(square(y))), params);
  }
  memory::Plan plan(std::optional<std::size_t> budget = {}, std::int64_t rows = many_rows()) const {
    memory::PlanOptions options{.details = true};
    if (budget) options.budget = *budget;
    return graph.plan({train}, {{x, {rows, 16}}}, Device::cpu(), options);
  }
  std::size_t least(std::int64_t rows = many_rows()) const {
    return graph.least_budget({train}, {{x, {rows, 16}}}, Device::cpu());
  }
};

// Layers that read their input and output again in the backward pass, of one unit each.
detail::Timeline chain(detail::Index layers) {
  detail::Timeline chain;
  for (detail::Index i = 0; i < 2 * layers; ++i) {
    const detail::Index back = 2 * layers - 1 - i;  // the layer whose gradient this is
    detail::Timeline::Step step{.first_read = static_cast<detail::Index>(chain.reads.size()),
                                .first_write = i,
                                .writes = 1,
                                .until = 2 * layers,
                                .nanoseconds = 1};
    const auto read = [&](detail::Index value) {
      chain.reads.push_back({.value = value});
      ++step.reads;
    };
    if (i > 0) read(i - 1);
    if (i > layers) read(back);
    if (i > layers && back > 0) read(back - 1);
    chain.writes.push_back(i);
    chain.steps.push_back(step);
    chain.values.push_back({.bytes = 1,
                            .producer = i,
                            .at_the_end = i + 1 == 2 * layers,
                            .droppable = i + 1 < 2 * layers});
  }
  return chain;
}

std::vector<float>& noted() {
  static std::vector<float> values;
  return values;
}

Status note_first(const KernelContext& c) {
  const float* x = c.inputs[0].as<const float>();
  noted().push_back(x[0]);
  std::copy_n(x, c.inputs[0].elements(), c.outputs[0].as<float>());
  return {};
}

}  // namespace

TEST_CASE("every budget down to the least is kept to, and the plan says what that takes",
          "[row14][row18]") {
  const Deep deep(24);
  const memory::Plan plain = deep.plan();
  const std::size_t least = deep.least();
  CHECK(plain.repeated_nodes == 0);
  CHECK(least < plain.reserved_bytes);
  const std::size_t step = (plain.reserved_bytes - least) / 7;
  for (std::size_t budget = least; budget < plain.reserved_bytes; budget += step) {
    CAPTURE(budget, least, plain.reserved_bytes);
    const memory::Plan plan = deep.plan(budget);
    CHECK(plan.reserved_bytes <= budget);
    CHECK(plan.unbudgeted_bytes == plain.reserved_bytes);
    CHECK(plan.repeated_nodes + plan.moved_values + plan.host_state_bytes > 0);
    CHECK(std::ranges::count_if(plan.details->steps, &memory::PlanDetails::Step::is_repeated) ==
          static_cast<std::ptrdiff_t>(plan.repeated_nodes));
    CHECK(plan.nodes == plain.nodes + plan.repeated_nodes);
    CHECK(plan.work.products == plain.work.products + plan.extra_work.products);
    CHECK(deep.plan(budget).describe() == plan.describe());
  }
  CHECK(deep.plan(plain.reserved_bytes).repeated_nodes == 0);
}

TEST_CASE("a chain of n layers takes memory of order sqrt(n) for one more forward pass",
          "[row18]") {
  for (const detail::Index layers : {64u, 256u, 1024u}) {
    const detail::Timeline timeline = chain(layers);
    const auto bytes = static_cast<std::size_t>(2 * std::sqrt(layers)) + 6;
    const detail::Turns turns = detail::Recomputation(timeline).fit(bytes);
    detail::Usage usage;
    detail::measure(timeline, turns, usage);
    CHECK(usage.peak_bytes <= bytes);
    CHECK(turns.size() - timeline.steps.size() <= layers);
  }
}

TEST_CASE("a budget that another order keeps costs no work and no bit, dropout included",
          "[row14][row18]") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 16});
  const Parameters params(graph, Seed{1});
  Tensors branches;
  for (int i = 0; i < 6; ++i)  // written side by side, all wide at once
    branches.push_back(models::Dense(params.scope("branch" + std::to_string(i)), 16, 64)(x));
  for (Tensor& branch : branches) branch = mean(dropout(branch, 0.5, Phase::training), {-1});
  const Tensor y = stack(branches);
  const Tensor rows = Tensor::full({many_rows(), 16}, 0.5);
  const FedShapes shapes = {{x, rows.shape()}};
  const memory::Plan plain = graph.plan({y}, shapes, Device::cpu());
  const std::size_t budget = plain.reserved_bytes / 2;
  const memory::Plan plan = graph.plan({y}, shapes, Device::cpu(), {.budget = budget});
  CHECK_FALSE(plain.is_reordered);
  CHECK(plan.is_reordered);
  CHECK(plan.reserved_bytes <= budget);
  CHECK(plan.work.products == plain.work.products);
  CHECK(plan.nodes == plain.nodes);
  const auto values = [&](std::optional<memory::Limit> bound) {
    Session session(graph, {.budget = bound, .seed = Seed{2}});
    session.initialize();
    return session.run(y, {{x, rows}}).to_vector<float>();
  };
  CHECK(values(budget) == values(std::nullopt));
}

TEST_CASE("a budget changes neither number nor order of what a stateful operator does", "[row14]") {
  static const OpDef note{.name = "note",
                          .infer = [](Inference& i) { i.output(DType::f32, i.inputs[0].shape); },
                          .stateful = true,
                          .cpu = {note_first},
                          .cuda = tests::copied<note_first>};
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {many_rows(), 16});
  Tensors branches;
  for (int i = 0; i < 4; ++i) branches.push_back(apply_one(note, {x + i}, {}, CallSite::here()));
  for (Tensor& y : branches) y = apply_one(note, {mean(y) + 8}, {}, CallSite::here());
  const Tensor y = stack(branches);
  const FedShapes shapes = {{x, x.shape()}};
  const std::size_t least = graph.least_budget({y}, shapes, Device::cpu());
  CHECK(least < graph.plan({y}, shapes, Device::cpu()).reserved_bytes);
  Session(graph, {.budget = least}).run(y, {{x, Tensor::full(x.shape(), 0)}});
  CHECK(noted() == std::vector<float>{0, 1, 2, 3, 8, 9, 10, 11});
}

TEST_CASE("a small program repeats as few steps as an exhaustive search of all runs finds",
          "[row18]") {
  detail::Timeline timeline = chain(10);
  for (detail::Index i = 0; i < timeline.steps.size(); ++i) {
    detail::Timeline::Step& step = timeline.steps[i];
    timeline.values[i].bytes = 1 + 3 * i % 6;
    step.workspace = step.least_workspace = 2;
    if (i < 10) continue;
    detail::Timeline::Read& read = timeline.reads[step.first_read];
    read.is_passed_on = i % 2 == 1;
    read.is_destroyed = i % 2 == 0;
    if (read.is_destroyed) step.least_workspace = 0;
  }
  detail::Usage usage;
  detail::Recomputation search(timeline);
  detail::measure(timeline, search.least(), usage);
  CHECK(usage.peak_bytes == 11);
  for (const auto& [bytes, repeats] : {std::pair{11, 31}, {12, 10}, {13, 6}, {14, 4}, {15, 3}}) {
    const detail::Turns turns = search.fit(static_cast<std::size_t>(bytes));
    detail::measure(timeline, turns, usage);
    CHECK(usage.peak_bytes <= static_cast<std::size_t>(bytes));
    CHECK(turns.size() == timeline.steps.size() + static_cast<std::size_t>(repeats));
  }
}

TEST_CASE(
    "a budget that nothing keeps to is an Error with the least that would, and changes nothing",
    "[row14]") {
  const Deep deep(24);
  const std::size_t least = deep.least();
  CHECK_NOTHROW(deep.plan(least));
  CHECK_ERROR(deep.plan(least - 1), Error, "(" + std::to_string(least) + " bytes)");
  const bool has_link = Device::cpu().runtime().profile().link_bytes_per_us > 0;
  CHECK_ERROR(deep.plan(1000), Error,
              has_link ? ": parameters take" : ": parameters and slots take");

  const std::int64_t few = many_rows() / 8;
  Session session(deep.graph, {.device = Device::cpu(), .budget = deep.least(few)});
  session.initialize(deep.params);
  const auto feed = [&](std::int64_t rows) { return Tensor::full({rows, 16}, 0.5); };
  CHECK_ERROR(session.run(deep.train, {{deep.x, feed(8 * many_rows())}}), Error,
              "[run] no plan keeps to");
  CHECK(session.plans() == 0);
  CHECK_NOTHROW(session.run(deep.train, {{deep.x, feed(few)}}));
  CHECK(session.stats().reserved.peak <= deep.least(few));
  session.set_memory_limit(std::nullopt);
  CHECK(session.stats().limit == deep.least(few));
}

TEST_CASE("a value that comes back twice is not copied back before it is saved", "[row14]") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {1 << 24}), a = tanh(x);
  const Tensor y = exp(exp(a)) * a;
  const Device device = Device::simulated("h200", 1_GiB);
  detail::Draft draft = detail::prune(graph.state(), device.runtime(), {y});
  detail::infer(draft, {{x, {1 << 24}}});
  detail::make_steps(draft, true);
  detail::Schedule schedule = detail::best_schedule(draft, true);
  std::vector<detail::Index> order;
  detail::Mover mover(draft, order);
  for (const detail::Index s : schedule.order) {
    if (s == schedule.order.back()) {  // reads the second copy, and nobody the first
      const detail::Index read = draft.steps[s].first_operand + 1,
                          saved = draft.operands[read].value.memory,
                          unread = mover.bring_back(saved, saved),
                          again = mover.bring_back(saved, unread);  // more operands
      draft.operands[read].value.memory = again;
    }
    order.push_back(s);
  }
  mover.put_into_order();
  schedule = {};
  schedule.order = order;
  detail::lay_out(draft, schedule, true);
  detail::overlap_moves(draft, schedule, 1_GiB);
  std::vector<std::ptrdiff_t> begins;
  for (const detail::DraftMove& move : draft.moves)
    begins.push_back(std::ranges::find(schedule.order, move.begin) - schedule.order.begin());
  REQUIRE(begins.size() == 3);
  CHECK(begins[1] > begins[0]);
  CHECK(begins[2] > begins[0]);
}

TEST_CASE("values of many sizes come back ahead of need within the least budget", "[row14]") {
  Graph graph;
  const Parameters params(graph, Seed{1});
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 16});
  Tensor y = x;
  for (const std::int64_t width : {40, 13, 31, 9, 22, 45, 17, 28}) {
    const Parameters own = params.scope("to" + std::to_string(width));
    y = models::Dense(own, y.size(1), width)(y);
    y = tanh(models::BatchNorm(own.scope("norm"), width)(y, Phase::training));
  }
  const Tensor loss = optim::Sgd().minimize(mean(square(y)), params);
  const FedShapes shapes = {{x, {1 << 19, 16}}};
  const Device device = Device::simulated("h200", 8_GiB);
  const std::size_t least = graph.least_budget({loss}, shapes, device);
  const memory::Plan plan = graph.plan({loss}, shapes, device, {.budget = least});
  CHECK(plan.moved_values > 0);
  CHECK(plan.reserved_bytes <= least);
}

TEST_CASE("micro-batches keep to a budget with optimizer state on the host", "[row14]") {
  Graph graph;
  const Parameters params(graph, Seed{1});
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 16});
  const Tensor y = models::Mlp(params, {16, 1 << 16, 16})(x);
  const Tensors step = {optim::Adam().minimize(mean(square(y)), params)};
  const Device device = Device::simulated("h200", 8_GiB);
  const std::size_t least = graph.least_budget(step, {{x, {64, 16}}}, device);
  const memory::Plan plan = graph.plan(step, {{x, {64, 16}}}, device, {.budget = least});
  CHECK(plan.micro_batches > 1);
  CHECK(plan.host_state_bytes > 0);
}

TEST_CASE("a session plans a run anew once slots for other fetches leave it less of the budget",
          "[row14]") {
  Deep deep(24);
  const Tensor other = optim::Sgd({.learning_rate = 0, .momentum = 0.9})
                           .minimize(sum(deep.params["layer0.weight"]), deep.params);
  const std::size_t budget = deep.plan().reserved_bytes;
  const Tensor feed = Tensor::full({many_rows(), 16}, 0.5);
  const auto losses = [&](bool slots) {
    Session session(deep.graph, {.budget = budget, .seed = Seed{1}});
    session.initialize();
    auto step = session.prepare(deep.train, {deep.x});
    Tensors results = {session.run(deep.train, {{deep.x, feed}}), step(feed)};
    if (slots) session.run(other);
    results.push_back(step(feed));
    results.push_back(session.run(deep.train, {{deep.x, feed}}));
    CHECK(session.stats().reserved.peak <= budget);
    return stack(results).to_vector<float>();
  };
  CHECK(losses(true) == losses(false));
}

TEST_CASE("a plan shows its steps and buffers, and which run again", "[row18]") {
  memory::Plan small;
  small.details = std::make_shared<const memory::PlanDetails>(
      memory::PlanDetails{.steps = {{.tag = {"exp", "a.cpp", 3},
                                     .reads = {{.name = "the \"x\""}},
                                     .writes = {{0, ""}},
                                     .workspace = 1},
                                    {.tag = {"sum", "a.cpp", 4},
                                     .is_repeated = true,
                                     .reads = {{0, ""}},
                                     .writes = {{.name = "fetch 0"}}}},
                          .buffers = {{0, 1024, 0, 1, memory::Category::activation},
                                      {1024, 512, 0, 0, memory::Category::workspace}}});
  const std::string lines = small.describe();
  CHECK(lines.substr(lines.find("\n0 ")) == R"(
0  1.5 KiB  b0 = exp(the "x") [b1] (a.cpp:3)
1  1.0 KiB  again: fetch 0 = sum(b0) (a.cpp:4)

buffer  offset  bytes  steps  category
b0  0  1024  0..1  activation
b1  1024  512  0..0  workspace
)");
  CHECK_ERROR_HERE(memory::Plan().describe(), Error, "has no details");
  CHECK_ERROR(small.write_graphviz("no/such/folder/plan.dot"), FileError, "no/such/folder");
  CHECK_ERROR(small.write_graphviz(""), FileError, "'' is no name of a file to write (");
  std::filesystem::remove("plan.dot");
  small.write_graphviz("plan.dot");
  std::stringstream file;
  file << std::ifstream("plan.dot").rdbuf();
  CHECK(file.str() == R"(digraph plan {
  node [shape=box];
  s0 [label="0 exp (a.cpp:3)\n1.5 KiB alive"];
  "tensor the \"x\"" [shape=ellipse];
  "tensor the \"x\"" -> s0;
  s1 [label="1 sum (a.cpp:4)\n1.0 KiB alive", style=filled, fillcolor=lightyellow];
  s0 -> s1 [style=invis];
  s0 -> s1 [label="b0: 1.0 KiB"];
  s1 -> "tensor fetch 0";
}
)");
}
