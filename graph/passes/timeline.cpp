#include "ebb/graph/passes/timeline.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "ebb/graph/passes/offload.h"
#include "ebb/graph/passes/passes.h"

namespace ebb::detail {

namespace {

class Builder {
 public:
  Builder(const Draft& draft, const Schedule& schedule) : draft_(draft), schedule_(schedule) {
    positions_.resize(draft.steps.size());
    for (Index p = 0; p < schedule.order.size(); ++p) positions_[schedule.order[p]] = p;
  }

  Timeline build() {
    add_values();
    timeline_.steps.reserve(schedule_.order.size());
    for (const Index s : schedule_.order) add_step(draft_.steps[s]);
    return std::move(timeline_);
  }

 private:
  void add_values() {
    const memory::Profile& profile = draft_.runtime->profile();
    timeline_.value_of.assign(draft_.memories.size(), kNone);
    for (Index m = 0; m < draft_.memories.size(); ++m) {
      const DraftMemory& memory = draft_.memories[m];
      if (memory.kind != Location::arena) continue;
      timeline_.value_of[m] = static_cast<Index>(timeline_.values.size());
      const bool is_fetched = memory.fetch != kNone;
      timeline_.values.push_back(
          {.bytes = is_fetched ? 0 : profile.rounded(memory.bytes),
           .producer = memory.producer == kNone ? kNone : positions_[memory.producer],
           .droppable = !is_fetched && memory.producer != kNone && memory.updates.empty()});
    }
    for (const DraftFetch& fetch : draft_.fetches)
      if (fetch.value.memory != kNone)
        if (const Index value = timeline_.value_of[fetch.value.memory]; value != kNone) {
          timeline_.values[value].at_the_end = true;
          timeline_.values[value].droppable = false;
        }
  }

  void add_step(const DraftStep& from) {
    const OpDef& op = *from.node->op;
    Timeline::Step step{.first_read = static_cast<Index>(timeline_.reads.size()),
                        .first_write = static_cast<Index>(timeline_.writes.size()),
                        .until = last_repeat(from)};
    const std::span<const DraftOperand> inputs = draft_.inputs_of(from);
    for (std::size_t j = 0; j < inputs.size(); ++j) add_read(from, j, step);
    for (const DraftOperand& output : draft_.outputs_of(from)) {
      if (output.value.memory == kNone || !op.updates.empty()) continue;
      timeline_.writes.push_back(timeline_.value_of[output.value.memory]);
      ++step.writes;
    }
    if (step.writes > 32) step.until = 0;
    step.nanoseconds = estimated_nanoseconds(work_of(draft_, from), draft_.runtime->profile());
    IndexSet destroyed;
    for (std::size_t j = 0; j < inputs.size(); ++j)
      if (op.destroys.has(j)) destroyed.insert(j);
    const memory::Profile& profile = draft_.runtime->profile();
    step.workspace = profile.rounded(workspace_bytes(draft_, from, {}));
    step.least_workspace = destroyed.empty()
                               ? step.workspace
                               : profile.rounded(workspace_bytes(draft_, from, destroyed));
    timeline_.steps.push_back(step);
  }

  // Its conditions are lay_out's, but for the last read.
  void add_read(const DraftStep& from, std::size_t j, Timeline::Step& step) {
    const OpDef& op = *from.node->op;
    const std::span<const DraftOperand> inputs = draft_.inputs_of(from);
    const DraftOperand& input = inputs[j];
    if (input.value.memory == kNone) return;
    const Index value = timeline_.value_of[input.value.memory];
    if (value == kNone) return;
    const DraftMemory& memory = draft_.memories[input.value.memory];
    const std::size_t bytes = draft_.specs[input.spec].bytes();
    const auto reads_it = [&](const DraftOperand& other) {
      return other.value.memory == input.value.memory;
    };
    bool is_whole = memory.fetch == kNone && input.value.offset == 0 && memory.bytes == bytes;
    if (std::count_if(inputs.begin(), inputs.end(), reads_it) > 1) {
      is_whole = false;
      if (std::any_of(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(j), reads_it))
        return;
    }
    const DraftOperand* output = from.outputs ? &draft_.outputs_of(from)[0] : nullptr;
    const bool has_output = output && output->value.memory != kNone && op.updates.empty() &&
                            draft_.memories[output->value.memory].fetch == kNone;
    timeline_.reads.push_back(
        {.value = value,
         .is_passed_on = is_whole && has_output && op.takes_over.has(j) &&
                         !ends_in_sum(*from.node) &&
                         are_alike(draft_.specs[input.spec], draft_.specs[output->spec]),
         .is_destroyed = is_whole && op.destroys.has(j)});
    ++step.reads;
  }

