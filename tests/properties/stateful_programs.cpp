// Random programs with state, in both modes and against a reference that updates nothing in place.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <optional>

#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/poisoned.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/eager/bytes.h"
#include "ebb/tests/properties/check_plan.h"
#include "ebb/tests/properties/stateful_machine.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

// An emulated GPU takes ten times as long.
std::uint64_t stateful_count() { return runs_take_long() ? 100 : 400; }

// Results of a run: its fetches, then parameters, state and captured tensors; or its error.
struct Shown {
  std::vector<std::vector<float>> values;
  std::string error;
};

struct Outcome {
  std::vector<Shown> runs;                // up to the first that failed
  std::optional<memory::Plan> plan = {};  // of the first run, unless that failed
  std::size_t least_budget = 0;           // of that run
  memory::Stats session = {};
  std::size_t left_bytes = 0;
};

std::vector<float> values_of(const Tensor& tensor) {
  if (tensor.dtype() == DType::f32) return tensor.to_vector<float>();
  std::vector<float> values;
  for (const std::int64_t value : tensor.to_vector<std::int64_t>())
    values.push_back(static_cast<float>(value));
  return values;
}

// Runs all runs, up to the first that throws.
template <class Run>
std::vector<Shown> all_runs(const StatefulProgram& program, Run run) {
  std::vector<Shown> shown;
  for (std::size_t r = 0; r < program.runs.size(); ++r) {
    Shown& now = shown.emplace_back();
    try {
      for (const Tensor& tensor : run(r)) now.values.push_back(values_of(tensor));
      continue;
    } catch (const Error& error) {
      now.error = error.what();
    } catch (const OverwrittenHistory&) {
      now.error = "updated in place through another view";
    }
    now.values.clear();
    break;
  }
  return shown;
}

void run_needed(const StatefulProgram& program, std::size_t run,
                const std::function<void(const Line&)>& execute) {
  const std::vector<bool> needed = program.needed_lines(run);
  for (std::size_t i = 0; i < program.lines.size(); ++i)
    if (needed[i]) execute(program.lines[i]);
}

// Parameters, state and captured tensors, by value; the other values are undefined.
Tensors values_before(const StatefulProgram& program, const Parameters& parameters,
                      const Device& device = Device::cpu()) {
  Tensors values(program.values.size());
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const StatefulInput& input = program.inputs[i];
    if (input.kind == StatefulInput::parameter || input.kind == StatefulInput::state)
      values[i] = parameters[input.name];
    if (input.kind == StatefulInput::captured)
      values[i] = draw_input(program, static_cast<int>(i), 0, device);
    if (input.kind == StatefulInput::captured_view)
      values[i] = slice(values[at(input.base)].detach(), input.begin, input.end);
  }
  return values;
}

// Eagerly, or each run as a call of a compiled step.
Outcome run_eagerly(const StatefulProgram& program, bool compiled = false) {
  Outcome outcome;
  const Bytes left;
  {
    const Parameters parameters(Device::cpu(), Seed{program.seed});
    declare(program, parameters);
    const Tensors before = values_before(program, parameters);
    outcome.runs = all_runs(program, [&](std::size_t r) {
      Tensors feeds;
      for (std::size_t i = 0; i < program.inputs.size(); ++i)
        if (program.inputs[i].kind == StatefulInput::feed)
          feeds.push_back(draw_input(program, static_cast<int>(i), static_cast<int>(r)));
      const auto body = [&](const Tensors& fed) {
        Tensors values = before;
        for (std::size_t i = 0, next = 0; i < program.inputs.size(); ++i)
          if (program.inputs[i].kind == StatefulInput::feed) values[i] = fed[next++];
        Direct machine(parameters, values);
        run_needed(program, r, [&](const Line& line) { machine.run(line); });
        Tensors fetched;
        for (const int v : program.fetches_of(r)) fetched.push_back(machine[v]);
        return fetched;
      };
      Tensors shown = compiled ? compile(body, {.passes = r % 2 == 0})(feeds) : body(feeds);
      std::size_t next = 0;
      for (std::size_t i = 0; i < program.inputs.size(); ++i) {
        const StatefulInput& input = program.inputs[i];
        const Tensor& value = input.kind == StatefulInput::feed ? feeds[next++] : before[i];
        if (input.kind < StatefulInput::captured_view) shown.push_back(value);
      }
      return shown;
    });
  }
  outcome.left_bytes = left.now();
  return outcome;
}

Outcome run_functionally(const StatefulProgram& program) {
  const Parameters parameters(Device::cpu(), Seed{program.seed});
  declare(program, parameters);
  Functional machine(program, parameters);
  return {all_runs(program, [&](std::size_t r) {
    machine.begin(static_cast<int>(r));
    run_needed(program, r, [&](const Line& line) { machine.run(line); });
    Tensors shown;
    for (const int v : program.fetches_of(r)) shown.push_back(machine.read(v));
    for (const Tensor& tensor : machine.state()) shown.push_back(tensor);
    return shown;
  })};
}

