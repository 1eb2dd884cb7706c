#include "ebb/core/base/error.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/tensor/kernel_of.h"
#include "ebb/graph/passes/passes.h"

namespace ebb::detail {

namespace {

class Resolver {
 public:
  explicit Resolver(Form& form) : form_(form) {
    form_.values.resize(form_.specs.size());
    form_.memories.reserve(form_.specs.size());
    form_.steps.reserve(form_.nodes.size());
    std::size_t operands = form_.specs.size();
    for (const FormNode& item : form_.nodes) operands += item.node->inputs.size();
    form_.operands.reserve(operands);
  }

  void run() {
    for (const FormNode& item : form_.nodes)
      if (item.runs) resolve(item);
    for (Index f = 0; f < form_.fetches.size(); ++f) settle(f);
  }

 private:
  Index new_memory(const FormMemory& memory) {
    form_.memories.push_back(memory);
    return static_cast<Index>(form_.memories.size() - 1);
  }

  void resolve(const FormNode& item) {
    Node& node = *item.node;
    FormValue& value = form_.values[item.first_output];
    if (node.op == &placeholder_op) {
      feed(item, value);
    } else if (node.op == &variable_op) {
      const auto index = static_cast<Index>(node.attributes.get<VariableAttributes>().index);
      form_.variables.push_back(index);
      value.memory = new_memory({.kind = FormMemory::variable, .index = index});
    } else if (node.op == &captured_op) {
      capture(node, value);
    } else if (node.op->view || item.is_input) {
      value = form_.values[form_.output_of(node.inputs[0])];
      if (node.op->view) value.offset += node.op->view(query_of(item));
    } else {
      add_step(item);
    }
  }

  // A feed is read in place or, in a captured program, from a slot of its own in the arena.
  void feed(const FormNode& item, FormValue& value) {
    const Index index = feed_of(*item.node);
    const std::size_t bytes = form_.specs[item.first_output].bytes();
    if (!form_.runtime->profile().captures_programs)
      value.memory = new_memory({.kind = FormMemory::feed, .index = index});
    else if (bytes > 0)
      value.memory =
          new_memory({.category = memory::Category::input, .bytes = bytes, .slot_of = index});
  }

  Index feed_of(const Node& node) {
    if (feeds_.empty())
      for (Index i = 0; i < form_.feeds.size(); ++i) feeds_.emplace(form_.feeds[i], i);
    return feeds_.at(&node);
  }

  // Captured tensors that share memory have one FormMemory, the first tensor's.
  void capture(Node& node, FormValue& value) {
    value.offset = node.extra->tensor.impl()->offset;
    if (node.root) {
      value.memory = form_.values[form_.at(*node.root).first_output].memory;
      return;
    }
    value.memory = new_memory(
        {.kind = FormMemory::captured, .index = static_cast<Index>(form_.captured.size())});
    form_.captured.push_back(&node);
  }

  MemoryQuery query_of(const FormNode& item) {
    inputs_.clear();
    for (const Node::Source& source : item.node->inputs)
      inputs_.push_back(form_.specs[form_.output_of(source)]);
    return {{inputs_.data(), inputs_.size()},
            {form_.specs.data() + item.first_output, item.node->outputs.size()},
            &item.node->attributes,
            nullptr,
            nullptr,
            &form_.runtime->profile()};
  }