  // A step that reads state runs again only before the next update of it.
  Index last_repeat(const DraftStep& step) const {
    const OpDef& op = *step.node->op;
    if (op.stateful || !op.updates.empty()) return 0;
    for (const DraftOperand& output : draft_.outputs_of(step))
      if (output.value.memory != kNone && !draft_.memories[output.value.memory].updates.empty())
        return 0;
    auto until = static_cast<Index>(schedule_.order.size());
    for (const DraftOperand& input : draft_.inputs_of(step)) {
      if (input.value.memory == kNone) continue;
      const DraftMemory& memory = draft_.memories[input.value.memory];
      for (const Update& update : memory.updates)
        if (update.version > input.version) until = std::min(until, positions_[update.step]);
    }
    return until;
  }

  const Draft& draft_;
  const Schedule& schedule_;
  std::vector<Index> positions_;  // by step
  Timeline timeline_;
};

}  // namespace

memory::Work work_of(const Draft& draft, const DraftStep& step) {
  memory::Work work;
  for (const std::span<const DraftOperand> operands :
       {draft.inputs_of(step), draft.outputs_of(step)})
    for (const DraftOperand& operand : operands)
      if (operand.value.memory != kNone) work.moved_bytes += draft.specs[operand.spec].bytes();
  if (!step.node->op->products) return work;
  Specs inputs, outputs;
  const MemoryQuery query = query_of(draft, step, inputs, outputs);
  work.products = static_cast<std::size_t>(step.node->op->products(query));
  return work;
}

std::int64_t estimated_nanoseconds(const memory::Work& work, const memory::Profile& profile) {
  const double products =
      static_cast<double>(work.products) / static_cast<double>(profile.products_per_us);
  const double moved =
      static_cast<double>(work.moved_bytes) / static_cast<double>(profile.bytes_per_us);
  return profile.step_ns + static_cast<std::int64_t>(1000 * std::max(products, moved));
}

Timeline make_timeline(const Draft& draft, const Schedule& schedule) {
  return Builder(draft, schedule).build();
}

std::size_t working_set(const Timeline& timeline, Index step) {
  std::size_t bytes = timeline.steps[step].least_workspace, passed = 0;
  for (const Timeline::Read& read : timeline.reads_of(step)) {
    bytes += timeline.values[read.value].bytes;
    if (read.is_passed_on) passed = std::max(passed, timeline.values[read.value].bytes);
  }
  for (const Index value : timeline.writes_of(step)) bytes += timeline.values[value].bytes;
  return bytes - passed;
}

std::int64_t extra_nanoseconds(const Timeline& timeline, const Turns& turns) {
  std::int64_t sum = 0, hidden = 0;
  for (const Turn& turn : turns) {
    if (!turn.is_repeated()) continue;
    sum += timeline.steps[turn.step].nanoseconds;
    hidden += timeline.steps[turn.step].hidden_nanoseconds;
  }
  return sum - std::min(hidden, timeline.hidden_nanoseconds);
}

void measure(const Timeline& timeline, const Turns& turns, Usage& usage) {
  struct Copy {
    std::size_t bytes = 0;
    Index value = 0, last = 0;
  };
  const auto count = static_cast<Index>(turns.size());
  std::vector<Copy> copies;
  std::vector<Index> current(timeline.values.size(), kNone);  // copy of each value
  std::vector<Index> read;                                    // copies, in the order of reads
  copies.reserve(timeline.values.size() + count);
  read.reserve(timeline.reads.size() + 2 * count);
  // Changes of the bytes alive, by wrapping arithmetic.
  usage.alive.assign(count + 1, 0);
  usage.gaps.clear();
  for (Index v = 0; v < timeline.values.size(); ++v)
    if (timeline.values[v].producer == kNone) {
      current[v] = static_cast<Index>(copies.size());
      copies.push_back({timeline.values[v].bytes, v, 0});
      usage.alive[0] += copies.back().bytes;
    }
  for (Index t = 0; t < count; ++t) {
    const Turn& turn = turns[t];
    for (const Timeline::Read& r : timeline.reads_of(turn.step)) {
      Copy& copy = copies[current[r.value]];
      if (turns[copy.last].before < turn.before) usage.gaps.push_back({r.value, copy.last, t});
      copy.last = t;
      read.push_back(current[r.value]);
    }
    const std::span<const Index> writes = timeline.writes_of(turn.step);
    for (std::size_t k = 0; k < writes.size(); ++k) {
      const std::size_t bytes = timeline.values[writes[k]].bytes;
      usage.alive[t] += bytes;
      if (!turn.is_repeated() || (turn.renewed >> k & 1)) {
        current[writes[k]] = static_cast<Index>(copies.size());
        copies.push_back({bytes, writes[k], t});
      } else {
        usage.alive[t + 1] -= bytes;
      }
    }
  }
  for (Index v = 0; v < timeline.values.size(); ++v)
    if (timeline.values[v].at_the_end && current[v] != kNone) copies[current[v]].last = count;
  for (const Copy& copy : copies)
    if (copy.last < count) usage.alive[copy.last + 1] -= copy.bytes;
  // Within a turn: workspace, less what output 0 takes over.
  usage.peak_bytes = usage.peak_turn = 0;
  std::size_t alive = 0;
  auto at = read.begin();
  for (Index t = 0; t < count; ++t) {
    alive += usage.alive[t];
    const Timeline::Step& step = timeline.steps[turns[t].step];
    bool all_destroyed = step.least_workspace != step.workspace, passed = false;
    std::size_t here = alive;
    for (const Timeline::Read& r : timeline.reads_of(turns[t].step)) {
      const Copy& copy = copies[*at++];
      if (r.is_passed_on && !passed && copy.last == t) {
        here -= copy.bytes;
        passed = true;
      }
      if (r.is_destroyed && copy.last != t) all_destroyed = false;
    }
    here += all_destroyed ? step.least_workspace : step.workspace;
    usage.alive[t] = here;
    if (here > usage.peak_bytes) {
      usage.peak_bytes = here;
      usage.peak_turn = t;
    }
  }
  usage.alive.pop_back();
}

namespace {

Index memory_of(const Timeline& timeline, Index value) {
  const auto at = std::find(timeline.value_of.begin(), timeline.value_of.end(), value);
  return static_cast<Index>(at - timeline.value_of.begin());
}

}  // namespace

void repeat_steps(Draft& draft, Schedule& schedule, const Timeline& timeline, const Turns& turns) {
  std::vector<Index> current(draft.memories.size());  // copy that readers find now
  std::iota(current.begin(), current.end(), Index{0});
  const std::vector<DraftOperand> as_written = draft.operands;
  const std::vector<Index> positions = std::exchange(schedule.order, {});
  Mover mover(draft, schedule.order);
  for (const Turn& turn : turns) {
    if (turn.step >= timeline.positions()) {
      const Index memory = memory_of(timeline, timeline.writes_of(turn.step)[0]);
      current[memory] = mover.bring_back(memory, current[memory]);
      continue;
    }
    const Index original = positions[turn.step];
    const Index first = draft.steps[original].first_operand, inputs = draft.steps[original].inputs;
    Index s = original;
    if (turn.is_repeated()) {
      DraftStep step = draft.steps[original];
      step.first_operand = static_cast<Index>(draft.operands.size());
      step.repeats = original;
      s = static_cast<Index>(draft.steps.size());
      draft.operands.insert(draft.operands.end(), as_written.begin() + first,
                            as_written.begin() + first + inputs + step.outputs);
      draft.steps.push_back(std::move(step));
    }
    const DraftStep& step = draft.steps[s];
    for (Index i = 0; i < inputs; ++i) {
      Index& memory = draft.operands[step.first_operand + i].value.memory;
      if (memory != kNone) memory = current[as_written[first + i].value.memory];
    }
    schedule.order.push_back(s);
    if (!turn.is_repeated()) continue;
    std::uint32_t renewed = turn.renewed;
    for (Index k = 0; k < step.outputs; ++k) {
      Index& memory = draft.operands[step.first_operand + inputs + k].value.memory;
      if (memory == kNone) continue;
      if (renewed & 1) current[memory] = static_cast<Index>(draft.memories.size());
      renewed >>= 1;
      DraftMemory copy = draft.memories[memory];
      copy.producer = s;
      memory = static_cast<Index>(draft.memories.size());
      draft.memories.push_back(std::move(copy));
    }
  }
  mover.put_into_order();
}

}  // namespace ebb::detail
