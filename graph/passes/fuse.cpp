#include <algorithm>
#include <utility>

#include "ebb/core/kernels/fused.h"
#include "ebb/core/kernels/merged_axes.h"
#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/kernels/reduce.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/fused.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/tensor/kernel_of.h"
#include "ebb/graph/passes/passes.h"

namespace ebb::detail {

namespace {

// Owns the chain of its attributes.
struct FusedNode : Node {
  FusedNode(CallSite where, std::uint64_t which)
      : Node(fused_op, FusedAttributes{&chain}, where, which) {}
  FusedChain chain;
};

// Makes chains of pointwise steps. A step joins the step that alone reads its result, or the chain
// of that step, and runs in its place.
class Fuser {
  // With fewer all values fit a CPU's nearest cache as they are, and a GPU's time is its launches'.
  static constexpr std::int64_t kLeastElements = 4096;

 public:
  explicit Fuser(Draft& draft)
      : draft_(draft), readers_(draft.memories.size()), joined_(draft.steps.size(), kNone) {
    for (Index s = 0; s < draft_.steps.size(); ++s)
      for (const DraftOperand& input : draft_.inputs_of(draft_.steps[s]))
        if (input.value.memory != kNone) readers_[input.value.memory].push_back(s);
    for (const DraftFetch& fetch : draft_.fetches)
      if (fetch.value.memory != kNone) readers_[fetch.value.memory].push_back(kNone);
  }

  bool run() {
    bool found = false;
    for (Index s = static_cast<Index>(draft_.steps.size()); s-- > 0;)
      if (joined_[s] == kNone && (is_sum(s) || is_link(s))) found |= begin_at(s);
    if (found) renumber();
    return found;
  }

 private:
  const OpDef& op_of(Index step) const noexcept { return *draft_.steps[step].node->op; }
  const DraftOperand& output_of(Index step) const noexcept {
    return draft_.outputs_of(draft_.steps[step])[0];
  }
  const Spec& spec_of(const DraftOperand& operand) const noexcept {
    return draft_.specs[operand.spec];
  }
  // The sum's gradient is its input, broadcast and divided.
  static bool broadcasts(const OpDef& op) noexcept { return &op == &broadcast_like_op; }

  // A sum or mean over all axes or the last ones, which may end a chain.
  bool is_sum(Index s) const {
    const OpDef& op = op_of(s);
    if (&op != &sum_op && &op != &mean_op) return false;
    const Spec& in = spec_of(draft_.inputs_of(draft_.steps[s])[0]);
    if (in.dtype != DType::f32 && in.dtype != DType::f64) return false;
    const MergedAxes merged(in.shape, draft_.steps[s].node->attributes.get<Reduction>().axes);
    return merged.inner_reduced && merged.groups <= 1;
  }

  // Elements that a chain goes through, by its last step.
  std::int64_t elements_of(Index last) const {
    return spec_of(is_sum(last) ? draft_.inputs_of(draft_.steps[last])[0] : output_of(last))
        .shape.elements();
  }

  bool is_link(Index s) const {
    const DraftStep& step = draft_.steps[s];
    const OpDef& op = *step.node->op;
    if ((!op.pointwise && !broadcasts(op)) || step.outputs != 1 || step.inputs > 3) return false;
    const DraftOperand& output = output_of(s);
    if (output.value.memory == kNone || output.value.offset != 0) return false;
    const DraftMemory& memory = draft_.memories[output.value.memory];
    return memory.updates.empty() && memory.bytes == spec_of(output).bytes();
  }

  // Whether `from`, whose result `memory` holds, may run with the chain whose last step is `last`.
  bool may_join(Index from, Index memory, Index last) const {
    if (from == kNone || joined_[from] != kNone || !is_link(from)) return false;
    const DraftOperand& output = output_of(from);
    if (spec_of(output).shape.elements() != elements_of(last)) return false;
    if (draft_.steps[from].node->category != draft_.steps[last].node->category) return false;
    for (const Index reader : readers_[memory]) {
      if (reader == kNone || joined_[reader] != last) return false;
      for (const DraftOperand& input : draft_.inputs_of(draft_.steps[reader]))
        if (input.value.memory == memory && spec_of(input).bytes() != spec_of(output).bytes())
          return false;
    }
    return is_left_alone(from) && keeps_few(from, last);
  }

