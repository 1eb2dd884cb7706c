// Runs the lines of a random program with state (stateful_program.h): by the operators themselves,
// and by a reference that updates nothing.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ebb/core/parameters/parameters.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/properties/stateful_program.h"

namespace ebb::tests {

// Whether a program takes so long that fewer are tried.
inline bool runs_take_long() noexcept {
#if defined(__SANITIZE_ADDRESS__)
  return true;
#else
  return on_emulated_cuda();
#endif
}

// Declares the program's parameters and state, in order.
void declare(const StatefulProgram& program, const Parameters& parameters);
// The values of an input in a run (captured: always of run 0).
Tensor draw_input(const StatefulProgram& program, int input, int run,
                  const Device& device = Device::cpu());
// Computes a line that neither updates nor differentiates and is no view.
Tensor compute(const Line& line, const Tensor& a, const Tensor& b);

// Runs lines as a user writes them, eagerly or in a graph. values[v] is the tensor of value v.
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

// Thrown by the reference when a gradient would pass through a value that was overwritten through
// another view.
struct OverwrittenHistory {};

// The reference: runs the same lines without updating anything in place. A memory holds a value,
// which an update replaces by a new one; each version of state is a leaf of its own. So it has no
// order to get wrong and no memory to overwrite.
class Functional {
 public:
  Functional(const StatefulProgram& program, const Parameters& parameters);
  // Forgets everything but state, and takes the feeds of the run.
  void begin(int run);
  void run(const Line& line);
  Tensor read(int v);
  // Values of parameters, state and captured tensors.
  std::vector<Tensor> state() const;

 private:
  struct Memory {
    bool is_state = false, is_leaf = false;
    int version = 0;
    Tensor whole;                // newest version; f32[n] unless it is state
    std::vector<Tensor> leaves;  // all versions in this run
  };
  struct Handle {
    int memory = 0;
    int version = -1;  // the version in `tensor`
    Tensor tensor;
    int parent = -1;  // the value that this is a view of
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
  // By node of a stand-in, a leaf read in place of a value that was overwritten through another
  // view: the value it stands for.
  std::unordered_map<const void*, Tensor> overwritten_;
  // By node of an assignment's result: the value it replaced.
  std::unordered_map<const void*, Tensor> replaced_;
  std::vector<Tensor> kept_;  // keeps these nodes' addresses from being reused
};

}  // namespace ebb::tests