  void add_step(const FormNode& item) {
    const Node& node = *item.node;
    const auto id = static_cast<Index>(form_.steps.size());
    FormStep step{.node = &node, .first_operand = static_cast<Index>(form_.operands.size())};
    step.inputs = static_cast<Index>(node.inputs.size());
    step.outputs = static_cast<Index>(node.outputs.size());
    step.unwanted = left_out(item);
    for (std::size_t j = 0; j < node.inputs.size(); ++j) {
      const Index output = form_.output_of(node.inputs[j]);
      const bool only_shape = needs_only_shape(*node.op, j, step.unwanted);
      form_.operands.push_back(
          {only_shape ? FormValue{} : form_.values[output], output, node.inputs[j].version});
      if (node.op->updates.has(j))
        add_update(form_.values[output].memory, node.inputs[j].version + 1, id);
    }
    if (!node.op->updates.empty()) require_apart(step);
    reserve(item, step);
    for (Index k = 0; k < step.outputs; ++k) {
      const Index output = item.first_output + k;
      FormValue& value = form_.values[output];
      if (k == 0 && !node.op->updates.empty())
        value = form_.values[form_.output_of(node.inputs[0])];
      else if (form_.specs[output].bytes() > 0 && !step.unwanted.has(k))
        value.memory = new_memory(
            {.category = node.category, .bytes = form_.specs[output].bytes(), .producer = id});
      form_.operands.push_back({value, output, 0});
    }
    form_.steps.push_back(std::move(step));
  }

  void add_update(Index memory, std::uint32_t version, Index step) {
    if (memory == kNone) return;  // an empty value
    auto& updates = form_.memories[memory].updates;
    if (updates.empty() || updates.back().step != step) updates.push_back({version, step});
  }

  void require_apart(const FormStep& step) const {
    const std::span<const FormOperand> inputs = form_.inputs_of(step);
    for (const FormOperand& other : inputs.subspan(1))
      if (other.value.memory != kNone && other.value.memory == inputs[0].value.memory &&
          overlap_in_part(inputs[0].value.offset, form_.specs[inputs[0].spec].bytes(),
                          other.value.offset, form_.specs[other.spec].bytes()))
        throw Error(message(step.node->op->name, overlaps_target(), step.node->site));
  }

  // Sets the size of an opaque output, which only the memory rule knows.
  void reserve(const FormNode& item, const FormStep& step) {
    const DeviceKernel& kernel = kernel_of(*item.node->op, *form_.runtime, item.node->site);
    for (Index k = 0; k < step.outputs; ++k) {
      Spec& spec = form_.specs[item.first_output + k];
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
    FormFetch& fetch = form_.fetches[f];
    fetch.spec = form_.output_of(fetch.source);
    fetch.value = form_.values[fetch.spec];
    if (fetch.value.memory == kNone) return;
    const FormMemory& memory = form_.memories[fetch.value.memory];
    if (fetch.pinned && !memory.updates.empty() &&
        memory.updates.back().version > fetch.source.version)
      copy(fetch);
    if (form_.runtime->profile().captures_programs) return;  // captures need fixed addresses
    FormMemory& fetched = form_.memories[fetch.value.memory];
    if (fetched.kind == FormMemory::arena && fetched.fetch == kNone && fetch.value.offset == 0 &&
        fetched.bytes == form_.specs[fetch.spec].bytes())
      fetched.fetch = f;
  }

  void copy(FormFetch& fetch) {
    const Spec spec = form_.specs[fetch.spec];
    const auto id = static_cast<Index>(form_.steps.size());
    Ref<Node> node = make_ref<Node>(copy_op, Attributes(), fetch.source.producer->site,
                                    form_.graph->nodes().size() + form_.made.size());
    form_.steps.push_back({.node = node.get(),
                           .first_operand = static_cast<Index>(form_.operands.size()),
                           .inputs = 1,
                           .outputs = 1});
    form_.made.push_back(std::move(node));
    form_.operands.push_back({fetch.value, fetch.spec, fetch.source.version});
    fetch.value = {new_memory({.bytes = spec.bytes(), .producer = id}), 0};
    fetch.spec = static_cast<Index>(form_.specs.size());
    form_.specs.push_back(spec);
    form_.operands.push_back({fetch.value, fetch.spec, 0});
  }

  Form& form_;
  std::unordered_map<const Node*, Index> feeds_;
  std::vector<Spec> inputs_;
};

}  // namespace

void resolve(Form& form) { Resolver(form).run(); }

}  // namespace ebb::detail
