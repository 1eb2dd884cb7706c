// What the tests do with a sample: run it eagerly, record it in a graph, take its kernel apart.
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

// Fresh values for the sample's inputs with this batch size; the same for the same arguments.
Tensors make_inputs(const Sample& sample, DType dtype, std::int64_t batch = kBatch);

// A batch for which the CPU cuts the work on the sample's largest input into two pieces; 0 where
// no size is open.
std::int64_t large_batch(const Sample& sample);

// The set of all inputs, or of all outputs, that a definition names in this application.
inline IndexSet named(Positions positions, std::size_t count) {
  return IndexSet::among_first(count, positions);
}

using Bytes = std::vector<std::byte>;

// "" or where the results of an operator are not what its reference makes of the inputs, `slack`
// times the usual error of its dtype allowed.
std::string unlike_reference(const OpDef& op, const Tensors& inputs, const Attributes& attributes,
                             double slack = 1);

// The same of all operators that a call of such inputs applies: "", or the first that differs.
std::string unlike_references(const std::vector<SampleInput>& inputs, DType dtype,
                              const std::function<Tensors(const Tensors&)>& call, double slack);

// The call on copies of the inputs that it writes, followed by those inputs' new values.
Tensors run_eagerly(const Sample& sample, const Tensors& inputs);

// A sample in a graph of its own: state inputs are variables, the others placeholders, whose batch
// axis is open if `open`.
class RecordedSample {
 public:
  RecordedSample(const Sample& sample, DType dtype, bool open, std::int64_t batch = kBatch);

  const Graph& graph() const noexcept { return graph_; }
  const Tensors& inputs() const noexcept { return inputs_; }
  // What the call gives, then the state inputs.
  const Tensors& outputs() const noexcept { return outputs_; }
  // The node of the sample's operator.
  const Node& node() const;
  // What a node reads, and what that one does.
  Tensors inputs_of(const Node& node) const;
  // The values that the sample's node is given, where the sample is given these.
  Tensors node_values(const Tensors& values) const;

  // Values of `fetches`, and after them of the state, with passes or without.
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
  // What the memory rule says where these inputs may be destroyed, and nobody reads these outputs.
  MemoryNeeds needs(const IndexSet& destroyed = {}, const IndexSet& unwanted = {}) const;
  std::vector<Bytes> input_values;  // in the order of inputs

  struct Run {
    std::vector<Bytes> inputs;   // afterwards; those that are only looked at for their shape: empty
    std::vector<Bytes> outputs;  // of an operator that updates in place: from output 1 on
    bool stayed_inside = true;   // nothing around any buffer or the workspace was written
    std::size_t allocations = 0;  // of the heap, meanwhile
  };
  // Runs the kernel with outputs and workspace full of `garbage`, and with output 0 in the memory
  // of input `alias`, if that is not negative. The outputs of `unwanted` get no memory. The inputs
  // of `destroyed` may be written over.
  Run run(std::byte garbage, int alias = -1, const IndexSet& unwanted = {},
          const IndexSet& destroyed = {}) const;
};

}  // namespace ebb::tests