Outcome run_as_graph(const StatefulProgram& program, bool passes,
                     const Device& device = Device::cpu(), std::optional<memory::Limit> budget = {},
                     bool reads_again = false) {
  Outcome outcome;
  const Bytes left(device);
  {
    Graph graph;
    const Parameters parameters(graph, Seed{program.seed});
    declare(program, parameters);
    Tensors values = values_before(program, parameters, device);
    std::vector<std::size_t> feeds;
    for (std::size_t i = 0; i < program.inputs.size(); ++i) {
      if (program.inputs[i].kind != StatefulInput::feed) continue;
      values[i] = graph.placeholder(program.inputs[i].name, DType::f32, program.values[i].shape);
      feeds.push_back(i);
    }
    // A refused line fails only the runs that need it.
    Direct machine(parameters, values);
    std::map<std::size_t, std::string> refused;
    for (std::size_t i = 0; i < program.lines.size(); ++i) {
      try {
        bool can_run = true;
        for (const int v : program.lines[i].in) can_run &= v < 0 || machine[v].defined();
        if (can_run) machine.run(program.lines[i]);
      } catch (const Error& error) {
        refused.emplace(i, error.what());
      }
    }
    Tensor again;  // reads all values once more, last first, so that no order lets them go early
    if (reads_again)
      for (auto line = program.lines.rbegin(); line != program.lines.rend(); ++line)
        for (const int v : line->out)
          if (const Tensor& value = machine[v]; value.defined() && value.dtype() == DType::f32)
            again = again.defined() ? sum(value) - again : sum(value);
    Session session(graph, {.device = device, .budget = budget, .passes = passes});
    session.initialize(parameters);
    outcome.runs = all_runs(program, [&](std::size_t r) {
      const std::vector<bool> needed = program.needed_lines(r);
      for (const auto& [line, error] : refused)
        if (needed[line]) throw Error(error);
      Tensors fetches;
      for (const int v : program.fetches_of(r)) fetches.push_back(machine[v]);
      if (again.defined()) fetches.push_back(again);
      Feeds fed;
      FedShapes shapes;
      for (const std::size_t i : feeds) {
        fed.push_back(
            {values[i], draw_input(program, static_cast<int>(i), static_cast<int>(r), device)});
        shapes.push_back({values[i], program.values[i].shape});
      }
      Tensors shown = session.run(fetches, fed);
      if (r == 0) {
        outcome.plan = graph.plan(fetches, shapes, device, {.budget = budget});
        if (budget) check_search(graph, fetches, shapes, device);
        outcome.least_budget = graph.least_budget(fetches, shapes, device);
        outcome.session = session.stats();
      }
      for (std::size_t i = 0; i < program.inputs.size(); ++i)
        if (program.inputs[i].kind < StatefulInput::captured_view)
          shown.push_back(values[i].is_symbolic() ? session.value(values[i]) : values[i]);
      return shown;
    });
  }
  outcome.left_bytes = left.now();
  return outcome;
}

bool same_bits(const Shown& a, const Shown& b) {
  if (a.values.size() != b.values.size() || a.error.empty() != b.error.empty()) return false;
  for (std::size_t i = 0; i < a.values.size(); ++i)
    if (a.values[i].size() != b.values[i].size() ||
        (!a.values[i].empty() && std::memcmp(a.values[i].data(), b.values[i].data(),
                                             a.values[i].size() * sizeof(float)) != 0))
      return false;
  return true;
}

bool close(const Shown& a, const Shown& b) {
  if (a.values.size() != b.values.size()) return false;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    if (a.values[i].size() != b.values[i].size()) return false;
    for (std::size_t j = 0; j < a.values[i].size(); ++j) {
      const double p = a.values[i][j], q = b.values[i][j];
      if (!std::isfinite(p) || !std::isfinite(q) || std::abs(p) > 1e4) return true;  // exploded
      if (std::abs(p - q) > 1e-3 * (1 + std::abs(p))) return false;
    }
  }
  return true;
}

bool says(const std::string& error, const char* text) {
  return error.find(text) != std::string::npos;
}
bool refuses_history(const std::string& error) {
  return says(error, "updated in place through another view");
}
// Whether the error only says that memory was overwritten or freed.
bool refuses_memory(const std::string& error) {
  return says(error, "has been updated in place and is at version") ||
         says(error, "freed by an earlier backward pass") ||
         says(error, "differentiated already?") ||
         says(error, "copy() what is needed of the older version");
}

