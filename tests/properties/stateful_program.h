// Random programs with state: parameters, untrained state and captured tensors, views, updates in
// place wherever they can be written, gradients before and after them, optimizers, recomputed
// regions. A program is written once, as lines, and run by the machines of stateful_machine.h.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ebb/core/base/shape.h"

namespace ebb::tests {

// As an index.
inline std::size_t at(std::int64_t number) { return static_cast<std::size_t>(number); }

struct Line {
  enum Kind {
    unary,
    number,      // with a plain number
    binary,      // of two values that broadcast
    product,     // of matrices
    reduce,      // sums, means, select: some of them change nothing
    like,        // copies, fills, sum_like
    expression,  // several operators on temporaries
    view,        // slice, reshape, detach, flatten
    update,      // in place
    gradient,    // of a loss with respect to several values
    minimize,
    apply,  // of gradients that were taken first
    recomputed,
    kinds
  };
  Kind kind = unary;
  int variant = 0;
  std::vector<int> in = {};   // values it reads; for a gradient the loss, a parameter, the targets
  std::vector<int> out = {};  // values it makes
  double constant = 0;
  std::int64_t begin = 0, end = 0;  // of a slice
  Shape shape = {};                 // of a reshape
  bool flag = false;                // gradient: create_graph; update: of the value's detach()
  std::vector<Line> body = {};  // recomputed: in[0] is read as body value out[1], out[0] is last
};

// A value that exists before the first line.
struct StatefulInput {
  enum Kind { parameter, state, captured, captured_view, feed };
  Kind kind = parameter;
  std::string name;  // "a.w0" is parameter w0 of the scope a
  int base = 0;      // captured_view: the value whose rows begin to end it is
  std::int64_t begin = 0, end = 0;
  bool leaf = false;  // captured, feed: has a gradient
};

struct StatefulValue {
  Shape shape;
  int memory = 0;  // shared by views and updates
};

struct StatefulMemory {
  bool is_state = false;  // parameter, state, captured: outlives a run
  bool is_feed = false;
};

struct StatefulProgram {
  std::uint64_t seed = 0;
  std::vector<StatefulValue> values;
  std::vector<StatefulMemory> memories;
  std::vector<StatefulInput> inputs;  // the first values
  std::vector<Line> lines;
  std::vector<std::vector<int>> runs;  // the values that each run fetches

  // Whether each line is needed by a run: its fetches, everything they are computed from, and the
  // updates seen by reads of memory that is not state.
  std::vector<bool> needed_lines(std::size_t run) const;
  // The run's fetches, and the steps and updates of state among its needed lines: a run that
  // fetches them makes exactly these updates.
  std::vector<int> fetches_of(std::size_t run) const;
  // Line by line, for the report of a failure.
  std::string to_string() const;
};

StatefulProgram draw_stateful_program(std::uint64_t seed);

// Removes a line and all that depends on it; leaves out runs without fetches.
StatefulProgram without_line(const StatefulProgram& program, std::size_t line);

}  // namespace ebb::tests
