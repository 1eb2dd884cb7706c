// ONNX models that sessions write. What onnxruntime makes of them: onnx_runtime.py.
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/line.h"
#if __has_include(<onnx.pb.h>)
#include <onnx.pb.h>

using namespace ebb;
using namespace ebb::literals;

namespace {

// Inputs, initializers and nodes, one a line.
std::string printed(const onnx::GraphProto& graph) {
  std::string text;
  const auto list = [&](const auto& names) {
    for (const std::string& name : names) text += (text.back() == '(' ? "" : ", ") + name;
  };
  const auto put = [&](const char* what, const onnx::ValueInfoProto& value) {
    text += std::string(what) + " " + value.name() + "(";
    for (const auto& size : value.type().tensor_type().shape().dim())
      list(std::vector{size.has_dim_param() ? size.dim_param() : std::to_string(size.dim_value())});
    text += ")\n";
  };
  for (const auto& input : graph.input()) put("input", input);
  for (const auto& value : graph.initializer()) {
    text += "value " + value.name() + "(";
    for (const std::int64_t size : value.dims()) list(std::vector{std::to_string(size)});
    text += ")\n";
  }
  for (const auto& node : graph.node()) {
    text += node.output(0) + " = " + node.op_type() + "(";
    list(node.input());
    for (const auto& attribute : node.attribute())
      text += " " + attribute.name() + "=" + std::to_string(attribute.i());
    text += ")\n";
  }
  for (const auto& output : graph.output()) put("output", output);
  return text;
}

struct Model {
  Graph graph;
  Tensor x = graph.placeholder("x", DType::f32, {-1, 3});
  Parameters parameters{graph, Seed{7}};
  models::Dense hidden{parameters.scope("hidden"), 3, 4, Activation::relu};
  Tensor offset = Tensor::from({1.f, 2.f, 3.f, 4.f});
  Tensor scores = log_softmax(hidden(x) * 2 - offset);
};

}  // namespace

TEST_CASE("a model as ONNX has the graph's nodes, names and values") {
  const tests::TemporaryFolder folder;
  const Model model;
  Session session(model.graph);
  session.initialize();
  session.write_onnx(folder.path("a.onnx"), {{"scores", model.scores}});
  const std::string written = tests::contents_of(folder.path("a.onnx"));
  onnx::ModelProto read;
  REQUIRE(read.ParseFromString(written));
  CHECK(printed(read.graph()) == R"(input x(x.0, 3)
value hidden.weight(3, 4)
value hidden.bias(4)
value /constant_3()
value /constant_5(4)
hidden/MatMul_0 = MatMul(x, hidden.weight)
hidden/Add_1 = Add(hidden/MatMul_0, hidden.bias)
hidden/Relu_2 = Relu(hidden/Add_1)
/Mul_4 = Mul(hidden/Relu_2, /constant_3)
/Sub_6 = Sub(/Mul_4, /constant_5)
/LogSoftmax_7 = LogSoftmax(/Sub_6 axis=-1)
scores = Identity(/LogSoftmax_7)
output scores(scores.0, 4)
)");
  CHECK(read.producer_name() == "ebb");
  CHECK(read.opset_import(0).version() == 21);
  const auto values = [&](int i) {
    const std::string& raw = read.graph().initializer(i).raw_data();
    std::vector<float> all(raw.size() / sizeof(float));
    std::memcpy(all.data(), raw.data(), raw.size());
    return all;
  };
  CHECK(values(0) == session.value(model.parameters["hidden.weight"]).to_vector<float>());
  CHECK(values(2) == std::vector{2.f});
  CHECK(values(3) == model.offset.to_vector<float>());

  session.write_onnx(folder.path("b.onnx"), {{"scores", model.scores}});
  CHECK((tests::contents_of(folder.path("b.onnx")) == written));
}

TEST_CASE("names of inputs and outputs are kept, and names made beside them are others") {
  const tests::TemporaryFolder folder;
  Graph graph;
  const Tensor x = graph.placeholder("/constant_0", DType::f32, {2});
  Session session(graph);
  session.write_onnx(folder.path("a.onnx"), {{"/Mul_1", x * 2}});
  onnx::ModelProto read;
  REQUIRE(read.ParseFromString(tests::contents_of(folder.path("a.onnx"))));
  CHECK(printed(read.graph()) == R"(input /constant_0(2)
value /constant_1()
/Mul_2 = Mul(/constant_0, /constant_1)
/Mul_1 = Identity(/Mul_2)
output /Mul_1(2)
)");
  CHECK_ERROR(session.write_onnx(folder.path("a.onnx"), {{"", x}}), Error, "without a name");
}

TEST_CASE("what ONNX cannot have is an error with the operator's line, and leaves a file alone") {
  const tests::TemporaryFolder folder;
  Model model;
  const Tensor sorted = argsort(model.x);
  const std::string line = tests::line(__LINE__ - 1);
  const Tensor flat =
      reshape(model.graph.placeholder("images", DType::f32, {-1, -1, -1, 8}), {-1, 4});
  const Tensor two = unflatten(model.graph.placeholder("y", DType::f32, {6, -1, -1}), 0, {2, 3});
  const Tensor empty = reshape(model.graph.placeholder("z", DType::f32, {0, 2}), {2, 0});
  const Tensor bytes = negate(cast(model.x, DType::u8)), place = argmax(model.scores);
  Session session(model.graph);
  const std::string file = folder.path("a.onnx");
  CHECK_ERROR(session.write_onnx(file, {{"scores", model.scores}}), Error,
              "'hidden.weight' has no value");
  session.initialize();
  session.write_onnx(file, {{"scores", model.scores}, {"flat", flat}});
  const std::string before = tests::contents_of(file);
  const auto write = [&](const std::vector<NamedTensor>& outputs) {
    session.write_onnx(file, outputs);
  };
  CHECK_ERROR(write({{"s", sorted}}), Error,
              "[write_onnx] argsort has no translation to ONNX; docs/operators.md lists operators "
              "that have one, in Phase::inference " +
                  line);
  CHECK_ERROR(write({{"s", two}}), Error, "unflatten with two open sizes behind axis 0");
  CHECK_ERROR(write({{"s", empty}}), Error, "reshape to a size of 0 has no translation to ONNX");
  CHECK_ERROR(write({{"s", bytes}}), Error, "negate of u8 has no translation to ONNX");
  CHECK_ERROR(write({{"s", place}}), Error, "argmax over several axes has no translation to ONNX");
  CHECK_ERROR(write({{"x", model.scores}}), Error, "are called 'x'");
  CHECK_ERROR(write({}), Error, "nothing to fetch");
  CHECK((tests::contents_of(file) == before));
}

TEST_CASE("a model above 2 GiB is no ONNX file, and one without values neither", "[host]") {
  const tests::TemporaryFolder folder;
  Graph graph;
  const Parameters parameters(graph);
  const Tensor large = parameters.declare("large", {1 << 29}, initializers::zeros());
  const Tensor small = parameters.declare("small", {1}, initializers::zeros());
  Session session(graph, Device::simulated("cpu", 8_GiB));
  session.initialize();
  const std::string file = folder.path("a.onnx");
  const auto write = [&](const Tensor& y) { session.write_onnx(file, {{"y", y}}); };
  CHECK_ERROR(write(large + 1), Error, "more than the 2 GiB that protobuf reads");
  CHECK_ERROR(write(small + 1), SimulatedRead, "no values");
}
#endif
