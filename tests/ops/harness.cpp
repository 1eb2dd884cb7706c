#include "ebb/tests/ops/harness.h"

#include <algorithm>
#include <cmath>

#include "ebb/core/kernels/philox.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/graph/graph_state.h"

namespace ebb::tests {
namespace {

// Values of each kind from a uniform number in [0, 1), and their dtype if that is not the sample's;
// in the order of the kinds.
constexpr struct {
  double (*of)(double u);
  std::optional<DType> dtype = {};
} kKinds[] = {
    {[](double u) { return 4 * u - 2; }},                                     // any
    {[](double u) { return 0.5 + 1.5 * u; }},                                 // positive
    {[](double u) { return u < 0.5 ? -0.5 - 3 * u : 0.5 + 3 * (u - 0.5); }},  // apart_from_zero
    {[](double u) { return std::floor(5 * u); }, DType::i32},                 // labels
    {[](double u) { return std::floor(5 * u); }, DType::i64},                 // long_labels
    {[](double u) { return std::floor(1 + 9 * u); }, DType::i64},             // count
    {[](double u) { return 0.01 + 0.09 * u; }, DType::f64},                   // rate
    {[](double) { return 1.; }, DType::boolean},                              // ready
    {[](double) { return 0.; }, DType::boolean},                              // not_ready
    {[](double u) { return std::floor(1e9 * u); }, DType::i64},               // draw
    {[](double u) { return u < 0.5 ? 1. : 0.; }, DType::boolean},             // flags
    {[](double u) { return 1.8 * u - 0.9; }},                                 // within_one
    {[](double u) { return 1.2 + 1.8 * u; }},                                 // above_one
};
const auto& kind_of(Values values) { return kKinds[static_cast<std::size_t>(values)]; }

DType dtype_of(const SampleInput& input, DType floating) {
  return input.dtype ? *input.dtype : kind_of(input.values).dtype.value_or(floating);
}

Tensor filled(const Shape& shape, Values values, std::uint64_t key) {
  std::vector<double> all(static_cast<std::size_t>(shape.elements()));
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = kind_of(values).of(static_cast<double>(unit_interval(Philox::word(key, 0, i))));
  return Tensor::from(all, shape);
}

Shape with_batch(Shape shape, std::int64_t batch) {
  for (int i = 0; i < shape.rank(); ++i)
    if (shape.dim(i) == kOpen) shape.set(i, batch);
  return shape;
}

}  // namespace

Tensors make_inputs(const Sample& sample, DType dtype, std::int64_t batch) {
  Tensors inputs;
  for (const SampleInput& input : sample.inputs) {
    const Tensor values = filled(with_batch(input.shape, batch), input.values, 100 + inputs.size());
    inputs.push_back(cast(values, dtype_of(input, dtype)));
  }
  return inputs;
}

Tensor sum_of_squares(const Tensors& tensors) {
  Tensor total;
  for (const Tensor& tensor : tensors) {
    if (!is_floating(tensor.dtype())) continue;
    const Tensor part = sum(square(tensor));
    total = total.defined() ? total + part : part;
  }
  return total;
}

std::int64_t large_batch(const Sample& sample) {
  constexpr std::int64_t kElements = 32 * 1024 + 7;  // one piece of kernels/cpu/pieces.h and a rest
  std::int64_t batch = 0;
  for (const SampleInput& input : sample.inputs)
    if (input.shape.is_open() && batch == 0) batch = std::min(kElements, sample.largest_batch);
  for (const SampleInput& input : sample.inputs)  // an input may have several open axes
    while (batch > 1 && with_batch(input.shape, batch).elements() > kElements)
      batch = batch * kElements / (with_batch(input.shape, batch).elements() + kElements);
  return batch;
}

Tensors run_eagerly(const Sample& sample, const Tensors& inputs) {
  Tensors own = inputs;
  for (std::size_t i = 0; i < own.size(); ++i)
    if (sample.state.has(i)) own[i] = own[i].clone();
  Tensors results = sample.call(own);
  for (std::size_t i = 0; i < own.size(); ++i)
    if (sample.state.has(i)) results.push_back(own[i]);
  return results;
}

RecordedSample::RecordedSample(const Sample& sample, DType dtype, bool open, std::int64_t batch)
    : sample_(sample), parameters_(graph_) {
  for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
    const SampleInput& input = sample.inputs[i];
    const Spec spec{dtype_of(input, dtype), open ? input.shape : with_batch(input.shape, batch)};
    const std::string name = "input/" + std::to_string(i);
    if (is_state(i)) {
      const SlotRequest request[] = {{name, spec}};
      inputs_.push_back(parameters_.find_or_make_slots(request, {})[0]);
    } else {
      inputs_.push_back(graph_.placeholder(name, spec.dtype, spec.shape));
    }
  }
  // Tracing records a node even for an operator without inputs.
  ebb::detail::TapeMode mode = ebb::detail::tape_mode();
  mode.tracing = &graph_.state();
  const ebb::detail::TapeModeScope tracing(mode);
  outputs_ = sample.call(inputs_);
}

const Node& RecordedSample::node() const {
  const Node* found = nullptr;
  for (const auto& node : graph_.state().nodes())
    if (node->op == sample_.op) found = node.get();
  if (!found) throw Error("the sample '" + sample_.name + "' does not apply its operator");
  return *found;
}

Tensors RecordedSample::inputs_of(const Node& node) const {
  Tensors tensors;
  const detail::Ref<Recorder> recorder = graph_;
  for (const Node::Source& source : node.inputs)
    tensors.push_back(detail::make_symbolic(source.producer->outputs[source.output], recorder,
                                            source.producer, source.output));
  return tensors;
}

Tensors RecordedSample::node_values(const Tensors& values) const {
  Tensors given;
  std::vector<bool> taken(inputs_.size());
  for (const Node::Source& source : node().inputs)
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const detail::TensorImpl& input = *inputs_[i].impl();
      const bool is_it = input.node.get() == &*source.producer && input.output == source.output;
      if (!is_it || source.version != 0 || taken[i]) continue;
      taken[i] = true;
      given.push_back(values[i]);
      break;
    }
  if (given.size() == node().inputs.size()) return given;  // without a session
  given = run(inputs_of(node()), values);
  given.resize(node().inputs.size());  // drops the state
  return given;
}

Tensors RecordedSample::run(const Tensors& fetches, const Tensors& values, bool passes) const {
  if (fetches.empty()) return {};
  Session session(graph_, {.passes = passes});
  session.initialize();
  Feeds feeds;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (is_state(i))
      session.assign(inputs_[i], values[i]);
    else
      feeds.push_back({inputs_[i], values[i]});
  }
  Tensors results = session.run(fetches, feeds);
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (is_state(i)) results.push_back(session.value(inputs_[i]));
  return results;
}

}  // namespace ebb::tests