  // Whether no update of the run writes over what the step reads.
  bool is_left_alone(Index s) const {
    return std::ranges::all_of(draft_.inputs_of(draft_.steps[s]), [&](const DraftOperand& input) {
      if (input.value.memory == kNone) return true;
      const auto& updates = draft_.memories[input.value.memory].updates;
      return updates.empty() || updates.back().version <= input.version;
    });
  }

  // Whether what must live longer for the step to run later is no more than the result that is no
  // longer kept.
  bool keeps_few(Index s, Index last) const {
    Index between = s + 1;
    while (between < last && joined_[between] == last) ++between;
    if (between == last) return true;
    std::size_t longer = 0;
    for (const DraftOperand& input : draft_.inputs_of(draft_.steps[s])) {
      if (input.value.memory == kNone) continue;
      const DraftMemory& memory = draft_.memories[input.value.memory];
      const auto is_later = [&](Index reader) { return reader == kNone || reader >= last; };
      if (memory.kind == Location::arena && memory.slot_of == kNone &&
          std::ranges::none_of(readers_[input.value.memory], is_later))
        longer += memory.bytes;
    }
    return longer <= spec_of(output_of(s)).bytes();
  }

  // Makes the chain that ends with this step, if others join it.
  bool begin_at(Index last) {
    const OpDef& op = op_of(last);
    if (broadcasts(op) || elements_of(last) < kLeastElements) return false;
    std::vector<Index> chain = {last};
    joined_[last] = last;
    std::size_t values = 1 + draft_.steps[last].inputs;
    for (std::size_t i = 0; i < chain.size(); ++i) {
      // A step may be ready to join only when all its readers have: goes through all again.
      for (const Index member : std::vector<Index>(chain))
        for (const DraftOperand& input : draft_.inputs_of(draft_.steps[member])) {
          if (input.value.memory == kNone || input.value.offset != 0) continue;
          const Index from = draft_.memories[input.value.memory].producer;
          if (!may_join(from, input.value.memory, last)) continue;
          const std::size_t more = draft_.steps[from].inputs;
          if (values + more > FusedChain::kMostValues) continue;
          values += more;
          joined_[from] = last;
          chain.push_back(from);
        }
    }
    if (chain.size() == 1) {
      joined_[last] = kNone;
      return false;
    }
    std::ranges::sort(chain);
    make(chain);
    return true;
  }

