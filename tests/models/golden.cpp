// Forward pass, gradients and ten steps of Adam of the models, against PyTorch's
// (tests/golden/make_models.py).
#include "ebb/tests/golden/golden.h"
#include "ebb/ebb.h"

#include <type_traits>

#include "ebb/tests/catch.h"
#include "ebb/tests/in_mode.h"

namespace ebb::tests {
namespace {

constexpr int kSteps = 10;

// Whether a parameter's gradient is determined. The bias of attention's keys moves all scores of a
// query alike: its gradient is the rounding error of zero, and Adam moves it anywhere.
bool is_determined(const std::string& name) { return name != "attention.key.bias"; }

struct MlpProblem {
  static constexpr const char* kFile = "mlp";
  explicit MlpProblem(const Parameters& parameters) : model(parameters, {12, 16, 8, 5}) {}

  // Names in the golden file of the outputs of forward(), in order; the loss comes last.
  std::vector<std::string> outputs() const { return {"scores"}; }
  Tensors forward(const Tensor& x, const Tensor& y) const {
    const Tensor scores = model(x);
    return {scores, softmax_cross_entropy(scores, y)};
  }
  models::Mlp model;
};

struct LstmProblem {
  static constexpr const char* kFile = "lstm";
  explicit LstmProblem(const Parameters& parameters)
      : lstm(parameters.scope("lstm"), 3, {.hidden = 8, .layers = 2, .recurrent_bias = true}),
        head(parameters.scope("head"), 8, 1) {}

  std::vector<std::string> outputs() const { return {"sequence", "hidden", "cell", "prediction"}; }
  Tensors forward(const Tensor& x, const Tensor& y) const {
    const models::LstmOutput out = lstm(x, Phase::training);
    const Tensor prediction = head(last_step(out.sequence));
    return {out.sequence, out.hidden, out.cell, prediction, mse(prediction, y)};
  }
  models::Lstm lstm;
  models::Dense head;
};

struct ConvProblem {
  static constexpr const char* kFile = "conv";
  explicit ConvProblem(const Parameters& parameters)
      : first(parameters.scope("first"), 2, 4,
              {.stride = {2, 1}, .padding = 1, .activation = Activation::relu}),
        second(parameters.scope("second"), 4, 6,
               {.kernel = {2, 3}, .dilation = {1, 2}, .groups = 2}),
        head(parameters.scope("head"), 24, 3) {}

  std::vector<std::string> outputs() const { return {"scores"}; }
  Tensors forward(const Tensor& x, const Tensor& y) const {
    const Tensor pooled = max_pool2d(first(x), {.kernel = 2, .stride = 1});
    const Tensor scores = head(flatten(avg_pool2d(second(pooled), {.kernel = 2, .padding = 1})));
    return {scores, softmax_cross_entropy(scores, y)};
  }
  models::Conv2d first, second;
  models::Dense head;
};

struct GeneratorProblem {
  static constexpr const char* kFile = "generator";
  explicit GeneratorProblem(const Parameters& parameters)
      : seed(parameters.scope("seed"), 5, 54, {.activation = Activation::relu}),
        first(parameters.scope("first"), 6, 4,
              {.kernel = {4, 3}, .stride = {2, 1}, .padding = 1, .activation = Activation::relu}),
        second(parameters.scope("second"), 4, 2,
               {.stride = {2, 3},
                .padding = 1,
                .output_padding = {1, 2},
                .groups = 2,
                .activation = Activation::tanh}) {}

  std::vector<std::string> outputs() const { return {"image"}; }
  Tensors forward(const Tensor& x, const Tensor& y) const {
    const Tensor image = second(first(reshape(seed(x), {-1, 6, 3, 3})));
    return {image, mse(image, y)};
  }
  models::Dense seed;
  models::ConvTranspose2d first, second;
};

struct AttentionProblem {
  static constexpr const char* kFile = "attention";
  explicit AttentionProblem(const Parameters& parameters)
      : table(parameters.scope("table"), 11, 8),
        attention(parameters.scope("attention"), 8, {.heads = 2}),
        head(parameters.scope("head"), 8, 3) {}