struct Counts {
  int runs = 0, eager = 0, ordered = 0, refused = 0;
};

std::string list(const Shown* shown) {
  if (!shown) return "has ended\n";
  if (!shown->error.empty()) return "throws " + shown->error + "\n";
  std::string text;
  for (const std::vector<float>& values : shown->values) {
    text += "[";
    for (const float value : values) text += std::to_string(value) + " ";
    text += "] ";
  }
  return text + "\n";
}

// Returns "" if all agree, else the disagreement.
std::string disagreement(const StatefulProgram& program, Counts& counts) {
  const Outcome eager = run_eagerly(program);
  const Outcome plain = run_as_graph(program, false);
  const Outcome passes = run_as_graph(program, true);
  const Outcome compiled = run_eagerly(program, true);
  const Outcome reference = run_functionally(program);
  if (compiled.left_bytes || eager.left_bytes || plain.left_bytes || passes.left_bytes)
    return "bytes are left";
  if (passes.plan) check_plan(*passes.plan, passes.session);
  for (std::size_t r = 0; r < program.runs.size(); ++r) {
    const auto in_run = [&](const Outcome& outcome) {
      return r < outcome.runs.size() ? &outcome.runs[r] : nullptr;
    };
    const Shown *a = in_run(eager), *b = in_run(plain), *c = in_run(passes), *d = in_run(reference),
                *e = in_run(compiled);
    const auto wrong = [&](const char* why) {
      return std::string(why) + " (run " + std::to_string(r) + ")\neager     " + list(a) +
             "graph     " + list(b) + "passes    " + list(c) + "reference " + list(d) +
             "compiled  " + list(e);
    };
    if (!b || !c || !d) break;  // an earlier run was refused
    ++counts.runs;
    if (!same_bits(*b, *c)) return wrong("passes change a run");
    if (a && a->error.empty()) {
      ++counts.eager;
      // In a graph, dense's backward reads both factors, even for the gradient of one.
      if (says(b->error, "[dense_backward] the backward pass needs")) break;
      if (!same_bits(*a, *b)) return wrong("the graph differs from eager");
      if (e && !same_bits(*a, *e)) return wrong("a compiled step differs from eager");
      if (!d->error.empty()) return wrong("a gradient is lost");
      if (!close(*a, *d)) return wrong("eager differs from the reference");
      continue;
    }
    if (a && !refuses_history(a->error) && !refuses_memory(a->error))
      return wrong("eager's error is none that was expected");
    const bool is_lost = !d->error.empty();
    if (is_lost || !b->error.empty()) {
      if (!refuses_history(b->error) && (is_lost || !refuses_memory(b->error)))
        return wrong(is_lost ? "the graph does not refuse a lost gradient"
                             : "the graph's error is none that was expected");
      ++counts.refused;
      break;
    }
    if (e && e->error.empty() && !close(*e, *d)) return wrong("a compiled step differs");
    if (e && !refuses_history(e->error) && !refuses_memory(e->error) && !e->error.empty())
      return wrong("a compiled step's error is none that was expected");
    ++counts.ordered;
    if (!close(*b, *d)) return wrong("the graph differs from the reference");
  }
  return "";
}

std::string kind_of(const std::string& why) { return why.substr(0, why.find('(')); }

// Returns a shorter program that fails in the same way.
StatefulProgram shortened(StatefulProgram program) {
  Counts uncounted;
  const std::string kind = kind_of(disagreement(program, uncounted));
  for (bool shorter = true; shorter;) {
    shorter = false;
    const auto try_instead = [&](StatefulProgram candidate) {
      if (candidate.runs.empty() || kind_of(disagreement(candidate, uncounted)) != kind)
        return false;
      program = std::move(candidate);
      return shorter = true;
    };
    for (std::size_t i = program.lines.size(); i-- > 0;)
      if (i < program.lines.size()) try_instead(without_line(program, i));
    for (std::size_t r = program.runs.size(); r-- > 0;) {
      if (program.runs.size() > 1) {
        StatefulProgram candidate = program;
        candidate.runs.erase(candidate.runs.begin() + static_cast<std::ptrdiff_t>(r));
        if (try_instead(std::move(candidate))) continue;
      }
      for (std::size_t f = program.runs[r].size(); f-- > 0 && program.runs[r].size() > 1;) {
        StatefulProgram candidate = program;
        candidate.runs[r].erase(candidate.runs[r].begin() + static_cast<std::ptrdiff_t>(f));
        try_instead(std::move(candidate));
      }
    }
  }
  return program;
}

std::string report(const StatefulProgram& program) {
  const StatefulProgram shorter = shortened(program);
  Counts uncounted;
  return program.to_string() + "\nor shorter\n" + shorter.to_string() +
         disagreement(shorter, uncounted);
}

