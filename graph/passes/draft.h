#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/place.h"
#include "ebb/core/tensor/lineage.h"
#include "ebb/graph/graph.h"
#include "ebb/graph/graph_state.h"
#include "ebb/graph/program.h"

namespace ebb::detail {

using Index = std::uint32_t;
inline constexpr Index kNone = std::numeric_limits<Index>::max();

// A node that a run needs.
struct DraftNode {
  Node* node = nullptr;
  Index first_output = 0;  // into Draft::specs and Draft::values
  bool runs = false;       // if not, only its shape is wanted
  bool is_input = false;   // simplify: output 0 is input 0, nothing runs
  Index same_as = kNone;   // merge: an earlier node, whose outputs these are; nothing runs
  Index feed = kNone;      // infer: of a placeholder, into Draft::feeds
  IndexSet read = {};      // outputs whose values are read
};

// The outputs that are left out: the operator can skip them, and nobody reads them.
inline IndexSet unwanted_outputs(const DraftNode& item) {
  const OpDef& op = *item.node->op;
  IndexSet found;
  if (op.gradient_outputs.empty() && op.optional_outputs.empty()) return found;
  for (std::size_t i = 0; i < item.node->outputs.size(); ++i)
    if ((op.gradient_outputs.has(i) || op.optional_outputs.has(i)) && !item.read.has(i))
      found.insert(i);
  return found;
}

// An update in place in this run, and the version it makes.
struct Update {
  std::uint32_t version = 0;
  Index step = kNone;
};

// Something with an address. Versions are the graph's (lineage.h); a version whose update is not in
// this run does not exist in it.
struct DraftMemory {
  Location::Kind kind = Location::arena;  // or variable, captured, feed, host
  memory::Category category = memory::Category::temporary;
  Index index = 0;  // of the variable, captured tensor, feed or host buffer
  std::size_t bytes = 0;
  Index producer = kNone;  // step that writes version 0
  Index fetch = kNone;     // fetched tensor that this memory is
  Index slot_of = kNone;   // feed that is copied here before the first step
  std::vector<Update> updates = {};
};

// Location of an output's value.
struct DraftValue {
  Index memory = kNone;  // kNone: nobody wants it
  std::size_t offset = 0;
  const Node* whole = nullptr;  // resolve: whole_op, whose result this is; memory holds the share
};

// An input or output of a step.
struct DraftOperand {
  DraftValue value = {};
  Index spec = 0;             // into Draft::specs
  std::uint32_t version = 0;  // version of the memory that an input reads or an update writes over
};

// A node that computes something.
struct DraftStep {
  const Node* node = nullptr;
  Index first_operand = 0;  // inputs, then outputs
  Index inputs = 0, outputs = 0;
  IndexSet unwanted = {};  // outputs that are left out
  Index repeats = kNone;   // fit_arena: step that this one computes again
};

// A copy of a value to page-locked memory of the host, or back.
struct DraftMove {
  Index begin = kNone, end = kNone;  // steps: what follows `end` finds it done
  Index memory = kNone;              // in the arena: that it reads, or writes
  Index source = kNone;              // memory that the same value was in before it comes back
  Index reader = kNone;              // position in the order: comes back before it
};

struct DraftFetch {
  Node::Source source = {};
  DraftValue value = {};
  Index spec = 0;
};

// A graph reduced to some fetches, on its way from nodes to a Program. Each pass fills in the
// members marked with its name (passes.h).
struct Draft {
  const char* what = "run";  // name of the call in messages
  const GraphState* graph = nullptr;
  const Runtime* runtime = nullptr;

  std::vector<DraftNode> nodes;        // prune: in the order of the program
  std::vector<Index> of_position;      // prune: index into nodes, by node number; kNone: not needed
  std::vector<DraftFetch> fetches;     // prune
  std::vector<const Node*> feeds;      // infer: placeholders in the order of feeding
  std::vector<Spec> feed_specs;        // infer
  std::vector<Spec> specs;             // infer: by output
  std::vector<Index> stands_for;       // cut: by output, the one that readers find, a sum's last
  std::vector<DraftValue> values;      // resolve: by output
  std::vector<DraftMemory> memories;   // resolve
  std::vector<DraftStep> steps;        // resolve: in program order
  std::vector<DraftOperand> operands;  // resolve
  std::vector<Index> variables;        // resolve: touched by the run
  std::vector<Node*> captured;         // resolve
  std::vector<Ref<Node>> made;         // resolve: nodes that no user wrote
  std::vector<Index> first_edge;       // add_dependencies: by step, into edges; one more at the end
  std::vector<Index> edges;            // add_dependencies: steps that wait for the step
  std::vector<DraftMove> moves;        // fit_arena
  bool slots_on_host = false;          // a session keeps all variables but parameters there

  Index index_of(const Node& node) const noexcept { return of_position[node.number]; }
  const DraftNode& at(const Node& node) const noexcept { return nodes[index_of(node)]; }
  Index output_of(const Node::Source& source) const noexcept {
    const Index output = at(*source.producer).first_output + source.output;
    return stands_for.empty() ? output : stands_for[output];
  }
  Specs input_specs(const Node& node) const {
    Specs in;
    for (const Node::Source& source : node.inputs) in.push_back(specs[output_of(source)]);
    return in;
  }
  std::span<const Index> waiting_for(Index step) const noexcept {
    return {edges.data() + first_edge[step], edges.data() + first_edge[step + 1]};
  }
  std::span<const DraftOperand> inputs_of(const DraftStep& step) const noexcept {
    return {operands.data() + step.first_operand, step.inputs};
  }
  std::span<const DraftOperand> outputs_of(const DraftStep& step) const noexcept {
    return {operands.data() + step.first_operand + step.inputs, step.outputs};
  }
};

// Whether a value may take over the memory of the other.
inline bool are_alike(const Spec& a, const Spec& b) {
  return a.dtype == b.dtype && a.bytes() == b.bytes();
}

// A candidate for running a draft: an order of its steps, and the memory layout that follows.
struct Schedule {
  struct Life {
    std::size_t first = std::numeric_limits<std::size_t>::max(), last = 0;  // in the order
  };
  bool updates_early = false;
  bool is_reordered = false;                 // reorder
  std::vector<Index> order;                  // order: step numbers
  std::vector<Life> lives;                   // lay_out: by memory
  std::vector<Index> owners;                 // lay_out: memory that each lives in after take-overs
  std::vector<memory::Category> categories;  // lay_out: by memory
  std::vector<IndexSet> destroyed;           // lay_out: inputs that a step uses up, by step
  std::vector<std::size_t> workspace;        // lay_out: bytes, by step
  std::vector<memory::Lifetime> buffers;     // lay_out: buffers to place in the arena
  std::vector<Index> buffer_of;              // lay_out: by memory; kNone: not in the arena
  std::vector<Index> workspace_buffer;       // lay_out: by step
  std::vector<memory::Category> buffer_categories;  // lay_out: by buffer
  std::vector<memory::Lifetime> host_buffers;       // lay_out: by host buffer
  memory::Placement layout, host_layout;            // lay_out: of the arena, of the host
};

}  // namespace ebb::detail
