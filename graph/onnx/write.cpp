// Bytes of ONNX models, and Session::write_onnx. Values go into the file one by one: protobuf's
// messages have all else.
#include <google/protobuf/io/coded_stream.h>
#include <onnx.pb.h>

#include <limits>

#include "ebb/core/base/error.h"
#include "ebb/core/files/output_file.h"
#include "ebb/core/tensor/trace.h"
#include "ebb/graph/onnx/translation.h"
#include "ebb/graph/passes/passes.h"
#include "ebb/graph/session_impl.h"

namespace ebb {
namespace {

using namespace onnx;

constexpr std::int64_t kOpset = 21, kIrVersion = 10;

void set(const detail::OnnxAttribute& from, AttributeProto& to) {
  to.set_name(from.name);
  if (const auto* integer = std::get_if<std::int64_t>(&from.value)) {
    to.set_type(AttributeProto::INT);
    to.set_i(*integer);
  } else if (const auto* number = std::get_if<double>(&from.value)) {
    to.set_type(AttributeProto::FLOAT);
    to.set_f(static_cast<float>(*number));
  } else if (const auto* text = std::get_if<const char*>(&from.value)) {
    to.set_type(AttributeProto::STRING);
    to.set_s(*text);
  } else {
    to.set_type(AttributeProto::INTS);
    for (const std::int64_t i : std::get<std::vector<std::int64_t>>(from.value)) to.add_ints(i);
  }
}

void set(const detail::OnnxNode& from, NodeProto& to) {
  to.set_name(from.outputs[0]);
  to.set_op_type(from.type);
  for (const std::string& input : from.inputs) to.add_input(input);
  for (const std::string& output : from.outputs) to.add_output(output);
  for (const detail::OnnxAttribute& attribute : from.attributes)
    set(attribute, *to.add_attribute());
}

// An open size has a name of its own: "x.0".
void set(const detail::OnnxValue& from, ValueInfoProto& to) {
  to.set_name(from.name);
  auto& type = *to.mutable_type()->mutable_tensor_type();
  type.set_elem_type(static_cast<std::int32_t>(detail::onnx_dtype(from.spec.dtype)));
  auto& shape = *type.mutable_shape();
  for (int axis = 0; axis < from.spec.shape.rank(); ++axis) {
    auto& size = *shape.add_dim();
    if (const std::int64_t known = from.spec.shape.dim(axis); known != kOpen)
      size.set_dim_value(known);
    else
      size.set_dim_param(from.name + "." + std::to_string(axis));
  }
}

// The bytes before a field that has so many.
std::string before_field(int number, std::uint64_t bytes) {
  using google::protobuf::io::CodedOutputStream;
  std::uint8_t text[16];
  std::uint8_t* end =
      CodedOutputStream::WriteTagToArray(static_cast<std::uint32_t>(number) << 3 | 2, text);
  end = CodedOutputStream::WriteVarint64ToArray(bytes, end);
  return {text, end};
}

// An initializer up to its values.
std::string head_of(const detail::OnnxValue& value) {
  TensorProto tensor;
  tensor.set_name(value.name);
  tensor.set_data_type(static_cast<std::int32_t>(detail::onnx_dtype(value.spec.dtype)));
  for (const std::int64_t size : value.spec.shape.dims()) tensor.add_dims(size);
  const std::string head = tensor.SerializeAsString() +
                           before_field(TensorProto::kRawDataFieldNumber, value.spec.bytes());
  return before_field(GraphProto::kInitializerFieldNumber, head.size() + value.spec.bytes()) + head;
}

}  // namespace

void Session::write_onnx(const std::string& file, const std::vector<NamedTensor>& outputs,
                         CallSite site) {
  Impl::OpenVariables open(impl_, site);
  detail::refuse_while_tracing("write_onnx", site);
  Tensors fetches;
  for (const NamedTensor& output : outputs) fetches.push_back(output.tensor);
  const detail::Draft draft =
      detail::prune(open->graph.state(), open->device.runtime(), fetches, "write_onnx");
  const detail::OnnxGraph made = detail::translate_to_onnx(draft, outputs);

  GraphProto graph;
  graph.set_name("ebb");
  for (const detail::OnnxNode& node : made.nodes) set(node, *graph.add_node());
  for (const detail::OnnxValue& input : made.inputs) set(input, *graph.add_input());
  for (const detail::OnnxValue& output : made.outputs) set(output, *graph.add_output());
  const std::string nodes = graph.SerializeAsString();

  std::vector<std::string> heads;
  std::uint64_t bytes = nodes.size();
  for (const detail::OnnxValue& value : made.initializers) {
    if (const auto* variable = std::get_if<std::size_t>(&value.value))
      open->variables.require_value(*variable, "write_onnx");
    heads.push_back(head_of(value));
    bytes += heads.back().size() + value.spec.bytes();
  }
  ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("ebb");
  model.add_opset_import()->set_version(kOpset);
  const std::string start =
      model.SerializeAsString() + before_field(ModelProto::kGraphFieldNumber, bytes) + nodes;
  if (bytes + start.size() > std::numeric_limits<std::int32_t>::max())
    detail::refuse("write_onnx", "a model of " + std::to_string(bytes) +
                                     " bytes is more than the 2 GiB that protobuf reads");

  if (open->device.is_simulated())
    detail::refuse<SimulatedRead>("write_onnx",
                                  "the session's device is simulated: there are no "
                                  "values to write");

  detail::OutputFile out(file);
  out.write(start.data(), start.size());
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const detail::OnnxValue& value = made.initializers[i];
    const HostView values = [&] {
      if (const auto* variable = std::get_if<std::size_t>(&value.value))
        return open->variables.view(*variable);
      const detail::TensorImpl& tensor = *std::get<Tensor>(value.value).impl();
      detail::require_whole(*tensor.storage, "write_onnx", site);
      return tensor.storage->view(tensor.offset, value.spec.bytes());
    }();
    out.write(heads[i].data(), heads[i].size());
    out.write(values.data(), value.spec.bytes());
  }
  out.commit();
}

}  // namespace ebb
