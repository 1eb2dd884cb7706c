#include "ebb/graph/program.h"

#include <algorithm>

#include "ebb/core/ops/random.h"
#include "ebb/core/tensor/kernel_of.h"
#include "ebb/graph/passes/passes.h"

namespace ebb::detail {

namespace {

// Schedules twice: as written, and with each update as early as possible. Keeps the schedule with
// fewer bytes.
Schedule best_schedule(const Form& form, bool passes) {
  const auto scheduled = [&](Schedule schedule) {
    assign(form, schedule, passes);
    place(schedule);
    return schedule;
  };
  Schedule as_written = scheduled(order(form, false));
  if (!passes) return as_written;
  Schedule early = order(form, true);
  if (early.order == as_written.order) return as_written;
  early = scheduled(std::move(early));
  return early.placed.total_bytes < as_written.placed.total_bytes ? early : as_written;
}

class Emitter {
 public:
  Emitter(Form& form, const Schedule& schedule) : form_(form), schedule_(schedule) {}

  Program emit() {
    program_.steps.reserve(schedule_.order.size() + 1);  // one more step counts the run
    program_.values.reserve(form_.operands.size() + 2);
    program_.arena_lives.reserve(schedule_.buffers.size());
    for (const Index s : schedule_.order) emit(s);
    for (const FormFetch& fetch : form_.fetches) {
      const Place place = place_of(fetch.value);
      const bool is_there =
          place.kind == Place::fetch && place.offset == 0 && place.index == program_.fetches.size();
      program_.fetches.push_back(
          {form_.specs[fetch.spec], is_there ? Place{} : place, tag("fetch", fetch.site)});
    }
    for (Index m = 0; m < form_.memories.size(); ++m)
      if (const Index feed = form_.memories[m].slot_of;
          feed != kNone && schedule_.buffer_of[m] != kNone)
        program_.feed_slots.push_back({feed, {Place::arena, schedule_.buffer_of[m], 0}});
    program_.arena_offsets = schedule_.placed.offsets;
    for (std::size_t b = 0; b < schedule_.buffers.size(); ++b) {
      const BufferLife& life = schedule_.buffers[b];
      program_.arena_lives.push_back(
          {schedule_.placed.offsets[b], life.bytes, life.first, life.last});
    }
    std::stable_sort(program_.arena_lives.begin(), program_.arena_lives.end(),
                     [](const ArenaLife& a, const ArenaLife& b) { return a.last < b.last; });
    for (const FormMemory& memory : form_.memories)
      if (memory.kind == FormMemory::captured && !memory.updates.empty())
        program_.updated_captured.push_back(memory.index);
    program_.plan = account(form_, schedule_);
    program_.feeds = std::move(form_.feeds);
    program_.captured.assign(form_.captured.begin(), form_.captured.end());
    program_.variables = std::move(form_.variables);
    std::sort(program_.variables.begin(), program_.variables.end());
    program_.made = std::move(form_.made);
    for (const std::uint32_t variable : program_.variables)
      if (static_cast<std::int64_t>(variable) == form_.graph->random_state()) count_run(variable);
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
                              .kernel = &kernel_of(next_run_op, *form_.runtime),
                              .first_value = static_cast<std::uint32_t>(program_.values.size()),
                              .inputs = 1,
                              .outputs = 1,
                              .destroyed = {},
                              .unwanted = {}});
    program_.made.push_back(std::move(node));
    const PlacedValue state{{Place::variable, random_state, 0}, {DType::i64, {2}}};
    program_.values.insert(program_.values.end(), {state, state});
  }

  void emit(Index s) {
    const FormStep& from = form_.steps[s];
    Step step{.node = from.node,
              .kernel = &kernel_of(*from.node->op, *form_.runtime, from.node->site),
              .first_value = static_cast<std::uint32_t>(program_.values.size()),
              .inputs = from.inputs,
              .outputs = from.outputs,
              .workspace = schedule_.workspace_buffer[s],
              .destroyed = schedule_.destroyed[s],
              .unwanted = from.unwanted};
    for (const FormOperand& input : form_.inputs_of(from))
      program_.values.push_back({place_of(input.value), form_.specs[input.spec]});
    for (const FormOperand& output : form_.outputs_of(from))
      program_.values.push_back({place_of(output.value), form_.specs[output.spec]});
    program_.steps.push_back(std::move(step));
  }

  Place place_of(const FormValue& value) const {
    if (value.memory == kNone) return {};
    const FormMemory& memory = form_.memories[value.memory];
    switch (memory.kind) {
      case FormMemory::variable:
        return {Place::variable, memory.index, value.offset};
      case FormMemory::captured:
        return {Place::captured, memory.index, value.offset};
      case FormMemory::feed:
        return {Place::feed, memory.index, value.offset};
      case FormMemory::arena:
        break;
    }
    const FormMemory& owner = form_.memories[schedule_.owners[value.memory]];
    if (owner.fetch != kNone) return {Place::fetch, owner.fetch, value.offset};
    return {Place::arena, schedule_.buffer_of[value.memory], value.offset};
  }

  Form& form_;
  const Schedule& schedule_;
  Program program_;
};

}  // namespace

Program make_program(const GraphState& graph, const Tensors& fetches, const FedShapes& shapes,
                     const Runtime& runtime, const ProgramOptions& options) {
  Form form = prune(graph, runtime, fetches, options.what);
  infer(form, shapes);
  if (options.passes) simplify(form);
  resolve(form);
  connect(form);
  const Schedule schedule = best_schedule(form, options.passes);
  return Emitter(form, schedule).emit();
}

}  // namespace ebb::detail
