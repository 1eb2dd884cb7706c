#include "ebb/graph/passes/offload.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "ebb/core/kernels/host_copy.h"
#include "ebb/core/ops/copy.h"
#include "ebb/graph/passes/passes.h"

namespace ebb::detail {

namespace {

std::int64_t copy_nanoseconds(std::size_t bytes, const memory::Profile& profile) {
  return profile.step_ns +
         static_cast<std::int64_t>(1000 * static_cast<double>(bytes) /
                                   static_cast<double>(profile.link_bytes_per_us));
}

// Positions before which the parts of a move run, in the order of the other steps.
struct Slot {
  Index begin = 0, end = 0;
};

// The moves of a draft, and the order of its other steps.
class Moves {
 public:
  Moves(const Draft& draft, const std::vector<Index>& order)
      : draft_(draft),
        made_(draft.memories.size(), kNone),
        last_(draft.memories.size(), kNone),
        slots_(draft.moves.size()) {
    for (const Index s : order)
      if (!is_move(*draft.steps[s].node)) order_.push_back(s);
    for (Index p = 0; p < order_.size(); ++p) {
      const DraftStep& step = draft.steps[order_[p]];
      for (const DraftOperand& output : draft.outputs_of(step))
        if (output.value.memory != kNone)
          made_[output.value.memory] = last_[output.value.memory] = p;
      for (const DraftOperand& input : draft.inputs_of(step))
        if (input.value.memory != kNone) last_[input.value.memory] = p;
    }
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const DraftMove& move = draft.moves[i];
      if (is_out(move)) {
        // The last reader may take the memory over: the copy is done before it.
        const Index begin = made_[move.memory] + 1;
        slots_[i] = {begin, std::max(begin, last_[move.memory])};
      } else {
        slots_[i] = {move.reader, move.reader};
        // Nobody may read it before it comes back once more, which must not be earlier.
        if (last_[move.memory] == kNone) last_[move.memory] = move.reader - 1;
      }
    }
  }

  std::vector<Index> order_with_moves() const {
    std::vector<std::tuple<Index, int, Index>> parts;  // position, rank among those before it, step
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const int rank = is_out(draft_.moves[i]) ? 0 : 2;
      parts.emplace_back(slots_[i].begin, rank, draft_.moves[i].begin);
      parts.emplace_back(slots_[i].end, rank + 1, draft_.moves[i].end);
    }
    std::ranges::sort(parts);
    std::vector<Index> order;
    auto part = parts.begin();
    for (Index p = 0; p <= order_.size(); ++p) {
      for (; part != parts.end() && std::get<0>(*part) == p; ++part)
        order.push_back(std::get<2>(*part));
      if (p < order_.size()) order.push_back(order_[p]);
    }
    return order;
  }

  // Moves the slots apart, for a schedule with the slots as they are.
  void spread(const Schedule& schedule, std::size_t bytes) {
    limit_ = bytes;
    measure(schedule);
    const memory::Profile& profile = draft_.runtime->profile();
    std::vector<std::size_t> out, in;
    for (std::size_t i = 0; i < slots_.size(); ++i)
      (is_out(draft_.moves[i]) ? out : in).push_back(i);
    std::ranges::stable_sort(
        out, [&](std::size_t a, std::size_t b) { return slots_[a].begin < slots_[b].begin; });
    std::ranges::stable_sort(
        in, [&](std::size_t a, std::size_t b) { return slots_[a].end > slots_[b].end; });
    std::vector<Index> back(draft_.memories.size(), static_cast<Index>(order_.size()));
    for (const std::size_t i : in) back[draft_.moves[i].source] = slots_[i].end;
    // Copies use the link one after the other: saves as soon as they can, restores as late.
    std::int64_t done = 0;
    for (const std::size_t i : out) {
      const DraftMove& move = draft_.moves[i];
      const std::size_t size = bytes_of(move);
      done = std::max(done, time_[slots_[i].begin]) + copy_nanoseconds(size, profile);
      Index& end = slots_[i].end;
      while (end < back[move.memory] && time_[end] < done &&
             take(end, end == last_[move.memory] && !is_used_up(schedule, move) ? 0 : size))
        ++end;
    }
    std::int64_t start = std::numeric_limits<std::int64_t>::max();
    for (const std::size_t i : in) {
      const DraftMove& move = draft_.moves[i];
      const std::size_t size = bytes_of(move);
      Index& begin = slots_[i].begin;
      start = std::min(start, time_[begin]) - copy_nanoseconds(size, profile);
      while (begin > last_[move.source] + 1 && time_[begin] > start && take(begin - 1, size))
        --begin;
      start = std::max(start, time_[begin]);
    }
  }

 private:
  static bool is_out(const DraftMove& move) { return move.source == kNone; }

  std::size_t bytes_of(const DraftMove& move) const {
    return draft_.runtime->profile().rounded(draft_.memories[move.memory].bytes);
  }

  bool is_used_up(const Schedule& schedule, const DraftMove& move) const {
    const Index s = order_[last_[move.memory]];
    if (!schedule.destroyed[s].empty()) return true;
    for (const DraftOperand& output : draft_.outputs_of(draft_.steps[s]))
      if (output.value.memory != kNone && output.value.memory != move.memory &&
          schedule.owners[output.value.memory] == schedule.owners[move.memory])
        return true;
    return false;
  }

