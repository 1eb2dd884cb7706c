#include <map>

#include "ebb/core/base/error.h"
#include "ebb/core/ops/collective.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/tensor/kernel_of.h"
#include "ebb/graph/passes/passes.h"

namespace ebb::detail {

namespace {

class Resolver {
 public:
  explicit Resolver(Draft& draft) : draft_(draft) {
    draft_.values.resize(draft_.specs.size());
    draft_.memories.reserve(draft_.specs.size());
    draft_.steps.reserve(draft_.nodes.size());
    std::size_t operands = draft_.specs.size();
    for (const DraftNode& item : draft_.nodes) operands += item.node->inputs.size();
    draft_.operands.reserve(operands);
  }

  void run() {
    for (const DraftNode& item : draft_.nodes)
      if (item.runs) resolve(item);
    for (Index f = 0; f < draft_.fetches.size(); ++f) settle(f);
  }

 private:
  Index new_memory(const DraftMemory& memory) {
    draft_.memories.push_back(memory);
    return static_cast<Index>(draft_.memories.size() - 1);
  }

  void resolve(const DraftNode& item) {
    Node& node = *item.node;
    DraftValue& value = draft_.values[item.first_output];
    if (node.op == &placeholder_op) {
      feed(item, value);
    } else if (node.op == &variable_op) {
      const auto index = static_cast<Index>(node.attributes.get<VariableAttributes>().index);
      draft_.variables.push_back(index);
      value.memory = new_memory({.kind = Location::variable, .index = index});
    } else if (node.op == &captured_op) {
      capture(node, value);
    } else if (node.op->view || item.is_input) {
      value = draft_.values[draft_.output_of(node.inputs[0])];
      if (node.op == &whole_op) value.whole = &node;
      if (node.op->view) value.offset += node.op->view(query_of(item));
    } else if (item.same_as != kNone) {
      for (Index k = 0; k < node.outputs.size(); ++k) {
        const Index first = draft_.nodes[item.same_as].first_output + k;
        draft_.values[item.first_output + k] = draft_.values[first];
        draft_.specs[item.first_output + k] = draft_.specs[first];  // its opaque outputs have sizes
      }
    } else {
      add_step(item);
    }
  }

  // A feed is read in place or, in a captured program, from a slot of its own in the arena.
  void feed(const DraftNode& item, DraftValue& value) {
    const std::size_t bytes = draft_.specs[item.first_output].bytes();
    if (!draft_.runtime->profile().captures_programs)
      value.memory = new_memory({.kind = Location::feed, .index = item.feed});
    else if (bytes > 0)
      value.memory =
          new_memory({.category = memory::Category::input, .bytes = bytes, .slot_of = item.feed});
  }

  // Captured tensors that share memory have one DraftMemory, the first tensor's.
  void capture(Node& node, DraftValue& value) {
    value.offset = node.extra->tensor.impl()->offset;
    if (node.root) {
      value.memory = draft_.values[draft_.at(*node.root).first_output].memory;
      return;
    }
    value.memory = new_memory(
        {.kind = Location::captured, .index = static_cast<Index>(draft_.captured.size())});
    draft_.captured.push_back(&node);
  }

  MemoryQuery query_of(const DraftNode& item) {
    inputs_.clear();
    for (const Node::Source& source : item.node->inputs)
      inputs_.push_back(draft_.specs[draft_.output_of(source)]);
    return {{inputs_.data(), inputs_.size()},
            {draft_.specs.data() + item.first_output, item.node->outputs.size()},
            &item.node->attributes,
            nullptr,
            nullptr,
            &draft_.runtime->profile()};
  }

  // The whole of what the ranks have shares of: by a step that gathers it, for all readers until
  // one reads a parameter of another layer.
  DraftValue gathered(const DraftValue& value, std::uint32_t version) {
    const Node& whole = *value.whole;
    if (whole.site.layer != layer_) gathered_.clear();
    layer_ = whole.site.layer;
    const auto [found, is_new] = gathered_.try_emplace({value.memory, version});
    if (!is_new) return {found->second, value.offset};
    const DraftOperand made =
        add_made_step(gather_share_op, whole.attributes, whole.site, whole.outputs[0],
                      memory::Category::parameter, {value.memory, 0}, version);
    found->second = made.value.memory;
    return {found->second, value.offset};
  }

  void add_step(const DraftNode& item) {
    const Node& node = *item.node;
    DraftStep step{.node = &node};
    step.inputs = static_cast<Index>(node.inputs.size());
    step.outputs = static_cast<Index>(node.outputs.size());
    step.unwanted = unwanted_outputs(item);
    std::vector<DraftOperand> inputs;
    for (std::size_t j = 0; j < node.inputs.size(); ++j) {
      const Index output = draft_.output_of(node.inputs[j]);
      DraftOperand& input = inputs.emplace_back(DraftOperand{{}, output, node.inputs[j].version});
      if (needs_only_shape(*node.op, j, step.unwanted)) continue;
      input.value = draft_.values[output];
      if (!input.value.whole) continue;
      if (node.op->updates.has(j)) refuse(node.op->name, updates_shares(), node.site);
      input = {gathered(input.value, input.version), output};
    }
    const auto id = static_cast<Index>(draft_.steps.size());
    step.first_operand = static_cast<Index>(draft_.operands.size());
    draft_.operands.insert(draft_.operands.end(), inputs.begin(), inputs.end());
    for (std::size_t j = 0; j < node.inputs.size(); ++j)
      if (node.op->updates.has(j))
        add_update(draft_.values[draft_.output_of(node.inputs[j])].memory,
                   node.inputs[j].version + 1, id);
    if (!node.op->updates.empty()) require_apart(step);
    reserve(item, step);
    for (Index k = 0; k < step.outputs; ++k) {
      const Index output = item.first_output + k;
      DraftValue& value = draft_.values[output];
      if (k == 0 && !node.op->updates.empty())
        value = draft_.values[draft_.output_of(node.inputs[0])];
      else if (draft_.specs[output].bytes() > 0 && !step.unwanted.has(k))
        value.memory = new_memory(
            {.category = node.category, .bytes = draft_.specs[output].bytes(), .producer = id});
      draft_.operands.push_back({value, output, 0});
    }
    draft_.steps.push_back(std::move(step));
  }

