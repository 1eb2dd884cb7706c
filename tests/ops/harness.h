// Tools for samples: run one eagerly, record it in a graph, call its kernel outside any executor.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "ebb/core/parameters/parameters.h"
#include "ebb/core/tensor/node.h"
#include "ebb/graph/graph.h"
#include "ebb/graph/session.h"
#include "ebb/tests/bytes.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {

inline constexpr std::int64_t kBatch = 3;

// Values for the sample's inputs at this batch size; equal arguments give equal values.
Tensors make_inputs(const Sample& sample, DType dtype, std::int64_t batch = kBatch);

// Sum of the squares of all elements of the floating tensors; undefined without one.
Tensor sum_of_squares(const Tensors& tensors);

// A batch size for which the CPU cuts the work on the sample's largest input into two pieces; 0
// without an open size.
std::int64_t large_batch(const Sample& sample);

// Indices of the inputs or outputs that `positions` names in an application with `count` of them.
inline IndexSet named(Positions positions, std::size_t count) {
  IndexSet set;
  for (std::size_t i = 0; i < count; ++i)
    if (positions.has(i)) set.insert(i);
  return set;
}

using Bytes = std::vector<std::byte>;

// Compares an operator's results with its reference: "" or a description of the first difference.
// Allows `slack` times the usual error of the dtype.
std::string unlike_reference(const OpDef& op, const Tensors& inputs, const Attributes& attributes,
                             double slack = 1);

// Compares every operator that `call` applies to such inputs, likewise: "" or the first difference.
std::string unlike_references(const std::vector<SampleInput>& inputs, DType dtype,
                              const std::function<Tensors(const Tensors&)>& call, double slack);

// Calls the sample with copies of the inputs that it writes. The results are followed by the new
// values of these inputs.
Tensors run_eagerly(const Sample& sample, const Tensors& inputs);

// A sample in a graph of its own: state inputs are variables, the others placeholders. The batch
// axis of the placeholders is open if `open`.
class RecordedSample {
 public:
  RecordedSample(const Sample& sample, DType dtype, bool open, std::int64_t batch = kBatch);

  const Graph& graph() const noexcept { return graph_; }
  const Tensors& inputs() const noexcept { return inputs_; }
  // Results of the call, then the state inputs.
  const Tensors& outputs() const noexcept { return outputs_; }
  // The node of the sample's operator.
  const Node& node() const;
  // Symbolic tensors that a node reads.
  Tensors inputs_of(const Node& node) const;
  // Inputs of the sample's node when the sample's inputs have `values`.
  Tensors node_values(const Tensors& values) const;

  // Values of `fetches`, followed by the state's, with or without the graph's passes.
  Tensors run(const Tensors& fetches, const Tensors& values, bool passes = false) const;

 private:
  bool is_state(std::size_t i) const noexcept { return sample_.state.has(i); }

  const Sample& sample_;
  Graph graph_;
  Parameters parameters_;
  Tensors inputs_;
  Tensors outputs_;
};

// One application of a sample's operator with all that its kernel needs, outside any executor.
struct KernelCase {
  KernelCase(const Sample& sample, DType dtype, std::int64_t batch);

  const OpDef* op;
  Attributes attributes;
  Specs inputs, outputs;
  // Answer of the memory rule when `destroyed` inputs may be overwritten and `unwanted` outputs are
  // not read.
  MemoryNeeds needs(const IndexSet& destroyed = {}, const IndexSet& unwanted = {}) const;
  std::vector<Bytes> input_values;  // in the order of inputs

  struct Run {
    std::vector<Bytes> inputs;    // afterwards; empty where only the shape is needed
    std::vector<Bytes> outputs;   // without output 0 if the operator updates in place
    bool stayed_inside = true;    // nothing around any buffer or the workspace was written
    std::size_t allocations = 0;  // on the heap, during the run
  };
  // Runs the kernel on outputs and workspace filled with `garbage`. Output 0 shares the memory of
  // input `alias` unless that is negative. Outputs in `unwanted` get no memory; inputs in
  // `destroyed` may be overwritten.
  Run run(std::byte garbage, int alias = -1, const IndexSet& unwanted = {},
          const IndexSet& destroyed = {}) const;
};

}  // namespace ebb::tests