  // Bytes alive at each step, and the time before it.
  void measure(const Schedule& schedule) {
    std::vector<std::size_t> change(schedule.order.size() + 2, 0);  // by wrapping arithmetic
    for (const memory::Lifetime& life : schedule.buffers) {
      change[life.first] += life.bytes;
      change[life.end] -= life.bytes;
    }
    alive_.clear();
    time_.assign(1, 0);
    std::size_t alive = 0;
    for (std::size_t p = 0; p < schedule.order.size(); ++p) {
      alive += change[p];
      const DraftStep& step = draft_.steps[schedule.order[p]];
      if (is_move(*step.node)) continue;
      alive_.push_back(alive);
      time_.push_back(time_.back() +
                      estimated_nanoseconds(work_of(draft_, step), draft_.runtime->profile()));
    }
  }

  // Takes bytes at a step, if it has room for them.
  bool take(Index position, std::size_t bytes) {
    if (alive_[position] + bytes > limit_) return false;
    alive_[position] += bytes;
    return true;
  }

  const Draft& draft_;
  std::vector<Index> order_;        // without moves
  std::vector<Index> made_, last_;  // by memory: positions
  std::vector<Slot> slots_;         // by move
  std::vector<std::size_t> alive_;
  std::vector<std::int64_t> time_;
  std::size_t limit_ = 0;
};

}  // namespace

bool is_move(const Node& node) noexcept {
  return node.op == &move_out_op || node.op == &move_in_op || node.op == &moved_op;
}

void add_restores(Timeline& timeline, const memory::Profile& profile) {
  // The longest time between two uses of a value.
  std::vector<std::int64_t> gap(timeline.values.size(), 0), used(timeline.values.size(), 0);
  std::int64_t now = 0;
  for (Index p = 0; p < timeline.steps.size(); ++p) {
    for (const Timeline::Read& read : timeline.reads_of(p))
      gap[read.value] = std::max(gap[read.value], now - std::exchange(used[read.value], now));
    now += timeline.steps[p].nanoseconds;
    for (const Index value : timeline.writes_of(p)) used[value] = now;
  }
  // Copies hide behind a part of the work only, since memory is short: about a quarter in models of
  // usual shapes.
  timeline.hidden_nanoseconds = now / 4;
  const Index positions = timeline.positions();
  for (Index v = 0; v < timeline.values.size(); ++v) {
    Timeline::Value& value = timeline.values[v];
    if (!value.droppable || value.bytes == 0) continue;
    const std::int64_t both = 2 * copy_nanoseconds(value.bytes, profile);
    value.restore = positions + timeline.restores++;
    timeline.steps.push_back({.first_write = static_cast<Index>(timeline.writes.size()),
                              .writes = 1,
                              .until = positions,
                              .nanoseconds = both,
                              .hidden_nanoseconds = std::min(both - 2 * profile.step_ns, gap[v])});
    timeline.writes.push_back(v);
  }
}

Index Mover::add_step(const OpDef& op, Index from, Index to) {
  Ref<Node> node = make_ref<Node>(
      op, HostCopyAttributes{static_cast<std::uint32_t>(draft_.moves.size()), &op == &move_out_op},
      draft_.steps[draft_.memories[from].producer].node->site, 0u);
  const auto spec = static_cast<Index>(draft_.specs.size());
  draft_.specs.push_back({DType::u8, {static_cast<std::int64_t>(draft_.memories[from].bytes)}});
  DraftStep step{
      .node = node.get(), .first_operand = static_cast<Index>(draft_.operands.size()), .inputs = 1};
  draft_.operands.push_back({{from, 0}, spec});
  draft_.operands.push_back({{to, 0}, spec});
  (&op == &moved_op ? step.inputs : step.outputs) += 1;
  draft_.made.push_back(std::move(node));
  draft_.steps.push_back(std::move(step));
  return static_cast<Index>(draft_.steps.size() - 1);
}

void Mover::add_move(bool is_out, Index from, Index to, Index source) {
  const Index begin = add_step(is_out ? move_out_op : move_in_op, from, to);
  draft_.memories[to].producer = begin;
  draft_.moves.push_back({begin, add_step(moved_op, from, to), is_out ? from : to, source,
                          is_out ? kNone : static_cast<Index>(order_.size())});
}

Index Mover::bring_back(Index memory, Index source) {
  host_of_.resize(std::max<std::size_t>(host_of_.size(), memory + 1), kNone);
  if (host_of_[memory] == kNone) {
    host_of_[memory] = static_cast<Index>(draft_.memories.size());
    draft_.memories.push_back(
        {.kind = Location::host, .index = host_buffers_++, .bytes = draft_.memories[memory].bytes});
    add_move(true, memory, host_of_[memory], kNone);
  }
  const auto copy = static_cast<Index>(draft_.memories.size());
  draft_.memories.push_back(draft_.memories[memory]);
  add_move(false, host_of_[memory], copy, source);
  return copy;
}

void Mover::put_into_order() {
  if (!draft_.moves.empty()) order_ = Moves(draft_, order_).order_with_moves();
}

void overlap_moves(const Draft& draft, Schedule& schedule, std::size_t arena_bytes) {
  constexpr int kTries = 4;
  std::size_t alive_bytes = arena_bytes;
  for (int i = 0; i < kTries && !draft.moves.empty(); ++i) {
    Moves moves(draft, schedule.order);
    moves.spread(schedule, alive_bytes);
    Schedule spread;
    spread.updates_early = schedule.updates_early;
    spread.is_reordered = schedule.is_reordered;
    spread.order = moves.order_with_moves();
    lay_out(draft, spread, true);
    if (spread.layout.total_bytes <= arena_bytes) {
      schedule = std::move(spread);
      return;
    }
    // A placement takes more than the bytes alive at once.
    alive_bytes -= std::min(alive_bytes, spread.layout.total_bytes - arena_bytes);
  }
}

}  // namespace ebb::detail