// Checks programs of these seeds; reports three of each disagreement.
Counts check_programs(std::uint64_t first, std::uint64_t programs) {
  Counts counts;
  std::map<std::string, int> found;
  for (std::uint64_t seed = first; seed < first + programs; ++seed) {
    const StatefulProgram program = draw_stateful_program(seed);
    const std::string why = disagreement(program, counts);
    if (!why.empty() && ++found[kind_of(why)] <= 3) FAIL_CHECK(report(program));
  }
  for (const auto& [why, times] : found) WARN(why << times << " times");
  return counts;
}

}  // namespace

TEST_CASE("random programs with updates, views, several optimizers and recompute mean one thing") {
  const Counts counts = check_programs(1, stateful_count());
  // Most programs prove something.
  CHECK(counts.eager > counts.runs / 2);
  CHECK(counts.ordered > counts.runs / 50);
  CHECK(counts.refused > 0);
}

// EBB_RANDOM_PROGRAMS=30000 tests_properties "[.long]"; EBB_RANDOM_FIRST is the first seed.
TEST_CASE("tens of thousands of random programs with state mean one thing", "[.long]") {
  const char* const count = std::getenv("EBB_RANDOM_PROGRAMS");
  const char* const first = std::getenv("EBB_RANDOM_FIRST");
  const std::uint64_t programs = count ? std::strtoull(count, nullptr, 10) : 30'000;
  const Counts counts =
      check_programs(first ? std::strtoull(first, nullptr, 10) : 1'000'000, programs);
  WARN(programs << " programs, " << counts.runs << " runs: " << counts.eager << " as eager, "
                << counts.ordered << " that only a graph can order, " << counts.refused
                << " refused");
}

TEST_CASE("poisoned memory changes nothing in a random program with state") {
  for (std::uint64_t seed = 20'001; seed <= 20'000 + stateful_count() / 2; ++seed) {
    const StatefulProgram program = draw_stateful_program(seed);
    INFO(program.to_string());
    const Outcome eager = run_eagerly(program), graph = run_as_graph(program, true);
    const Poisoned poisoned;
    for (const auto& [before, again] :
         {std::pair(eager, run_eagerly(program)), std::pair(graph, run_as_graph(program, true))}) {
      REQUIRE(before.runs.size() == again.runs.size());
      for (std::size_t r = 0; r < before.runs.size(); ++r)
        REQUIRE(same_bits(before.runs[r], again.runs[r]));
    }
  }
}

TEST_CASE("a random program with state means the same at every budget that it can keep to") {
  const Device device = own_test_device(true);
  std::uint64_t repeating = 0, moving = 0;
  for (std::uint64_t seed = 40'001; seed <= 40'000 + stateful_count() / 5; ++seed) {
    StatefulProgram program = draw_stateful_program(seed);
    program.runs.assign(3, program.runs[0]);
    INFO(program.to_string());
    const Outcome free = run_as_graph(program, true, device, {}, true);
    if (!free.plan || free.plan->reserved_bytes == free.least_budget) continue;
    REQUIRE(free.least_budget < free.plan->reserved_bytes);
    const std::size_t spare = free.plan->reserved_bytes - free.least_budget;
    for (const std::size_t budget : {free.least_budget, free.least_budget + spare / 2}) {
      const Outcome fitted = run_as_graph(program, true, device, budget, true);
      REQUIRE(fitted.plan);
      for (std::size_t r = 0; r < program.runs.size(); ++r)
        REQUIRE(same_bits(free.runs[r], fitted.runs[r]));
      check_plan(*fitted.plan, fitted.session);
      REQUIRE(fitted.session.reserved.peak <= budget);
      repeating += fitted.plan->repeated_nodes > 0;
      moving += fitted.plan->moved_values > 0;
    }
  }
  CHECK(repeating > stateful_count() / 8);
  if (device.runtime().profile().link_bytes_per_us > 0) CHECK(moving > stateful_count() / 8);
}

TEST_CASE("the search counts right where a step is repeated for one of its outputs") {
  Graph graph;
  const Parameters parameters(graph, Seed{1});
  const Tensor x = graph.placeholder("x", DType::f32, {8, 64, 16});
  Tensor y = x;
  Tensors fetches;
  for (int i = 0; i < 4; ++i) {
    y = models::Lstm(parameters.scope("layer" + std::to_string(i)), 16, 16)(y).sequence;
    fetches.push_back(slice(y, 1));  // keeps it, and not what the backward pass reads beside it
  }
  fetches.push_back(optim::Sgd({.learning_rate = 0.1}).minimize(mean(square(y)), parameters));
  check_search(graph, fetches, {{x, {8, 64, 16}}}, Device::cpu());
}