  std::vector<std::string> outputs() const { return {"scores"}; }
  Tensors forward(const Tensor& x, const Tensor& y) const {
    const Tensor scores = head(mean(attention(table(x), {.causal = true}), 1));
    return {scores, softmax_cross_entropy(scores, y)};
  }
  models::Embedding table;
  models::MultiHeadAttention attention;
  models::Dense head;
};

struct NormsProblem {
  static constexpr const char* kFile = "norms";
  explicit NormsProblem(const Parameters& parameters)
      : batch(parameters.scope("batch"), 6),
        group(parameters.scope("group"), 3, 6),
        layer(parameters.scope("layer"), {5}) {}

  std::vector<std::string> outputs() const { return {"output"}; }
  Tensor output(const Tensor& x, Phase phase) const {
    return layer(tanh(group(tanh(batch(x, phase)))));
  }
  Tensors forward(const Tensor& x, const Tensor& y) const {
    const Tensor out = output(x, Phase::training);
    return {out, mse(out, y)};
  }
  models::BatchNorm batch;
  models::GroupNorm group;
  models::LayerNorm layer;
};

template <class Problem>
double tolerance(DType dtype) {
  if (dtype == DType::f64) return 1e-10;
  // Gradients of norms nearly cancel: PyTorch's own in f32 differ from its f64 by up to 5e-4.
  return std::is_same_v<Problem, NormsProblem> ? 1e-3 : 1e-5;
}
// Tolerance after ten steps of Adam, which divides a gradient near 0 by its own size, rounding
// included.
double tolerance_after(DType dtype) { return dtype == DType::f32 ? 1e-4 : 1e-10; }

}  // namespace

TEMPLATE_TEST_CASE("a model computes and learns what PyTorch's does, in both modes", "[models]",
                   MlpProblem, LstmProblem, ConvProblem, GeneratorProblem, AttentionProblem,
                   NormsProblem) {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const bool as_graph = GENERATE(false, true);
  const Golden golden(std::string(TestType::kFile) + '_' + name(dtype));
  const double near = tolerance<TestType>(dtype);
  CAPTURE(golden.path(), as_graph);
  const bool of_input = safetensors::File(golden.path()).find("gradient.x");
  const Tensors batch = {of_input ? golden["x"].with_grad() : golden["x"], golden["y"]};
  std::vector<Spec> specs;
  for (const Tensor& tensor : batch) {
    specs.push_back({tensor.dtype(), tensor.shape()});
    specs.back().shape.set(0, kOpen);
  }

  InMode mode(as_graph, dtype);
  const Parameters& parameters = mode.parameters;
  const TestType problem(parameters);
  const optim::Adam adam({.learning_rate = 0.01});
  const auto forward =
      mode.function(specs, [&](const Tensors& in) { return problem.forward(in[0], in[1]); });
  const auto gradient = mode.function(specs, [&](const Tensors& in) {
    Tensors of = parameters.tensors();
    if (of_input) of.push_back(in[0]);
    return gradients(problem.forward(in[0], in[1]).back(), of);
  });
  const auto train = mode.function(specs, [&](const Tensors& in) -> Tensors {
    return {adam.minimize(problem.forward(in[0], in[1]).back(), parameters)};
  });
  mode.load(golden.path());

  const Tensors outputs = forward(batch), computed = gradient(batch);
  std::vector<std::string> names = problem.outputs();
  for (std::size_t i = 0; i < names.size(); ++i) {
    CAPTURE(names[i]);
    CHECK(distance(outputs[i], golden[names[i]]) < near);
  }
  names.clear();
  for (const auto& entry : parameters.entries()) names.push_back(entry.name);
  if (of_input) names.push_back("x");
  REQUIRE(computed.size() == names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    CAPTURE(names[i]);
    if (is_determined(names[i]))
      CHECK(distance(computed[i], golden["gradient." + names[i]]) < near);
  }

  mode.load(golden.path());  // the running statistics of before
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) losses.push_back(values_of(train(batch)[0])[0]);
  CHECK(distance(losses, values_of(golden["losses"])) < near);
  if constexpr (std::is_same_v<TestType, NormsProblem>) {
    const auto evaluate = mode.function(specs, [&](const Tensors& in) -> Tensors {
      return {problem.output(in[0], Phase::inference)};
    });
    CHECK(distance(evaluate(batch)[0], golden["evaluated"]) < near);
  }
  for (const auto* list : {&parameters.entries(), &parameters.states()})
    for (const auto& [name, tensor] : *list) {
      CAPTURE(name);
      if (is_determined(name))
        CHECK(distance(mode[name], golden["after." + name]) < tolerance_after(dtype));
    }
}

}  // namespace ebb::tests
