// Refusals name the function that was called and the user's line. This holds in both modes, and for
// functions composed of others.
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "ebb/ebb.h"
#include "ebb/graph/graph_state.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/infinity.h"
#include "ebb/tests/ops/harness.h"
#include "ebb/tests/ops/refuses.h"
#include "ebb/tests/source_folder.h"

namespace ebb::tests {
namespace {

using Operands = std::span<const Operand>;
using Call = std::function<void(Operands x)>;

constexpr CallSite kUser{"user.cpp", 42};

// A public function and the operands that it takes.
struct Function {
  std::string name;
  std::vector<Spec> takes;
  Call call;
  std::size_t optional = 99;            // first operand that may be undefined
  std::string where = "(user.cpp:42)";  // in messages: the line of the call, or its file
};

Spec f32(const Shape& shape) { return {DType::f32, shape}; }
Spec i64(const Shape& shape) { return {DType::i64, shape}; }
Spec boolean(const Shape& shape) { return {DType::boolean, shape}; }

const Spec kMatrix = f32({2, 3});

Tensors tensors_of(Operands x) {
  Tensors tensors;
  for (const Operand& operand : x)
    tensors.push_back(operand.is_number() ? Tensor() : operand.tensor());
  return tensors;
}

// A call in a row of the table, with operands x.
#define CALL(...) [=]([[maybe_unused]] Operands x) { __VA_ARGS__; }

// Functions that are no operator by themselves, or that take operands in other ways.
std::vector<Function> composed_functions() {
  std::vector<Function> table;
  const auto put = [&](const char* name, const std::vector<Spec>& takes, Call call,
                       std::size_t optional = 99) {
    table.push_back({name, takes, std::move(call), optional});
  };
  put("zeros_like", {kMatrix}, CALL(zeros_like(x[0])));
  put("ones_like", {kMatrix}, CALL(ones_like(x[0])));
  put("full_like", {kMatrix}, CALL(full_like(x[0], 2)));
  put("masked_fill", {kMatrix, boolean({2, 3})}, CALL(masked_fill(x[0], x[1], 1)));
  put("transpose", {kMatrix}, CALL(transpose(x[0])));
  put("stack", {kMatrix, kMatrix}, CALL(stack(tensors_of(x), 0, kUser)));
  put("tile", {kMatrix}, CALL(tile(x[0], 2)));
  put("repeat", {kMatrix}, CALL(repeat(x[0], 2)));

  put("slice", {kMatrix}, CALL(slice(x[0], 1)));
  put("split", {kMatrix}, CALL(split(x[0], {1, 1})));
  put("chunk", {kMatrix}, CALL(chunk(x[0], 2)));
  put("roll", {kMatrix}, CALL(roll(x[0], 1, 0)));
  put("flip", {kMatrix}, CALL(flip(x[0])));
  put("last_step", {f32({2, 3, 4})}, CALL(last_step(x[0])));
  put("rows", {kMatrix}, CALL(rows(x[0])));

  put("embedding", {kMatrix, i64({4})}, CALL(embedding(x[0], x[1])));
  put("index_add", {kMatrix, i64({4}), f32({4, 3})}, CALL(index_add(x[0], x[1], x[2])));
  put("scatter_add", {kMatrix, i64({4, 3}), f32({4, 3})}, CALL(scatter_add(x[0], 0, x[1], x[2])));
  put("pick", {kMatrix, i64({2})}, CALL(pick(x[0], x[1])));
  put("reverse_sequence", {kMatrix, {DType::i32, {2}}}, CALL(reverse_sequence(x[0], x[1])));

  put("add", {kMatrix, kMatrix, kMatrix}, CALL(add(tensors_of(x), kUser)));
  for (const double p : {1., 2., kInfinity64}) put("norm", {kMatrix}, CALL(norm(x[0], {.p = p})));
  for (const int axis : {0, 1}) {
    put("sort", {kMatrix}, CALL(sort(x[0], {.axis = axis})));
    put("argsort", {kMatrix}, CALL(argsort(x[0], {.axis = axis})));
    put("topk", {kMatrix}, CALL(topk(x[0], 1, {.axis = axis})));
  }

  put("matmul", {f32({3}), f32({3, 2})}, CALL(matmul(x[0], x[1])));
  const Spec row = f32({2, 4, 5}), image = f32({2, 4, 5, 5});
  put("conv1d", {row, f32({3, 4, 2}), f32({3})}, CALL(conv1d(x[0], x[1], x[2])));
  put("conv1d", {row, f32({4, 2, 2})}, CALL(conv1d(x[0], x[1], {.groups = 2})));
  put("conv2d", {image, f32({3, 4, 2, 2}), f32({3})}, CALL(conv2d(x[0], x[1], x[2])));
  put("conv2d", {image, f32({3, 4, 2, 2})}, CALL(conv2d(x[0], x[1])));
  put("conv_transpose1d", {row, f32({4, 3, 2}), f32({3})},
      CALL(conv_transpose1d(x[0], x[1], x[2], {.stride = 2})));
  put("conv_transpose1d",  // here it pads x
      {row, f32({4, 3, 2})},
      CALL(conv_transpose1d(x[0], x[1], {.output_padding = 1, .dilation = 2})));
  put("conv_transpose2d", {image, f32({4, 3, 2, 2}), f32({3})},
      CALL(conv_transpose2d(x[0], x[1], x[2])));
  put("conv_transpose2d", {image, f32({4, 3, 2, 2})},
      CALL(conv_transpose2d(x[0], x[1], {.output_padding = 1, .dilation = 2})));
  put("max_pool1d", {row}, CALL(max_pool1d(x[0])));
  put("avg_pool1d", {row}, CALL(avg_pool1d(x[0])));
  put("max_pool2d", {image}, CALL(max_pool2d(x[0])));
  put("avg_pool2d", {image}, CALL(avg_pool2d(x[0])));
  const Spec q = f32({2, 3, 4}), keys = f32({2, 5, 4});
  put("scaled_dot_product_attention", {q, keys, keys},
      CALL(scaled_dot_product_attention(x[0], x[1], x[2])));
  put("scaled_dot_product_attention", {q, keys, keys, boolean({3, 5})},
      CALL(scaled_dot_product_attention(x[0], x[1], x[2], {.mask = x[3].tensor()})), 3);

  const std::vector<Spec> normalised{image, f32({4}), f32({4})};
  put("layer_norm", {kMatrix, f32({3}), f32({3})}, CALL(layer_norm(x[0], x[1], x[2])));
  put("rms_norm", {kMatrix, f32({3})}, CALL(rms_norm(x[0], x[1])));
  put("group_norm", normalised, CALL(group_norm(x[0], 2, x[1], x[2])));
  for (const Phase phase : {Phase::training, Phase::inference})
    put("batch_norm", {image, f32({4}), f32({4}), f32({4}), f32({4})},
        CALL(batch_norm(x[0], x[1], x[2], x[3].tensor(), x[4].tensor(), {.phase = phase})));

  for (const LossReduction how : {LossReduction::mean, LossReduction::none}) {
    const std::vector<Spec> pair{kMatrix, kMatrix};
    put("mse", pair, CALL(mse(x[0], x[1], {how})));
    put("mae", pair, CALL(mae(x[0], x[1], {how})));
    put("huber", pair, CALL(huber(x[0], x[1], {.reduction = how})));
    put("smooth_l1", pair, CALL(smooth_l1(x[0], x[1], {.reduction = how})));
    put("binary_cross_entropy_with_logits", pair,
        CALL(binary_cross_entropy_with_logits(x[0], x[1], {.reduction = how})));
    put("binary_cross_entropy_with_logits", {kMatrix, kMatrix, f32({3}), f32({3})},
        CALL(binary_cross_entropy_with_logits(
            x[0], x[1],
            {.weights = x[2].tensor(), .positive_weight = x[3].tensor(), .reduction = how})),
        2);
    put("kl_divergence", pair, CALL(kl_divergence(x[0], x[1], {how})));
    put("softmax_cross_entropy", {kMatrix, i64({2})},
        CALL(softmax_cross_entropy(x[0], x[1], {.reduction = how})));
    put("softmax_cross_entropy", {kMatrix, i64({2}), f32({3})},
        CALL(softmax_cross_entropy(x[0], x[1], {.weights = x[2].tensor(), .reduction = how})), 2);
  }

  put("lstm", {f32({2, 5, 3}), f32({3, 16}), f32({4, 16}), f32({16})},
      CALL(const LstmWeights weights{x[1].tensor(), x[2].tensor(), x[3].tensor()};
           lstm(x[0], {&weights, 1})));
  put("gru", {f32({2, 5, 3}), f32({3, 12}), f32({4, 12}), f32({16})},
      CALL(const GruWeights weights{x[1].tensor(), x[2].tensor(), x[3].tensor()};
           gru(x[0], {&weights, 1})));
  put("lstm_cell", {f32({2, 3}), f32({3, 16}), f32({4, 16}), f32({16})},
      CALL(lstm_cell(x[0], {}, {x[1].tensor(), x[2].tensor(), x[3].tensor()})));
  put("lstm_cell", {f32({2, 3}), f32({3, 16}), f32({4, 16}), f32({16}), f32({2, 4}), f32({2, 4})},
      CALL(lstm_cell(x[0], {x[4].tensor(), x[5].tensor()},
                     {x[1].tensor(), x[2].tensor(), x[3].tensor()})));
  put("gru_cell", {f32({2, 3}), f32({3, 12}), f32({4, 12}), f32({16})},
      CALL(gru_cell(x[0], {}, {x[1].tensor(), x[2].tensor(), x[3].tensor()})));
  put("gru_cell", {f32({2, 3}), f32({3, 12}), f32({4, 12}), f32({16}), f32({2, 4})},
      CALL(gru_cell(x[0], x[4].tensor(), {x[1].tensor(), x[2].tensor(), x[3].tensor()})), 4);

  put("uniform_like", {kMatrix}, CALL(uniform_like(x[0])));
  put("normal_like", {kMatrix}, CALL(normal_like(x[0])));
  put("bernoulli_like", {kMatrix}, CALL(bernoulli_like(x[0])));
  for (const double temperature : {0., 1., 2.})
    put("categorical", {kMatrix}, CALL(categorical(x[0], temperature)));
  put("dropout", {kMatrix}, CALL(dropout(x[0], 0.5, Phase::training)));
  put("assign", {kMatrix, kMatrix}, CALL(assign(x[0], x[1])));
  put("assign", {kMatrix}, CALL(assign(x[0], {1, kUser})));
  put("assign_slice", {kMatrix, kMatrix}, CALL(assign_slice(x[0], {0, kUser}, x[1])));
  put("add_assign", {kMatrix, kMatrix}, CALL(add_assign(x[0], x[1])));
  put("add_assign", {kMatrix}, CALL(add_assign(x[0], {1, kUser})));
  return table;
}

// "" where the call is accepted, or refused with the function's name and the line of the call.
// Otherwise the message that was given instead.
std::string misnamed(const Function& function, const std::function<void()>& call,
                     bool must_refuse) {
  try {
    call();
  } catch (const Error& error) {
    const std::string message = error.what();
    const bool is_named = message.starts_with("[" + function.name + "] ");
    return is_named && message.find(function.where) != std::string::npos ? "" : message;
  }
  return must_refuse ? "it was taken" : "";
}

// Operands of a function, eager or symbolic, one of which may be replaced by a wrong one.
class Arguments {
 public:
  Arguments(const Function& function, bool symbolic) : function_(function), symbolic_(symbolic) {
    for (const Spec& spec : function.takes) tensors_.push_back(make(spec));
  }

