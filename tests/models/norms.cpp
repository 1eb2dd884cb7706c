// Normalisations against PyTorch's (tests/golden/make_models.py), and running statistics.
#include "ebb/models/norm.h"

#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/elementary.h"
#include "ebb/core/ops/loss.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/graph/session.h"
#include "ebb/optim/adam.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/golden/golden.h"

namespace ebb::tests {
namespace {

double tolerance(DType dtype) { return dtype == DType::f32 ? 1e-4 : 1e-11; }
// These gradients nearly cancel: PyTorch's own in f32 differ from its f64 by up to 5e-4.
double tolerance_of_gradients(DType dtype) { return dtype == DType::f32 ? 1e-3 : 1e-11; }

struct Norms {
  explicit Norms(const Parameters& parameters)
      : batch(parameters.scope("batch"), 6),
        group(parameters.scope("group"), 3, 6),
        layer(parameters.scope("layer"), {5}) {}
  Tensor operator()(const Tensor& x, Phase phase) const {
    return layer(tanh(group(tanh(batch(x, phase)))));
  }
  models::BatchNorm batch;
  models::GroupNorm group;
  models::LayerNorm layer;
};

}  // namespace

TEST_CASE("normalisations in eager compute and learn what PyTorch's do", "[models]") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const Golden golden(std::string("norms_") + name(dtype));
  const double near = tolerance(dtype);
  const Parameters parameters(Device::cpu(), Seed{1}, dtype);
  const Norms model(parameters);
  parameters.load(golden.path());
  const Tensor x = golden["x"].with_grad(), y = golden["y"];
  const optim::Adam adam({.learning_rate = 0.01});
  std::vector<double> losses;
  for (int step = 0; step < 10; ++step) {
    const Tensor out = model(x, Phase::training), loss = mse(out, y);
    losses.push_back(values_of(loss)[0]);
    if (step == 0) {
      CHECK(distance(out, golden["output"]) < near);
      Tensors of = {x};
      for (const auto& entry : parameters.entries()) of.push_back(entry.tensor);
      const Tensors g = gradients(loss, of, {.retain_graph = true});
      CHECK(distance(g[0], golden["gradient.x"]) < tolerance_of_gradients(dtype));
      for (std::size_t i = 1; i < g.size(); ++i) {
        const std::string& name = parameters.entries()[i - 1].name;
        INFO(name);
        CHECK(distance(g[i], golden["gradient." + name]) < tolerance_of_gradients(dtype));
      }
    }
    adam.minimize(loss, parameters);
  }
  CHECK(distance(losses, values_of(golden["losses"])) < near);
  for (const auto* list : {&parameters.entries(), &parameters.states()})
    for (const auto& [name, tensor] : *list) {
      INFO(name);
      CHECK(distance(tensor, golden["after." + name]) < near);
    }
  CHECK(distance(model(x, Phase::inference), golden["evaluated"]) < near);
}

TEST_CASE("normalisations in a session compute and learn what PyTorch's do", "[models]") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const Golden golden(std::string("norms_") + name(dtype));
  const double near = tolerance(dtype);
  Graph graph;
  const Tensor x = graph.placeholder("x", dtype, {-1, 6, 5}),
               y = graph.placeholder("y", dtype, {-1, 6, 5});
  const Parameters parameters(graph, Seed{1}, dtype);
  const Norms model(parameters);
  const Tensor out = model(x, Phase::training), evaluated = model(x, Phase::inference);
  const Tensor train = optim::Adam({.learning_rate = 0.01}).minimize(mse(out, y), parameters);
  Session session(graph);
  session.initialize(parameters);
  session.restore(golden.path());
  const Feeds feeds = {{x, golden["x"]}, {y, golden["y"]}};
  const auto state = [&](const char* name) { return session.value(parameters[name]); };
  // Evaluation updates nothing; a training step updates once, in its own run.
  static_cast<void>(session.run(evaluated, feeds));
  CHECK(bit_equal(state("batch.running_mean"), golden["batch.running_mean"]));
  std::vector<double> losses;
  for (int step = 0; step < 10; ++step) losses.push_back(values_of(session.run(train, feeds))[0]);
  CHECK(distance(losses, values_of(golden["losses"])) < near);
  for (const auto* list : {&parameters.entries(), &parameters.states()})
    for (const auto& [name, tensor] : *list) {
      INFO(name);
      CHECK(distance(session.value(tensor), golden["after." + name]) < near);
    }
  CHECK(distance(session.run(evaluated, feeds), golden["evaluated"]) < near);
}

TEST_CASE("the running statistics of 16 bits are f32, and those of a batch enter them",
          "[models]") {
  const DType dtype = GENERATE(DType::f16, DType::bf16);
  const Parameters parameters(Device::cpu(), Seed{1}, dtype);
  const models::BatchNorm norm(parameters, 2, {.momentum = 0.5});
  CHECK(parameters["running_mean"].dtype() == DType::f32);
  const Tensor x = cast(Tensor::from({{1.0f, 2.0f}, {3.0f, 6.0f}}), dtype);
  const Tensor y = norm(x, Phase::training);
  CHECK(y.dtype() == dtype);
  CHECK(values_of(parameters["running_mean"]) == std::vector<double>{1, 2});
  CHECK(values_of(parameters["running_variance"]) == std::vector<double>{1.5, 4.5});
  CHECK_FALSE(parameters["running_mean"].requires_grad());
  const Tensor z = norm(x);  // inference changes nothing
  CHECK(values_of(parameters["running_mean"]) == std::vector<double>{1, 2});
  CHECK(z.shape() == x.shape());
}