  // Puts one step in the place of the last one.
  void make(const std::vector<Index>& members) {
    const Index last = members.back();
    auto node = make_ref<FusedNode>(draft_.steps[last].node->site,
                                    draft_.graph->nodes().size() + draft_.made.size());
    node->category = draft_.steps[last].node->category;
    std::vector<DraftOperand> inputs;
    std::vector<std::pair<Index, std::size_t>> results;  // memory, number of the step
    // Numbers of values: inputs count from 0, results from kMostValues until all inputs are known.
    constexpr std::size_t kResults = FusedChain::kMostValues;
    std::vector<std::size_t> numbers;
    FusedChain& chain = node->chain;
    const auto input_number = [&](DraftOperand input, const Shape& to) {
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if (inputs[i].value.memory == input.value.memory &&
            inputs[i].value.offset == input.value.offset && spec_of(inputs[i]) == spec_of(input) &&
            chain.broadcast_to[i] == to && inputs[i].version == input.version)
          return i;
      inputs.push_back(input);
      chain.broadcast_to.push_back(to);
      return inputs.size() - 1;
    };
    for (const Index s : members) {
      const DraftStep step = draft_.steps[s];
      const Spec result = spec_of(output_of(s));
      if (s == last && is_sum(s)) {
        chain.sum = step.node->attributes.get<Reduction>();
        chain.summed = spec_of(draft_.inputs_of(step)[0]).shape;
        break;
      }
      const OpDef* op = step.node->op;
      FusedStep link;
      link.name = op->name;
      link.attributes = step.node->attributes;
      link.dtype = result.dtype;
      for (std::size_t j = 0; j < step.inputs; ++j) {
        DraftOperand input = draft_.inputs_of(step)[j];
        if (input.value.memory == kNone) continue;  // needed for its shape
        const auto made =
            std::ranges::find(results, input.value.memory, &std::pair<Index, std::size_t>::first);
        if (made != results.end()) {
          numbers.push_back(kResults + made->second);
        } else {
          if (broadcasts(*op)) input.spec = kept_spec(step, input);
          numbers.push_back(input_number(input, result.shape));
        }
        ++link.count;
      }
      if (broadcasts(*op)) {
        link.attributes = divided(step);
        op = &divide_op.number_right;
      }
      link.run = kernel_of(*op, *draft_.runtime, step.node->site).run;
      results.emplace_back(output_of(s).value.memory, chain.steps.size());
      chain.steps.push_back(link);
    }
    auto number = numbers.begin();
    for (FusedStep& link : chain.steps)
      for (std::size_t k = 0; k < link.count; ++k, ++number)
        link.operands[k] = static_cast<std::uint8_t>(
            *number < kResults ? *number : *number - kResults + inputs.size());
    for (const Index s : members)
      if (s != last) {
        DraftMemory& unused = draft_.memories[output_of(s).value.memory];
        unused.kind = Location::nowhere;
        unused.bytes = 0;
      }
    const DraftOperand output = output_of(last);
    DraftStep fused{.node = node.get(),
                    .first_operand = static_cast<Index>(draft_.operands.size()),
                    .inputs = static_cast<Index>(inputs.size()),
                    .outputs = 1};
    draft_.operands.insert(draft_.operands.end(), inputs.begin(), inputs.end());
    draft_.operands.push_back(output);
    draft_.steps[last] = std::move(fused);
    draft_.made.push_back(std::move(node));
  }

  // The input of broadcast_like with the reduced axes kept.
  Index kept_spec(const DraftStep& step, const DraftOperand& input) {
    Spec kept{spec_of(input).dtype, spec_of(draft_.outputs_of(step)[0]).shape};
    const auto& reduction = step.node->attributes.get<Reduction>();
    for (int axis = 0; axis < kept.shape.rank(); ++axis)
      if ((reduction.axes >> axis & 1u) != 0) kept.shape.set(axis, 1);
    draft_.specs.push_back(kept);
    return static_cast<Index>(draft_.specs.size() - 1);
  }
  NumberOperand divided(const DraftStep& step) const {
    const auto elements = [&](const DraftOperand& operand) {
      return spec_of(operand).shape.elements();
    };
    const double divisor = step.node->attributes.get<Reduction>().divisor(
        elements(draft_.outputs_of(step)[0]), elements(draft_.inputs_of(step)[0]));
    return {divisor, NumberOperand::right};
  }

  // Removes the steps that have joined others.
  void renumber() {
    std::vector<Index> number(draft_.steps.size(), kNone);
    std::vector<DraftStep> steps;
    for (Index s = 0; s < draft_.steps.size(); ++s) {
      if (joined_[s] != kNone && joined_[s] != s) continue;
      number[s] = static_cast<Index>(steps.size());
      steps.push_back(std::move(draft_.steps[s]));
    }
    draft_.steps = std::move(steps);
    for (DraftMemory& memory : draft_.memories) {
      if (memory.producer != kNone) memory.producer = number[memory.producer];
      for (Update& update : memory.updates) update.step = number[update.step];
    }
  }

  Draft& draft_;
  std::vector<std::vector<Index>> readers_;  // by memory: steps, kNone for a fetch
  std::vector<Index> joined_;                // by step: the last one of its chain
};

}  // namespace

const FusedChain* chain_of(const Node& node) noexcept {
  return node.op == &fused_op ? node.attributes.get<FusedAttributes>().chain : nullptr;
}

bool ends_in_sum(const Node& node) noexcept {
  const FusedChain* const chain = chain_of(node);
  return chain && chain->sum;
}

bool fuse(Draft& draft) { return draft.runtime->profile().fuses && Fuser(draft).run(); }

}  // namespace ebb::detail