  Tensor make(const Spec& spec) { return make(spec, graph_, Device::cpu()); }
  // A tensor of another graph or on another device.
  Tensor elsewhere(const Spec& spec) {
    return make(spec, other_graph_, Device::simulated("cpu", std::size_t{1} << 30));
  }
  // Calls the function with `wrong` as operand `at`.
  std::string said(bool must_refuse, std::size_t at = kNowhere, const Operand& wrong = 0) const {
    std::vector<Operand> x;
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      x.push_back(i == at ? wrong : Operand(tensors_[i], kUser));
    return misnamed(
        function_, [&] { function_.call(x); }, must_refuse);
  }
  // Calls the function while its graph cannot grow. The error must name the function rather than an
  // operator that it is composed of.
  std::string said_of_closed() const {
    const GraphState::Reading reading(graph_.state());
    return said(false);
  }
  std::string said(std::size_t at, const Tensor& wrong, bool must_refuse = false) const {
    return said(must_refuse, at, {wrong, kUser});
  }

 private:
  static constexpr std::size_t kNowhere = 99;

  Tensor make(const Spec& spec, Graph& graph, const Device& device) {
    return symbolic_ ? graph.placeholder("p" + std::to_string(made_++), spec.dtype, spec.shape)
                     : Tensor::zeros(spec.shape, spec.dtype, device);
  }

