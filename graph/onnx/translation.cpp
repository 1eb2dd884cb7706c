#include "ebb/graph/onnx/translation.h"

#include <algorithm>
#include <numeric>

#include "ebb/core/base/error.h"

namespace ebb::detail {

OnnxNames OnnxCall::result(const OnnxNames& more, OnnxAttributes attributes) const {
  OnnxNames all = inputs;
  all.insert(all.end(), more.begin(), more.end());
  return {add(type, std::move(all), std::move(attributes))};
}

OnnxNames OnnxCall::add_many(int outputs, const char* of, OnnxNames from,
                             OnnxAttributes attributes) const {
  OnnxNames made;
  for (int i = 0; i < outputs; ++i) made.push_back(new_name(of));
  graph_.nodes.push_back({of, std::move(from), made, std::move(attributes)});
  return made;
}

std::string OnnxCall::constant(const Tensor& value) const {
  const std::string name = new_name("constant");
  graph_.initializers.push_back({name, {value.dtype(), value.shape()}, value});
  return name;
}

std::string OnnxCall::cast(const std::string& x, DType dtype) const {
  return add("Cast", {x}, {{"to", onnx_dtype(dtype)}});
}

std::string OnnxCall::transpose(const std::string& x, int rank, int a, int b) const {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<std::size_t>(a)], order[static_cast<std::size_t>(b)]);
  return add("Transpose", {x}, {{"perm", order}});
}

void OnnxCall::refuse(const std::string& which, const char* but) const {
  throw Error(message("write_onnx", node.op->name + which + " has no translation to ONNX" + but,
                      node.site));
}

// A slash keeps the name apart from parameters' names.
std::string OnnxCall::new_name(const char* what) const {
  std::string name;
  do {
    name = std::string(node.site.layer_name()) + "/" + what + "_" + std::to_string(graph_.names++);
  } while (graph_.given.contains(name));
  return name;
}

std::int64_t onnx_dtype(DType dtype) noexcept {
  constexpr std::int64_t kNumbers[] = {1, 11, 10, 16, 6, 7, 2, 9};  // in the order of DType
  return kNumbers[static_cast<std::size_t>(dtype)];
}

OnnxGraph translate_to_onnx(const Draft& draft, std::span<const NamedTensor> outputs) {
  OnnxGraph graph;
  const auto give = [&](const std::string& name) {
    if (name.empty()) refuse("write_onnx", "an output without a name");
    if (!graph.given.insert(name).second)
      refuse("write_onnx", "two inputs, outputs or parameters are called '" + name + "'");
  };
  for (const DraftNode& item : draft.nodes)
    if (item.node->op->is_source && item.node->op != &captured_op) give(item.node->extra->name);
  for (const NamedTensor& output : outputs) give(output.name);
  std::vector<OnnxNames> made(draft.nodes.size());  // names of each node's outputs
  const auto name_of = [&](const Node::Source& source) {
    const OnnxNames& names = made[draft.index_of(*source.producer)];
    if (source.output >= names.size())
      OnnxCall(graph, *source.producer, {}).refuse("", " of what it keeps for gradients");
    return names[source.output];
  };
  for (const DraftNode& item : draft.nodes) {
    const Node& node = *item.node;
    OnnxNames& results = made[draft.index_of(node)];
    OnnxNames inputs;
    for (const Node::Source& source : node.inputs) inputs.push_back(name_of(source));
    const auto rule = std::ranges::find(onnx_rules(), node.op, &OnnxRule::op);
    const bool has_rule = rule != onnx_rules().end();
    const OnnxCall call(graph, node, std::move(inputs), has_rule ? rule->type : "");
    if (node.op == &captured_op) {
      results = {call.constant(node.extra->tensor)};
    } else if (node.op->is_source) {
      const bool is_input = node.op == &placeholder_op;
      OnnxValue value{node.extra->name, node.outputs[0]};
      if (!is_input)
        value.value = static_cast<std::size_t>(node.attributes.get<VariableAttributes>().index);
      results = {value.name};
      (is_input ? graph.inputs : graph.initializers).push_back(std::move(value));
    } else if (has_rule) {
      results = rule->translate(call);
    } else {
      call.refuse("", "; docs/operators.md lists operators that have one, in Phase::inference");
    }
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Node::Source& source = draft.fetches[i].source;
    graph.nodes.push_back({"Identity", {name_of(source)}, {outputs[i].name}, {}});
    graph.outputs.push_back({outputs[i].name, source.producer->outputs[source.output]});
  }
  return graph;
}

}  // namespace ebb::detail
