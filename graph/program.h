#pragma once
#include <cstdint>
#include <vector>

#include "ebb/core/memory/plan.h"
#include "ebb/core/tensor/tensor.h"
#include "ebb/graph/graph.h"
#include "ebb/graph/graph_state.h"

namespace ebb::detail {

// Where a value is while a program runs.
struct Place {
  enum Kind : std::uint8_t {
    nowhere,   // an output nobody wants, or an input needed for its shape only
    arena,     // index: the buffer
    variable,  // index: of the graph's variables
    captured,  // index: into Program::captured; offset from the beginning of its storage
    feed,      // index: into Program::feeds
    fetch,     // index: into Program::fetches; written straight into what the caller gets
  };
  Kind kind = nowhere;
  std::uint32_t index = 0;
  std::size_t offset = 0;  // bytes
};

// A value that a step reads or writes.
struct PlacedValue {
  Place place;
  Spec spec;
};

// One node that runs.
struct Step {
  const Node* node = nullptr;
  const DeviceKernel* kernel = nullptr;
  std::uint32_t first_value = 0;  // into Program::values: inputs, then outputs
  std::uint32_t inputs = 0, outputs = 0;
  std::uint32_t workspace = ~std::uint32_t{0};  // a buffer of the arena, if any
  IndexSet destroyed;                           // inputs that the kernel may use up
  IndexSet unwanted;                            // outputs that nobody reads
};

// A piece of the arena and the last step that needs it.
struct ArenaLife {
  std::size_t offset = 0, bytes = 0;
  std::size_t first = 0, last = 0;
};

// A feed that is copied before the first step, and where to.
struct FeedSlot {
  std::uint32_t feed = 0;
  Place to;
};

struct Fetch {
  Spec spec;
  // Where its value is at the end, unless a step writes it straight into the fetched tensor.
  Place copied_from;
  memory::Tag tag = {};  // the line of the node that is fetched
};

// A graph cut down to some fetches, with all shapes known, all steps in order and all memory
// assigned: what a plan is made of and what a session runs. Made by the passes of passes/.
struct Program {
  std::vector<const Node*> feeds;    // the placeholders, in the order they were given
  std::vector<FeedSlot> feed_slots;  // where programs are captured
  std::vector<Fetch> fetches;
  std::vector<const Node*> captured;            // one for each storage
  std::vector<std::uint32_t> updated_captured;  // into captured: updated in place
  std::vector<std::uint32_t> variables;         // those it touches, ascending
  std::vector<Step> steps;
  std::vector<PlacedValue> values;
  std::vector<std::size_t> arena_offsets;  // of each buffer
  std::vector<ArenaLife> arena_lives;      // by the last step
  std::vector<Ref<Node>> made;             // nodes of its own
  memory::Plan plan;
};

struct ProgramOptions {
  bool passes = true;        // those that only improve
  const char* what = "run";  // the call that it is made for, as messages name it
};

// Throws Error for fetches or placeholders of another graph, a placeholder not fed, and updates in
// place whose order contradicts itself; what shape rules throw for the fed shapes.
Program make_program(const GraphState& graph, const Tensors& fetches, const FedShapes& shapes,
                     const Runtime& runtime, const ProgramOptions& options);

}  // namespace ebb::detail