  const Function& function_;
  const bool symbolic_;
  int made_ = 0;
  Graph graph_, other_graph_;
  std::vector<Tensor> tensors_;
};

// Functions of tensors that the headers of core/ops/ declare for users.
std::set<std::string> declared() {
  namespace fs = std::filesystem;
  const std::regex internal("namespace detail \\{[^]*?\\n\\}"),
      function("\n\\w+ (\\w+)\\(\\s*(?:const Operand&|std::span<const Tensor>)");
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::path(source_folder()) / "core/ops")) {
    if (entry.path().extension() != ".h") continue;
    std::stringstream read;
    read << std::ifstream(entry.path()).rdbuf();
    const std::string text = read.str();
    if (text.find("\nnamespace ebb::detail {") != std::string::npos) continue;
    const std::string code = std::regex_replace(text, internal, "");
    for (std::sregex_iterator at(code.begin(), code.end(), function), end; at != end; ++at)
      names.insert((*at)[1]);
  }
  return names;
}

// All public functions: those above, and operators as their samples call them.
std::vector<Function> functions() {
  std::vector<Function> all = composed_functions();
  std::set<std::string> left = declared();
  for (const Function& function : all) left.erase(function.name);
  left.insert({"add", "matmul", "reverse_sequence"});  // whose other forms are above
  for (const Sample& sample : all_samples(DType::f32)) {
    if (left.erase(sample.op->name) == 0) continue;
    std::vector<Spec> takes;
    for (const Tensor& input : make_inputs(sample, DType::f32))
      takes.push_back({input.dtype(), input.shape()});
    all.push_back({.name = sample.op->name,
                   .takes = std::move(takes),
                   .call = [call = sample.call](Operands x) { call(tensors_of(x)); },
                   .where = "/tests/ops/samples"});
  }
  return all;
}

}  // namespace

