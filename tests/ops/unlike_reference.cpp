// Operators compared with their references (reference.h).
#include <algorithm>
#include <cmath>
#include <limits>

#include "ebb/core/base/error.h"
#include "ebb/core/ops/copy.h"
#include "ebb/graph/graph_state.h"
#include "ebb/tests/infinity.h"
#include "ebb/tests/ops/harness.h"
#include "ebb/tests/ops/reference.h"

namespace ebb::tests {
namespace {

Array array_of(const Tensor& tensor) {
  Array array(tensor.shape());
  array.values = tensor.to_vector<double>();
  return array;
}

Arrays arrays_of(const Tensors& tensors) {
  Arrays arrays;
  for (const Tensor& tensor : tensors) arrays.push_back(array_of(tensor));
  return arrays;
}

const Reference& reference_of(const OpDef& op) {
  static const std::vector<Reference> all = all_references();
  for (const Reference& reference : all)
    if (reference.op == &op) return reference;
  throw Error(std::string("there is no reference for ") + op.name +
              ": its sample or its family, tests/ops/samples_*.cpp, should have one");
}

// Error that arithmetic alone may cause. Results of 16 bits are computed in float and rounded once,
// so they add no more than one unit roundoff.
double arithmetic_error(DType dtype) {
  return dtype == DType::f64 ? 1e-13 : is_floating(dtype) ? 5e-6 : 0;
}
double unit_roundoff(DType dtype) {
  return dtype == DType::bf16 ? 0x1p-8 : dtype == DType::f16 ? 0x1p-11 : 0;
}

// Bound above which a number becomes infinite. For 16 bits it lies above the largest number, since
// values up to half a unit beyond still round to it.
double largest(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 65520 - 1e-9;
    case DType::bf16:
      return 0x1.FEFFFFp127;
    case DType::f32:
      return static_cast<double>(std::numeric_limits<float>::max());
    default:
      return std::numeric_limits<double>::max();
  }
}

// Whether `value` is `expected` within `allowed`: relative above 1, absolute below. Infinity is
// expected where the dtype is too small.
bool near(double value, double expected, double allowed, DType dtype) {
  if (std::isnan(expected)) return std::isnan(value);
  if (std::abs(expected) > largest(dtype)) return value == std::copysign(kInfinity64, expected);
  return std::abs(value - expected) <= allowed * std::max(1.0, std::abs(expected));
}

}  // namespace

std::string unlike_reference(const OpDef& op, const Tensors& inputs, const Attributes& attributes,
                             double slack) {
  Tensors own;
  InlineVector<Input, 16> given;
  Specs specs, outputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    own.push_back(op.updates.has(i) ? inputs[i].clone() : inputs[i]);
    specs.push_back({inputs[i].dtype(), inputs[i].shape()});
  }
  for (const Tensor& tensor : own) given.push_back(tensor);
  Inference inference{op, {specs.data(), specs.size()}, attributes, {}, outputs};
  op.infer(inference);

  const Tensors applied = inputs.empty() ? apply_on(Device::cpu(), op, attributes, {})
                                         : apply(op, {given.data(), given.size()}, attributes, {});
  Tensors results;
  for (std::size_t i = 0; i < own.size(); ++i)
    if (op.updates.has(i)) results.push_back(own[i]);
  for (std::size_t i = op.updates.empty() ? 0 : 1; i < applied.size(); ++i)
    if (!op.gradient_outputs.has(i)) results.push_back(applied[i]);

  const Reference& reference = reference_of(op);
  const Arrays expected = reference.compute({.inputs = arrays_of(inputs),
                                             .attributes = attributes,
                                             .outputs = {outputs.data(), outputs.size()}});
  if (expected.size() != results.size())
    return std::to_string(results.size()) + " results, not " + std::to_string(expected.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string which = "result " + std::to_string(i);
    const Array got = array_of(results[i]);
    if (!(got.shape == expected[i].shape))
      return which + " is " + got.shape.to_string() + ", not " + expected[i].shape.to_string();
    const DType dtype = results[i].dtype();
    const double allowed = reference.error + slack * arithmetic_error(dtype) +
                           reference.roundings * unit_roundoff(dtype);
    for (std::int64_t k = 0; k < got.elements(); ++k)
      if (!near(got[k], expected[i][k], allowed, dtype))
        return which + ", element " + std::to_string(k) + " is " + std::to_string(got[k]) +
               ", not " + std::to_string(expected[i][k]);
  }
  return "";
}

std::string unlike_references(const std::vector<SampleInput>& inputs, DType dtype,
                              const std::function<Tensors(const Tensors&)>& call, double slack) {
  std::string text = name(dtype);
  for (const SampleInput& input : inputs) text += " " + input.shape.to_string();
  const Sample sample{.op = &copy_op, .name = text, .inputs = inputs, .call = call};
  const RecordedSample recorded(sample, dtype, false);
  std::vector<const Node*> nodes;
  Tensors fetches;
  for (const auto& node : recorded.graph().state().nodes()) {
    if (!node->op->infer) continue;  // a placeholder
    nodes.push_back(node.get());
    for (const Tensor& input : recorded.inputs_of(*node)) fetches.push_back(input);
  }
  const Tensors values = recorded.run(fetches, make_inputs(sample, dtype));
  std::size_t next = 0;
  for (const Node* node : nodes) {
    Tensors given;
    for (std::size_t i = 0; i < node->inputs.size(); ++i) given.push_back(values[next++]);
    const std::string unlike = unlike_reference(*node->op, given, node->attributes, slack);
    if (!unlike.empty()) return text + ", " + node->op->name + ": " + unlike;
  }
  return "";
}

}  // namespace ebb::tests
