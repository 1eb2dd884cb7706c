// Translates the nodes of a graph into nodes of ONNX. Nothing here sees protobuf.
#pragma once
#include <concepts>
#include <span>
#include <string>
#include <unordered_set>
#include <variant>
#include <vector>

#include "ebb/core/parameters/named_tensors.h"
#include "ebb/graph/passes/draft.h"

namespace ebb::detail {

using OnnxNames = std::vector<std::string>;

struct OnnxAttribute {
  const char* name;
  std::variant<std::int64_t, double, const char*, std::vector<std::int64_t>> value;

  OnnxAttribute(const char* of, std::integral auto number)
      : name(of), value(static_cast<std::int64_t>(number)) {}
  OnnxAttribute(const char* of, auto what) : name(of), value(std::move(what)) {}
};
using OnnxAttributes = std::vector<OnnxAttribute>;

struct OnnxNode {
  const char* type;
  OnnxNames inputs, outputs;
  OnnxAttributes attributes;
};

// A named input, output or initializer.
struct OnnxValue {
  std::string name;
  Spec spec;
  std::variant<Tensor, std::size_t> value = {};  // of an initializer; a variable by its index
};

// Nodes in an order in which each follows the makers of its inputs. Values are known by name.
struct OnnxGraph {
  std::vector<OnnxNode> nodes;
  std::vector<OnnxValue> inputs, outputs, initializers;
  std::unordered_set<std::string> given;  // names of inputs, outputs and variables
  std::size_t names = 0;                  // made so far
};

// An application of an operator, and the ONNX nodes that its rule makes of it.
class OnnxCall {
 public:
  OnnxCall(OnnxGraph& to, const Node& of, OnnxNames names, const char* in_onnx = "")
      : node(of), inputs(std::move(names)), type(in_onnx), graph_(to) {}

  const Node& node;
  const OnnxNames inputs;  // names of the operator's inputs
  const char* const type;  // the rule's
  const Spec& in(std::size_t i) const noexcept {
    const Node::Source& source = node.inputs[i];
    return source.producer->outputs[source.output];
  }
  const Spec& out() const noexcept { return node.outputs[0]; }
  template <class T>
  const T& attribute() const noexcept {
    return node.attributes.get<T>();
  }

  // Adds a node of the rule's type, of the operator's inputs and more. Gives its output's name.
  OnnxNames result(const OnnxNames& more = {}, OnnxAttributes attributes = {}) const;
  // Add a node, and give the name of its output, or of several.
  std::string add(const char* of, OnnxNames from, OnnxAttributes attributes = {}) const {
    return add_many(1, of, std::move(from), std::move(attributes))[0];
  }
  OnnxNames add_many(int outputs, const char* of, OnnxNames from, OnnxAttributes attributes) const;
  // Add an initializer, and give its name.
  std::string constant(const Tensor& value) const;
  std::string number(double value, DType dtype, const Shape& shape = {}) const {
    return constant(Tensor::full(shape, value, dtype));
  }
  std::string integers(const std::vector<std::int64_t>& values) const {
    return constant(Tensor::from(values));
  }
  // Nodes that several rules add.
  std::string cast(const std::string& x, DType dtype) const;
  std::string transpose(const std::string& x, int rank, int a, int b) const;

  // Throws Error "[write_onnx] reshape to a size of 0 has no translation to ONNX (model.cpp:12)".
  [[noreturn]] void refuse(const std::string& which, const char* but = "") const;

 private:
  std::string new_name(const char* what) const;

  OnnxGraph& graph_;
};

// The translation of an operator.
struct OnnxRule {
  const OpDef* op;
  const char* type;  // the ONNX operator, or the chief one
  // Adds nodes, and gives the names of the operator's outputs.
  OnnxNames (*translate)(const OnnxCall& call) = [](const OnnxCall& call) { return call.result(); };
};
std::span<const OnnxRule> onnx_rules();
OnnxNames onnx_recurrent(const OnnxCall& call);  // of lstm and gru

// The number of a dtype in TensorProto.DataType.
std::int64_t onnx_dtype(DType dtype) noexcept;

// Translates what `outputs` need. Throws Error for an operator without a rule, and for a name that
// two values have.
OnnxGraph translate_to_onnx(const Draft& draft, std::span<const NamedTensor> outputs);

}  // namespace ebb::detail