TEST_CASE("Every public function of tensors is asked for its name", "[host]") {
  std::set<std::string> asked;
  for (const Function& function : functions()) asked.insert(function.name);
  const std::set<std::string> names = declared();
  CHECK(names.size() > 80);
  for (const std::string& name : names) {
    INFO(name << " is not in functions() of this file");
    CHECK(asked.count(name) == 1);
  }
}

TEST_CASE("What a function refuses is said in its name and with the user's line") {
  for (const bool symbolic : {false, true})
    for (const Function& function : functions()) {
      INFO(function.name << (symbolic ? ", in a graph" : ", eager"));
      Arguments with(function, symbolic);
      // The table's own call is accepted, so the refusals below are due to the changed operand.
      if (!symbolic) CHECK(with.said(true) == "it was taken");
      if (symbolic) CHECK(with.said_of_closed() == "");
      for (std::size_t i = 0; i < function.takes.size(); ++i) {
        const Spec& spec = function.takes[i];
        INFO("operand " << i);
        CHECK(with.said(i, Tensor(), i < function.optional) == "");
        if (i == 0) CHECK(with.said(false, i, {2, kUser}) == "");
        // sum_like and expand_as use only the second operand's shape, so it may be on another
        // device.
        const bool must_refuse =
            function.takes.size() > 1 &&
            (symbolic || (function.name != "sum_like" && function.name != "expand_as"));
        CHECK(with.said(i, with.elsewhere(spec), must_refuse) == "");
        for (const DType dtype : {DType::u8, DType::f64, DType::i32, DType::boolean})
          CHECK(with.said(i, with.make({dtype, spec.shape})) == "");
        Shape larger{7}, first = spec.shape, last = spec.shape;
        for (const std::int64_t size : spec.shape.dims()) larger.push_back(size);
        first.set(0, 7);
        last.set(-1, 11);
        for (const Shape& shape : {larger, first, last, Shape{}, Shape{1, 1, 1, 1, 1, 1}, Shape{0}})
          CHECK(with.said(i, with.make({spec.dtype, shape})) == "");
      }
    }
}

