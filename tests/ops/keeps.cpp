// Each definition keeps for its gradient exactly what the gradient rule reads.
#include <cmath>
#include <span>

#include "ebb/core/kernels/recurrent.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/gru.h"
#include "ebb/core/ops/lstm.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/core/tensor/gradient_context.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/ops/harness.h"

namespace ebb::tests {
namespace {

// A gradient rule's view of a node, with values that the test chooses.
class GivenValues final : public GradientContext {
 public:
  GivenValues(const Node& node, const IndexSet& wants, Tensors inputs, Tensors outputs,
              std::span<Tensor> dys)
      : GradientContext(node, dys, wants),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)) {}
  Tensor x(int i) const override { return inputs_[static_cast<std::size_t>(i)]; }
  Tensor y(int i) const override { return outputs_[static_cast<std::size_t>(i)]; }

 private:
  const Tensors inputs_, outputs_;
};

// Different values of the same shape and dtype.
Tensor changed(const Tensor& tensor) {
  const DType dtype = tensor.dtype();
  std::vector<double> values = tensor.to_vector<double>();
  for (double& x : values) {
    if (is_floating(dtype))
      x = 0.37 - x;
    else if (dtype == DType::u8 || dtype == DType::boolean)
      x += std::fmod(x, 2) == 0 ? 1 : -1;
    else
      x = std::fmod(x + 1, 5);
  }
  return cast(Tensor::from(values, tensor.shape()), dtype);
}

std::vector<Bytes> bytes_of_all(const Tensors& tensors) {
  std::vector<Bytes> all;
  for (const Tensor& tensor : tensors) all.push_back(tensor.defined() ? bytes_of(tensor) : Bytes());
  return all;
}

// The gradient rule of a sample's operator, called directly with all values at hand.
struct Rule {
  Rule(const Sample& sample, const RecordedSample& recorded) : node(recorded.node()) {
    inputs = recorded.node_values(make_inputs(sample, DType::f64));
    Tensors leaves = inputs;
    for (std::size_t i = 0; i < leaves.size(); ++i)
      if (is_floating(leaves[i].dtype()) && !node.op->shape_only.has(i)) {
        leaves[i] = leaves[i].with_grad();
        floating.push_back(i);
      }
    const InlineVector<Input, 16> arguments(leaves.begin(), leaves.end());
    for (const Tensor& output :
         apply(*node.op, {arguments.data(), arguments.size()}, node.attributes, {})) {
      outputs.push_back(output.detach());
      const bool opaque = !is_floating(output.dtype());
      dys.push_back(opaque ? Tensor() : changed(outputs.back()));
    }
  }
  std::vector<Bytes> gradients(const IndexSet& wants, int changed_input, int changed_output) const {
    Tensors x = inputs, y = outputs;
    Tensors given =
        dys;  // other handles: the rule cannot take over memory that the next call needs
    if (changed_input >= 0) {
      Tensor& input = x[static_cast<std::size_t>(changed_input)];
      input = changed(input);
    }
    if (changed_output >= 0) {
      Tensor& output = y[static_cast<std::size_t>(changed_output)];
      output = changed(output);
    }
    return bytes_of_all(node.op->gradient(GivenValues(node, wants, x, y, given)));
  }

  const Node& node;
  std::vector<std::size_t> floating;  // inputs that can want a gradient
  Tensors inputs, outputs, dys;
};

IndexSet set_of(const std::vector<std::size_t>& indices) {
  IndexSet set;
  for (const std::size_t i : indices) set.insert(i);
  return set;
}

// Sets of inputs that want a gradient: every subset of a few; of many, all of them and each alone.
std::vector<IndexSet> choices(const std::vector<std::size_t>& among) {
  std::vector<IndexSet> all;
  if (among.size() > 5) {
    all.push_back(set_of(among));
    for (const std::size_t i : among) all.push_back({i});
    return all;
  }
  for (std::size_t choice = 1; choice < std::size_t{1} << among.size(); ++choice) {
    IndexSet& wants = all.emplace_back();
    for (std::size_t k = 0; k < among.size(); ++k)
      if ((choice >> k & 1) != 0) wants.insert(among[k]);
  }
  return all;
}

}  // namespace

TEST_CASE("A gradient rule reads all that its definition keeps for it, and nothing else") {
  for (const Sample& sample : all_samples(DType::f64)) {
    const OpDef& op = *sample.op;
    if (sample.order == 0 || !op.gradient) continue;
    const bool is_recurrent = sample.op == &lstm_op || sample.op == &gru_op;
    const RecordedSample recorded(sample, DType::f64, false);
    const Rule rule(sample, recorded);
    // A definition that does not choose by wanted gradients keeps whatever any of them reads, so
    // all are wanted at once.
    const bool chooses = op.keeps_input || op.keeps_output;
    for (const IndexSet& wants :
         chooses ? choices(rule.floating) : std::vector{set_of(rule.floating)}) {
      const std::vector<Bytes> expected = rule.gradients(wants, -1, -1);
      const auto where = [&] {
        std::string text = sample.name + ", wants";
        for (const std::size_t i : rule.floating)
          if (wants.has(i)) text += " " + std::to_string(i);
        return text;
      };
      for (std::size_t i = 0; i < rule.inputs.size(); ++i) {
        INFO(where() << ", input " << i);
        const bool reads = rule.gradients(wants, static_cast<int>(i), -1) != expected;
        // lstm and gru keep their biases unread: their positions depend on attributes, and as
        // parameters they stay alive anyway.
        const bool is_bias = is_recurrent && rule.inputs[i].rank() == 1;
        CHECK((reads || is_bias) == keeps_input(op, i, wants));
      }
      for (std::size_t i = 0; i < rule.outputs.size(); ++i) {
        INFO(where() << ", output " << i);
        const bool reads = rule.gradients(wants, -1, static_cast<int>(i)) != expected;
        // They keep the output sequence. No state in it is read where every sequence has one step.
        const bool may_be_short =
            i == 0 && is_recurrent && rule.node.attributes.get<RecurrentAttributes>().has_lengths;
        CHECK((reads || may_be_short) == keeps_output(op, i, wants));
      }
    }
  }
}

}  // namespace ebb::tests