TEST_CASE("a batch of none leaves running statistics as they were, in both modes", "[models]") {
  const DType dtype = GENERATE(DType::f32, DType::f64, DType::bf16);
  const Tensor none = Tensor::zeros({0, 2, 3}, dtype),
               some = cast(Tensor::from({1.f, 3.f, 5.f, 2.f, 2.f, 8.f}, {1, 2, 3}), dtype);
  const Parameters eager(Device::cpu(), Seed{1}, dtype);
  const models::BatchNorm norm(eager, 2);
  Graph graph;
  const Tensor x = graph.placeholder("x", dtype, {-1, 2, 3});
  const Parameters declared(graph, Seed{1}, dtype);
  const Tensor y = models::BatchNorm(declared, 2)(x, Phase::training);
  Session session(graph);
  session.initialize();
  for (const Tensor& batch : {none, some, none}) {
    CAPTURE(batch.shape().to_string());
    const Tensor mean = eager["running_mean"].clone(), variance = eager["running_variance"].clone();
    CHECK(norm(batch, Phase::training).shape() == batch.shape());
    CHECK(session.run(y, {{x, batch}}).shape() == batch.shape());
    for (const auto& [name, before] :
         {std::pair{"running_mean", mean}, std::pair{"running_variance", variance}}) {
      CHECK(bit_equal(eager[name], before) == (batch.size(0) == 0));
      CHECK(distance(session.value(declared[name]), eager[name]) < 1e-6);
    }
  }
}

TEST_CASE("a batch norm whose step fails, and one without elements enough, say so", "[models]") {
  const Parameters parameters(Device::cpu());
  const models::BatchNorm norm(parameters, 3);
  const int run = __LINE__ + 1;
  const auto wrong = [&] { return norm(Tensor::zeros({1, 3}), Phase::training); };
  CHECK_ERROR(wrong(), ShapeError,
              "[batch_norm] takes more than one element of each channel: one has no variance");
  CHECK_ERROR(wrong(), ShapeError, ":" + std::to_string(run) + ")");
  CHECK(values_of(parameters["running_variance"]) == std::vector<double>(3, 1));
  CHECK_ERROR(norm(Tensor::zeros({2, 4}), Phase::training), ShapeError, "[batch_norm] ");
  CHECK_ERROR(norm(Tensor::zeros({2, 4})), ShapeError, "[batch_norm] scale and shift must be [4]");
  CHECK_ERROR(norm(Tensor::zeros({3})), ShapeError, "[batch_norm] there is no axis 1");
  CHECK_ERROR(models::GroupNorm(parameters.scope("g"), 4, 6), Error,
              "[group_norm] channels = 6 is no multiple of groups = 4");
  CHECK_ERROR(models::LayerNorm(parameters.scope("l"), {0}), Error,
              "[layer_norm] a size = 0 is below 1");
  const int negative = __LINE__ + 1;
  const auto of_negative = [&] { return models::LayerNorm(parameters.scope("l"), -3); };
  CHECK_ERROR(of_negative(), Error, "norms.cpp:" + std::to_string(negative) + ")");
  CHECK_ERROR(models::LayerNorm(parameters.scope("l"), {}), Error,
              "[layer_norm] the number of axes = 0 is below 1");
  const models::BatchNorm last(parameters.scope("b"), 4, {.axis = 2});
  CHECK(last(Tensor::zeros({2, 3, 4})).shape() == Shape{2, 3, 4});
  CHECK_ERROR(last(Tensor::zeros({2, 4, 3})), ShapeError, "scale and shift must be [3]");
  const models::LayerNorm of_last(parameters.scope("last"), 3);
  CHECK(parameters["last.scale"].shape() == Shape{3});
  const models::LayerNorm layer(parameters.scope("l"), {2, 3});
  CHECK_ERROR(layer(Tensor::zeros({2, 2})), ShapeError,
              "[layer_norm] scale and shift must be [2, 2]; inputs are f32[2, 2], f32[2, 3], "
              "f32[2, 3]");
  CHECK_ERROR(rms_norm(Tensor::zeros({2, 3}), Tensor::zeros({2})), ShapeError,
              "[rms_norm] scale must be [3]; ");
}

TEST_CASE("second derivatives of rows that hardly vary are computed in float for 16 bits",
          "[models]") {
  const auto second = [](DType dtype, const auto& norm) {
    const float more = 0.5f + 0x1p-8f;
    const Tensor rows = Tensor::from({{0.5f, more}, {0.5f, 0.5f}, {more, 0.5f}});
    const Tensor weights = Tensor::from({{1.f, 2.f}, {0.5f, -1.f}, {3.f, 0.25f}});
    const Tensor x = cast(rows, dtype).with_grad();
    const Tensor loss = sum(norm(x) * cast(weights, dtype));
    const Tensor first = gradients(loss, {x}, {.create_graph = true})[0];
    return values_of(cast(gradients(sum(square(first * 0x1p-10)), {x})[0], DType::f32));
  };
  const auto layer = [](const Tensor& x) { return layer_norm(x); };
  const auto root = [](const Tensor& x) { return rms_norm(x - 0.5); };
  const auto in_f32 = [&](const auto& norm) { return second(DType::f32, norm); };
  CHECK(distance(second(DType::f16, layer), in_f32(layer)) < 1e-2);
  CHECK(distance(second(DType::f16, root), in_f32(root)) < 1e-2);
  CHECK(distance(second(DType::bf16, layer), in_f32(layer)) < 5e-2);
  CHECK(distance(second(DType::bf16, root), in_f32(root)) < 5e-2);
}

}  // namespace ebb::tests
