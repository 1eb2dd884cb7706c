#include "ebb/graph/program.h"

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>

#include "ebb/allocator/statistics.h"
#include "ebb/core/base/error.h"
#include "ebb/core/kernels/fused.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/tensor/kernel_of.h"
#include "ebb/graph/passes/passes.h"
#include "ebb/graph/passes/rows.h"
#include "ebb/graph/passes/timeline.h"
#include "ebb/graph/variables.h"

namespace ebb::detail {

namespace {

class Emitter {
 public:
  Emitter(Draft& draft, const Schedule& schedule) : draft_(draft), schedule_(schedule) {}

  Program emit(bool details) {
    program_.steps.reserve(schedule_.order.size() + 1);  // one more step counts the run
    program_.values.reserve(draft_.operands.size() + 2);
    program_.arena_lives.reserve(schedule_.buffers.size());
    for (const Index s : schedule_.order) emit(s);
    for (const DraftFetch& fetch : draft_.fetches) {
      const Location location = location_of(fetch.value);
      const bool is_there = location.kind == Location::fetch && location.offset == 0 &&
                            location.index == program_.fetches.size();
      program_.fetches.push_back({draft_.specs[fetch.spec], is_there ? Location{} : location,
                                  tag("fetch", fetch.source.producer->site)});
    }
    for (Index m = 0; m < draft_.memories.size(); ++m)
      if (const Index feed = draft_.memories[m].slot_of;
          feed != kNone && schedule_.buffer_of[m] != kNone)
        program_.feed_slots.push_back({feed, {Location::arena, schedule_.buffer_of[m], 0}});
    program_.arena_offsets = schedule_.layout.offsets;
    for (std::size_t b = 0; b < schedule_.buffers.size(); ++b) {
      const memory::Lifetime& life = schedule_.buffers[b];
      program_.arena_lives.push_back(
          {schedule_.layout.offsets[b], life.bytes, life.first, life.end - 1});
    }
    std::ranges::stable_sort(program_.arena_lives, {}, &ArenaLife::last);
    for (const DraftMemory& memory : draft_.memories)
      if (memory.kind == Location::captured && !memory.updates.empty())
        program_.updated_captured.push_back(memory.index);
    program_.plan = make_plan(draft_, schedule_);
    if (details) program_.plan.details = make_details();
    program_.feeds = std::move(draft_.feeds);
    program_.captured.assign(draft_.captured.begin(), draft_.captured.end());
    program_.variables = std::move(draft_.variables);
    std::sort(program_.variables.begin(), program_.variables.end());
    program_.made = std::move(draft_.made);
    program_.slots_on_host = draft_.slots_on_host;
    for (const std::uint32_t variable : program_.variables)
      if (static_cast<std::int64_t>(variable) == draft_.graph->random_state()) count_run(variable);
    return std::move(program_);
  }

 private:
  // The last step of a run that draws: counts it, so that the next run draws other numbers. A run
  // that fails earlier leaves the count alone.
  void count_run(std::uint32_t random_state) {
    for (ArenaLife& life : program_.arena_lives)
      if (life.last == program_.steps.size()) ++life.last;  // a fetched value
    Ref<Node> node = make_ref<Node>(next_run_op, Attributes(), CallSite(), 0u);
    program_.steps.push_back({.node = node.get(),
                              .kernel = &kernel_of(next_run_op, *draft_.runtime),
                              .first_value = static_cast<std::uint32_t>(program_.values.size()),
                              .inputs = 1,
                              .outputs = 1,
                              .destroyed = {},
                              .unwanted = {}});
    program_.made.push_back(std::move(node));
    const LocatedValue state{{Location::variable, random_state, 0}, {DType::i64, {2}}};
    program_.values.insert(program_.values.end(), {state, state});
  }