  void add_update(Index memory, std::uint32_t version, Index step) {
    if (memory == kNone) return;  // an empty value
    auto& updates = draft_.memories[memory].updates;
    if (updates.empty() || updates.back().step != step) updates.push_back({version, step});
  }

  void require_apart(const DraftStep& step) const {
    const std::span<const DraftOperand> inputs = draft_.inputs_of(step);
    for (const DraftOperand& other : inputs.subspan(1))
      if (other.value.memory != kNone && other.value.memory == inputs[0].value.memory &&
          overlap_in_part(inputs[0].value.offset, draft_.specs[inputs[0].spec].bytes(),
                          other.value.offset, draft_.specs[other.spec].bytes()))
        refuse(step.node->op->name, overlaps_target(), step.node->site);
  }

  // Sets the size of an opaque output, which only the memory rule knows.
  void reserve(const DraftNode& item, const DraftStep& step) {
    const DeviceKernel& kernel = kernel_of(*item.node->op, *draft_.runtime, item.node->site);
    for (Index k = 0; k < step.outputs; ++k) {
      Spec& spec = draft_.specs[item.first_output + k];
      if (!spec.shape.is_open()) continue;
      require_memory_rule(*item.node->op, kernel, item.node->site);
      MemoryQuery query = query_of(item);
      query.unwanted = &step.unwanted;
      spec.shape = Shape{static_cast<std::int64_t>(kernel.memory(query).reserve_bytes)};
    }
  }

  // A fetched value that fills a memory of its own is computed straight into the caller's tensor.
  // Any other is copied at the end, or earlier if an update would overwrite it.
  void settle(Index f) {
    DraftFetch& fetch = draft_.fetches[f];
    fetch.spec = draft_.output_of(fetch.source);
    fetch.value = draft_.values[fetch.spec];
    if (fetch.value.memory == kNone) return;
    if (fetch.value.whole) {
      fetch.value = gathered(fetch.value, fetch.source.version);
      fetch.source.version = 0;
    }
    const DraftMemory& memory = draft_.memories[fetch.value.memory];
    if (!memory.updates.empty() && memory.updates.back().version > fetch.source.version)
      copy(fetch);
    if (draft_.runtime->profile().captures_programs) return;  // captures need fixed addresses
    DraftMemory& fetched = draft_.memories[fetch.value.memory];
    if (fetched.kind == Location::arena && fetched.fetch == kNone && fetch.value.offset == 0 &&
        fetched.bytes == draft_.specs[fetch.spec].bytes())
      fetched.fetch = f;
  }

  void copy(DraftFetch& fetch) {
    const Spec spec = draft_.specs[fetch.spec];
    const DraftOperand made =
        add_made_step(copy_op, Attributes(), fetch.source.producer->site, spec,
                      memory::Category::temporary, fetch.value, fetch.source.version);
    fetch.value = made.value;
    fetch.spec = made.spec;
  }

  // Adds a step that no user wrote, from a version of a value to memory of its own, both of this
  // spec to the kernel. Returns its output.
  DraftOperand add_made_step(const OpDef& op, const Attributes& attributes, CallSite site,
                             const Spec& spec, memory::Category category, const DraftValue& from,
                             std::uint32_t version) {
    const auto id = static_cast<Index>(draft_.steps.size());
    Ref<Node> node =
        make_ref<Node>(op, attributes, site, draft_.graph->nodes().size() + draft_.made.size());
    draft_.steps.push_back({.node = node.get(),
                            .first_operand = static_cast<Index>(draft_.operands.size()),
                            .inputs = 1,
                            .outputs = 1});
    draft_.made.push_back(std::move(node));
    const auto made = static_cast<Index>(draft_.specs.size());
    draft_.specs.push_back(spec);
    draft_.operands.push_back({from, made, version});
    const Index memory = new_memory({.category = category, .bytes = spec.bytes(), .producer = id});
    return draft_.operands.emplace_back(DraftOperand{{memory, 0}, made, 0});
  }

  Draft& draft_;
  std::vector<Spec> inputs_;
  std::map<std::pair<Index, std::uint32_t>, Index> gathered_;  // by memory of the share and version
  unsigned layer_ = 0;                                         // of the gathered parameters
};

}  // namespace

void resolve(Draft& draft) { Resolver(draft).run(); }

}  // namespace ebb::detail
