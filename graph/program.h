#pragma once
#include <cstdint>
#include <vector>

#include "ebb/core/memory/plan.h"
#include "ebb/core/tensor.h"
#include "ebb/graph/graph.h"
#include "ebb/graph/graph_state.h"

namespace ebb::detail {

// Where a value is while a program runs.
struct Place {
  enum Kind : std::uint8_t {
    nowhere,   // an output nobody wants, or an input needed for its shape only
    arena,     // index: the buffer
    variable,  // index: of the graph's variables
    captured,  // index: into Program::captured
    feed,      // index: into Program::feeds
    fetch,     // index: into Program::fetches; written straight into what the caller gets
  };
  Kind kind = nowhere;
  std::uint32_t index = 0;
  std::size_t offset = 0;  // bytes
};

// A value that a step reads or writes.
struct Value {
  Place place;
  Spec spec;
};

// One node that runs.
struct Step {
  const Node* node = nullptr;
  Kernel run = nullptr;
  std::uint32_t first_value = 0;  // into Program::values: inputs, then outputs
  std::uint32_t inputs = 0, outputs = 0;
  std::int32_t workspace = -1;  // a buffer of the arena
};

// A piece of the arena and the last step that needs it.
struct ArenaLife {
  std::size_t offset = 0, bytes = 0;
  std::size_t first = 0, last = 0;
};

struct Fetch {
  Spec spec;
  // Where its value is at the end, unless a step writes it straight into the fetched tensor.
  Place copied_from;
};

// A graph cut down to some fetches, with all shapes known and all memory assigned: what a plan is
// made of and what a session runs. Steps are in the order of the program, so that every read of a
// variable stands where it was written, before or after each update.
struct Program {
  std::vector<const Node*> feeds;  // the placeholders, in the order they were given
  std::vector<Spec> feed_specs;
  std::vector<Fetch> fetches;
  std::vector<const Node*> captured;
  std::vector<std::uint32_t> variables;         // those it reads
  std::vector<std::uint32_t> updated_captured;  // into captured: updated in place
  std::vector<Step> steps;
  std::vector<Value> values;
  std::vector<std::size_t> arena_offsets;  // of each buffer
  std::vector<ArenaLife> arena_lives;      // by the last step
  memory::Plan plan;
};

struct ProgramOptions {
  bool passes = true;  // drop nodes that change nothing, let outputs take over inputs
};

// Prunes, infers, simplifies, orders, assigns. Throws Error for fetches or placeholders of another
// graph, a placeholder not fed, and what shape rules throw for the fed shapes.
Program make_program(GraphState& graph, const Tensors& fetches, const FedShapes& shapes,
                     const Runtime& runtime, const ProgramOptions& options);

}  // namespace ebb::detail
