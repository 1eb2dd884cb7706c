#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "ebb/core/device/runtime.h"
#include "ebb/core/tensor/lineage.h"
#include "ebb/graph/graph.h"
#include "ebb/graph/graph_state.h"
#include "ebb/graph/placement.h"

namespace ebb::detail {

using Index = std::uint32_t;
inline constexpr Index kNone = std::numeric_limits<Index>::max();

// A node that a run needs.
struct FormNode {
  Node* node = nullptr;
  Index first_output = 0;  // into Form::specs and Form::values
  bool runs = false;       // otherwise only its shape is wanted
  bool is_input = false;   // simplify: its output 0 is its input 0, nothing runs
  IndexSet wanted = {};    // outputs whose values are read
};

// Its outputs that are left out: those that it can do without, and that nobody reads.
inline IndexSet left_out(const FormNode& item) {
  const OpDef& op = *item.node->op;
  IndexSet found;
  if (op.optional_outputs.empty() && op.skippable_outputs.empty()) return found;
  for (std::size_t i = 0; i < item.node->outputs.size(); ++i)
    if ((op.optional_outputs.has(i) || op.skippable_outputs.has(i)) && !item.wanted.has(i))
      found.insert(i);
  return found;
}

// An update in place in this run: of which memory it makes which version.
struct Update {
  std::uint32_t version = 0;
  Index step = kNone;
};

// Something with an address. Versions are those of the graph (lineage.h); those that no update of
// this run makes do not exist in it.
struct FormMemory {
  enum Kind : std::uint8_t { arena, variable, captured, feed };
  Kind kind = arena;
  memory::Category category = memory::Category::temporary;
  Index index = 0;  // of the variable, captured tensor or feed
  std::size_t bytes = 0;
  Index producer = kNone;  // the step that writes version 0
  Index fetch = kNone;     // is this fetched tensor's memory
  Index slot_of = kNone;   // is where this feed is copied to, before the first step
  std::vector<Update> updates = {};
};

// Where an output's value is.
struct FormValue {
  Index memory = kNone;  // kNone: nobody wants it
  std::size_t offset = 0;
};

// An input or output of a step.
struct FormOperand {
  FormValue value = {};
  Index spec = 0;             // into Form::specs
  std::uint32_t version = 0;  // of the memory: what an input reads, what an update writes over
};

// One node that computes something.
struct FormStep {
  const Node* node = nullptr;
  Index first_operand = 0;  // inputs, then outputs
  Index inputs = 0, outputs = 0;
  IndexSet unwanted = {};  // outputs that are left out
};

struct FormFetch {
  Node::Source source = {};
  bool pinned = false;  // what a gradient read; otherwise the value at the end of the run
  FormValue value = {};
  Index spec = 0;
  CallSite site = {};  // of the node that was fetched
};

// A graph cut down to some fetches, on its way from nodes to a Program. Each pass fills in what the
// ones before it left open (passes.h); describe() prints what is there.
struct Form {
  const char* what = "run";  // the call that it is made for, as messages name it
  const GraphState* graph = nullptr;
  const Runtime* runtime = nullptr;

  std::vector<FormNode> nodes;        // prune: in the order of the program
  std::vector<Index> of_position;     // prune: into nodes, by the node's number; kNone: not needed
  std::vector<FormFetch> fetches;     // prune
  std::vector<const Node*> feeds;     // infer: the placeholders in the order they are fed
  std::vector<Spec> feed_specs;       // infer
  std::vector<Spec> specs;            // infer: of every output
  std::vector<FormValue> values;      // resolve: of every output
  std::vector<FormMemory> memories;   // resolve
  std::vector<FormStep> steps;        // resolve: in the order of the program
  std::vector<FormOperand> operands;  // resolve
  std::vector<Index> variables;       // resolve: those it touches
  std::vector<Node*> captured;        // resolve
  std::vector<Ref<Node>> made;        // resolve: nodes that no user wrote
  std::vector<Index> first_edge;      // connect: of each step, into edges; one more at the end
  std::vector<Index> edges;           // connect: steps that wait for it

  Index index_of(const Node& node) const noexcept { return of_position[node.number]; }
  const FormNode& at(const Node& node) const noexcept { return nodes[index_of(node)]; }
  Index output_of(const Node::Source& source) const noexcept {
    return at(*source.producer).first_output + source.output;
  }
  std::span<const FormOperand> inputs_of(const FormStep& step) const noexcept {
    return {operands.data() + step.first_operand, step.inputs};
  }
  std::span<const FormOperand> outputs_of(const FormStep& step) const noexcept {
    return {operands.data() + step.first_operand + step.inputs, step.outputs};
  }
};

// One way to run a form: an order of its steps, and what that makes of its memory.
struct Schedule {
  struct Life {
    std::size_t first = std::numeric_limits<std::size_t>::max(), last = 0;  // in the order
  };
  bool updates_early = false;
  std::vector<Index> order;                  // order: of the steps
  std::vector<Life> lives;                   // assign: by memory
  std::vector<Index> owners;                 // assign: whose memory each has taken over, at last
  std::vector<memory::Category> categories;  // assign: by memory
  std::vector<IndexSet> destroyed;           // assign: inputs that a step uses up, by step
  std::vector<std::size_t> workspace;        // assign: bytes, by step
  std::vector<BufferLife> buffers;           // assign: what needs a place in the arena
  std::vector<Index> buffer_of;              // assign: by memory; kNone: not in the arena
  std::vector<Index> workspace_buffer;       // assign: by step
  std::vector<memory::Category> buffer_categories;  // assign: by buffer
  Placed placed;                                    // place
};

}  // namespace ebb::detail