  void emit(Index s) {
    const DraftStep& from = draft_.steps[s];
    Step step{.node = from.node,
              .kernel = &kernel_of(*from.node->op, *draft_.runtime, from.node->site),
              .first_value = static_cast<std::uint32_t>(program_.values.size()),
              .inputs = from.inputs,
              .outputs = from.outputs,
              .workspace = schedule_.workspace_buffer[s],
              .workspace_bytes = schedule_.workspace[s],
              .destroyed = schedule_.destroyed[s],
              .unwanted = from.unwanted,
              .is_repeated = from.repeats != kNone};
    for (const DraftOperand& input : draft_.inputs_of(from))
      program_.values.push_back({location_of(input.value), draft_.specs[input.spec]});
    for (const DraftOperand& output : draft_.outputs_of(from))
      program_.values.push_back({location_of(output.value), draft_.specs[output.spec]});
    program_.steps.push_back(std::move(step));
  }

  std::shared_ptr<const memory::PlanDetails> make_details() const {
    auto details = std::make_shared<memory::PlanDetails>();
    for (std::size_t b = 0; b < schedule_.buffers.size(); ++b) {
      const memory::Lifetime& life = schedule_.buffers[b];
      details->buffers.push_back({schedule_.layout.offsets[b], life.bytes, life.first, life.end - 1,
                                  schedule_.buffer_categories[b]});
    }
    for (const Step& step : program_.steps) {
      const Node& node = *step.node;
      auto& to = details->steps.emplace_back();
      to.tag = tag(node.op->name, node.site);
      to.is_repeated = step.is_repeated;
      if (const FusedChain* const chain = chain_of(node)) {
        for (const FusedStep& link : chain->steps) to.chain.push_back(link.name);
        if (chain->sum) to.chain.push_back(chain->sum->mean ? "mean" : "sum");
      }
      if (step.workspace != kNone) to.workspace = step.workspace;
      for (std::uint32_t i = 0; i < step.inputs + step.outputs; ++i) {
        const Location& location = program_.values[step.first_value + i].location;
        if (location.kind == Location::nowhere) continue;
        auto& operand = (i < step.inputs ? to.reads : to.writes).emplace_back();
        if (location.kind == Location::arena)
          operand.buffer = location.index;
        else
          operand.name = name_of(location);
      }
    }
    return details;
  }

  std::string name_of(const Location& location) const {
    if (location.kind == Location::variable) return draft_.graph->variables()[location.index].name;
    if (location.kind == Location::feed) return draft_.feeds[location.index]->extra->name;
    if (location.kind == Location::host) return "host " + std::to_string(location.offset);
    return (location.kind == Location::fetch ? "fetch " : "captured ") +
           std::to_string(location.index);
  }

  Location location_of(const DraftValue& value) const {
    if (value.memory == kNone) return {};
    const DraftMemory& memory = draft_.memories[value.memory];
    if (memory.kind == Location::host)
      return {Location::host, 0, schedule_.host_layout.offsets[memory.index]};
    if (memory.kind != Location::arena) return {memory.kind, memory.index, value.offset};
    const DraftMemory& owner = draft_.memories[schedule_.owners[value.memory]];
    if (owner.fetch != kNone) return {Location::fetch, owner.fetch, value.offset};
    return {Location::arena, schedule_.buffer_of[value.memory], value.offset};
  }