// create.cpp and refusals.cpp hold what the functions without a graph refuse.
TEST_CASE("What makes tensors of nothing names itself and the user's line") {
  const Shape open{-1};
  EBB_REFUSES(Tensor::zeros(open), Error, "[zeros] ");
  EBB_REFUSES(normal({2}, {.dtype = DType::i32}), Error, "[normal] ");
  EBB_REFUSES(permutation(std::int64_t{1} << 62), ShapeError,
              "[permutation] the shape [4611686018427387904] has more elements than a tensor can");
  Graph graph;
  EBB_REFUSES(uniform(graph, open), Error, "[uniform] ");
  EBB_REFUSES(randint(graph, 1, 1, {2}), Error, "[randint] ");
  EBB_REFUSES(permutation(graph, -1), Error, "[permutation] ");
  {
    const GraphState::Reading reading(graph.state());
    EBB_REFUSES(uniform(graph, {2}), Error, "[uniform] ");
    EBB_REFUSES(randint(graph, 0, 9, {2}), Error, "[randint] ");
    EBB_REFUSES(permutation(graph, 9), Error, "[permutation] ");
  }
  EBB_REFUSES(Tensor().clone(), Error, "[clone] ");
  EBB_REFUSES(Tensor().to(Device::cpu()), Error, "[to] ");
}

TEST_CASE("What is made of other functions tells the shapes that it was given") {
  const Tensor row = Tensor::zeros({2, 4, 5}), kernel = Tensor::zeros({3, 4, 2});
  EBB_REFUSES(conv1d(row, kernel, {.dilation = 9}), ShapeError,
              "[conv1d] the kernel is longer than x, padding and all; inputs are f32[2, 4, 5], "
              "f32[3, 4, 2] (");
  EBB_REFUSES(conv1d(row, kernel, Tensor::zeros({2})), ShapeError,
              "[conv1d] the bias must be [out] for weights [out, in / groups, k]; inputs are "
              "f32[2, 4, 5], f32[3, 4, 2], f32[2] (");
  EBB_REFUSES(conv_transpose1d(row, Tensor::zeros({4, 3, 2}), {.padding = 9}), ShapeError,
              "[conv_transpose1d] the padding leaves nothing of the result; inputs are "
              "f32[2, 4, 5], f32[4, 3, 2] (");
  const Tensor doubles = Tensor::zeros({4, 4, 2}, DType::f64);
  EBB_REFUSES(conv1d(row, doubles), ShapeError, "inputs are f32[2, 4, 5], f64[4, 4, 2] (");
  EBB_REFUSES(conv_transpose1d(row, doubles), ShapeError,
              "inputs are f32[2, 4, 5], f64[4, 4, 2] (");
  EBB_REFUSES(max_pool1d(row, {.kernel = 6}), ShapeError,
              "[max_pool1d] the kernel is longer than x, padding and all; the input is "
              "f32[2, 4, 5] (");
  const Tensor x = Tensor::zeros({2, 3});
  const GruWeights weights{Tensor::zeros({3, 12}), Tensor::zeros({4, 12}), Tensor::zeros({16})};
  EBB_REFUSES(gru_cell(x, Tensor::zeros({2, 5}), weights), ShapeError,
              "[gru_cell] the state must be [batch, hidden]; inputs are f32[2, 3], f32[2, 5], "
              "f32[3, 12], f32[4, 12], f32[16] (");
  EBB_REFUSES(gru_cell(Tensor::zeros({2, 4}), {}, weights), ShapeError,
              "[gru_cell] the weights must be [in, 3 hidden], [hidden, 3 hidden], [4 hidden]; "
              "inputs are f32[2, 4], f32[3, 12], f32[4, 12], f32[16] (");
}

}  // namespace ebb::tests
