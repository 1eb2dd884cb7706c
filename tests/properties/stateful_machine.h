// What runs the lines of a random program with state (stateful_program.h): the operators
// themselves, and a reference that updates nothing.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ebb/core/parameters/parameters.h"
#include "ebb/optim/optimizer.h"
#include "ebb/tests/properties/stateful_program.h"

namespace ebb::tests {

// The parameters and state of a program, declared in order.
void declare(const StatefulProgram& program, const Parameters& parameters);
Shape shape_of(const StatefulProgram& program, int value);
// The values of an input in a run (captured: run 0).
Tensor draw_input(const StatefulProgram& program, int input, int run);
optim::Optimizer optimizer_of(const Line& line);
Parameters scope_of(const Line& line, const Parameters& parameters);

// The operator of a line that only computes, or the view that it takes.
Tensor compute(const Line& line, const Tensor& a, const Tensor& b);
Tensor view_of(const Line& line, const Tensor& a);
Tensor loss_of(const Line& line, const Tensor& a, const Tensor& parameter);

// The lines as a user writes them, eagerly or in a graph: values[v] is what value v names.
class Direct {
 public:
  Direct(const Parameters& parameters, Tensors values)
      : parameters_(parameters), values_(std::move(values)) {}
  void run(const Line& line);
  const Tensor& operator[](int v) const { return values_[static_cast<std::size_t>(v)]; }

 private:
  const Parameters parameters_;
  Tensors values_;
};

// What the reference throws where a gradient would have to pass what was overwritten through
// another view.
struct OverwrittenHistory {};

// The meaning of the same lines without one update in place of anything that a line reads: each
// memory is a value that updates replace by another, each version of state a leaf of its own. It
// has no order to get wrong and no memory to overwrite.
class Functional {
 public:
  Functional(const StatefulProgram& program, const Parameters& parameters);
  // Forgets what is no state, and takes the feeds of the run.
  void begin(int run);
  void run(const Line& line);
  Tensor read(int v);
  // Of parameters, state and captured tensors.
  std::vector<Tensor> state() const;

 private:
  struct Memory {
    bool is_state = false, is_leaf = false;
    int version = 0;
    Tensor whole;                // the newest version; of what is no state as f32[n]
    std::vector<Tensor> leaves;  // all versions in this run
  };
  struct Handle {
    int memory = 0;
    int version = -1;  // that `tensor` is of
    Tensor tensor;
    int parent = -1;  // the value that it is a view of
    Line view = {};
    std::int64_t offset = 0;  // elements
    bool is_detached = false;
    std::vector<Tensor> incarnations;
  };

  Handle& handle(int v) { return *handles_[static_cast<std::size_t>(v)]; }
  void define(int v, const Tensor& value);
  void take_view(int v, int parent, const Line& line);
  void update(const Line& line);
  Tensors gradients_of(const Tensor& loss, const std::vector<int>& targets);
  void step(const Line& line);
  bool leads(const Tensor& from, const std::vector<const void*>& to) const;

  const StatefulProgram& program_;
  const Parameters parameters_;
  std::vector<Memory> memories_;
  std::vector<std::shared_ptr<Handle>> handles_;
  // Leaves that stand for what was overwritten through another view, and what they stand for.
  std::unordered_map<const void*, Tensor> overwritten_;
  // What an assignment has made, and what it replaced.
  std::unordered_map<const void*, Tensor> replaced_;
  std::vector<Tensor> kept_;  // so that no node takes the address of one of these
};

}  // namespace ebb::tests