  Draft& draft_;
  const Schedule& schedule_;
  Program program_;
};

// The steps of a draft that has its shapes, and their schedule.
Schedule make_written(Draft& draft, Passes passes) {
  passes.merge = false;
  make_steps(draft, passes);
  return best_schedule(draft, passes);
}

void fuse_unless_larger(Draft& draft, Schedule& schedule, const Passes& passes) {
  if (!passes.fuse) return;
  Draft fused = draft;
  if (!fuse(fused)) return;
  add_dependencies(fused);
  Schedule of_fused = best_schedule(fused, passes);
  if (of_fused.layout.total_bytes > schedule.layout.total_bytes) return;
  draft = std::move(fused);
  schedule = std::move(of_fused);
}

// Merges nodes and fuses steps, each unless the plan takes more bytes then.
Schedule make_improved(Draft& draft, const Draft& whole, const Passes& passes) {
  const bool is_merged = make_steps(draft, passes);
  Schedule schedule = best_schedule(draft, passes);
  fuse_unless_larger(draft, schedule, passes);
  if (!is_merged) return schedule;
  Draft written = whole;
  Schedule of_written = make_written(written, passes);
  fuse_unless_larger(written, of_written, passes);
  if (of_written.layout.total_bytes < schedule.layout.total_bytes) {
    draft = std::move(written);
    schedule = std::move(of_written);
  }
  return schedule;
}

[[noreturn]] void refuse_budget(const char* what, std::size_t budget, std::size_t held,
                                bool slots_on_host, std::size_t least, const std::string& why) {
  using memory::format_bytes;
  refuse(what,
         "no plan keeps to a budget of " + format_bytes(budget) +
             (held == 0 ? ":"
                        : std::string(slots_on_host ? ": parameters take "
                                                    : ": parameters and slots take ") +
                              format_bytes(held) + (held > budget ? "," : " of it,") + " and") +
             " the least budget with which these fetches and shapes run is " + format_bytes(least) +
             " (" + std::to_string(least) + " bytes)" + why);
}

}  // namespace

std::size_t captured_bytes(std::span<const Node* const> captured, const memory::Profile& profile) {
  std::unordered_set<const Storage*> seen;
  std::size_t bytes = 0;
  for (const Node* node : captured) {
    const Storage& storage = *node->extra->tensor.impl()->storage;
    if (seen.insert(&storage).second) bytes += profile.rounded(storage.bytes());
  }
  return bytes;
}

Program make_program(const GraphState& graph, const Tensors& fetches, const FedShapes& shapes,
                     const Runtime& runtime, const ProgramOptions& options) {
  Passes passes = options.passes;
  if (looks_for_nan()) passes.fuse = passes.fold = false;  // each operator has to run
  Draft draft = prune(graph, runtime, fetches, options.what, options.effects);
  infer(draft, shapes);
  const bool is_bounded = options.budget || options.least;
  const Draft whole = is_bounded || passes.merge ? draft : Draft();
  Schedule schedule = make_improved(draft, whole, passes);
  const bool on_host = options.variables && options.variables->slots_on_host();
  draft.slots_on_host = on_host;
  if (!is_bounded) return Emitter(draft, schedule).emit(options.details);
  const auto held_by = [&](const Draft& of) {
    return options.variables
               ? options.variables->reserved_bytes_with(of.variables, of.slots_on_host)
               : variable_bytes(of);
  };
  const auto reserved = [&] {
    return held_by(draft) + runtime.profile().in_pages(schedule.layout.total_bytes);
  };
  const std::size_t before = reserved();
  const std::size_t budget = options.least ? 0 : *options.budget;
  memory::Work work = work_of(draft);
  std::int64_t micro_batches = 1, batch = 0;
  if (before > budget) {
    const Draft improved = std::exchange(draft, whole);  // more can be done with single steps
    const Schedule of_improved = schedule;
    schedule = make_written(draft, passes);
    draft.slots_on_host = on_host;
    work = work_of(draft);
    Rows rows;
    if (passes.share) {
      rows = find_rows(whole, options.batch);
      batch = rows.count;
      micro_batches = fit_budget(whole, rows, draft, schedule, budget, held_by);
    }
    if (reserved() > before) {
      draft = improved;
      schedule = of_improved;
      work = work_of(draft);
      micro_batches = 1;
    }
    const std::size_t least = reserved();
    if (least > budget && !options.least)
      refuse_budget(options.what, budget, held_by(draft), draft.slots_on_host, least,
                    !passes.share    ? "; with passes off nothing is made to fit"
                    : rows.can_cut() ? ""
                                     : "; micro-batches are not possible: " + rows.reason());
  }
  Program program = Emitter(draft, schedule).emit(options.details);
  memory::Plan& plan = program.plan;
  plan.unbudgeted_bytes = before;
  plan.micro_batches = static_cast<std::size_t>(micro_batches);
  if (micro_batches > 1) plan.micro_batch_rows = (batch + micro_batches - 1) / micro_batches;
  plan.extra_work = {plan.work.products - work.products, plan.work.moved_bytes - work.moved_bytes};
  return program;
}

}  // namespace ebb::detail
