#include "ebb/tests/properties/bundled_models.h"
#include "ebb/ebb.h"

#include <random>

#include "ebb/tests/optim/rules.h"

namespace ebb::tests {
namespace {
constexpr std::int64_t kFeatures = 5, kClasses = 3, kTime = 4;
}  // namespace

Shape with_rows(const Spec& sample, std::int64_t rows) {
  InlineVector<std::int64_t, kMaxRank> dims;
  dims.push_back(rows);
  for (const std::int64_t dim : sample.shape.dims()) dims.push_back(dim);
  return Shape(std::span(dims.data(), dims.size()));
}

Tensor batch_of(const Spec& sample, std::int64_t rows, const Device& device) {
  const Shape shape = with_rows(sample, rows);
  std::mt19937 random(5);
  const auto count = static_cast<std::size_t>(shape.elements());
  if (sample.dtype == DType::i32) {
    std::vector<std::int32_t> labels(count);
    for (std::int32_t& label : labels) label = static_cast<std::int32_t>(random() % kClasses);
    return Tensor::from(labels, shape, device);
  }
  std::vector<float> numbers(count);
  for (float& number : numbers) number = std::uniform_real_distribution<float>(-1, 1)(random);
  return Tensor::from(numbers, shape, device);
}

Tensor train(Method method, const Tensor& loss, const Tensor& x, const Parameters& parameters) {
  const optim::Adam adam({.learning_rate = 1e-2});
  switch (method) {
    case Method::minimize:
      return adam.minimize(loss, parameters);
    case Method::minimize_own_rule:
      return optim::Optimizer(std::make_shared<OwnAdam>(), 1e-2).minimize(loss, parameters);
    case Method::accumulate:
      return optim::Accumulator(adam, {.samples = 2 * kBatchRows})
          .minimize(loss, parameters, rows(x));
    case Method::backward:
      break;
  }
  loss.backward();
  adam.step(parameters);
  parameters.zero_grad();
  return loss;
}

std::vector<BundledModel> bundled_models() {
  constexpr double kDropped = 0.4;
  return {{"mlp",
           {DType::f32, {kFeatures}},
           {DType::f32, {2}},
           [](const Parameters& parameters) {
             const models::Mlp mlp(parameters, {kFeatures, 7, 2});
             return [=](const Tensor& x, const Tensor& y) {
               return mse(mlp(dropout(x, kDropped, Phase::training)), y);
             };
           }},
          {"forecaster",
           {DType::f32, {kTime, 2}},
           {DType::f32, {1}},
           [](const Parameters& parameters) {
             const models::Forecaster forecaster(parameters, 2,
                                                 {.hidden = 4, .layers = 2, .dropout = kDropped});
             return [=](const Tensor& x, const Tensor& y) {
               return mse(forecaster(x, Phase::training), y);
             };
           }},
          {"classifier",
           {DType::f32, {kFeatures}},
           {DType::i32, {}},
           [](const Parameters& parameters) {
             const models::Classifier classifier(parameters, kFeatures, kClasses, {.hidden = 8});
             return [=](const Tensor& x, const Tensor& y) {
               const Tensor scores = dropout(classifier(x), kDropped, Phase::training);
               return softmax_cross_entropy(scores, y);
             };
           }},
          {"normalised mlp",  // has state, which a step writes before its optimizer runs
           {DType::f32, {kFeatures}},
           {DType::f32, {2}},
           [](const Parameters& parameters) {
             const models::Dense first(parameters.scope("first"), kFeatures, 7),
                 last(parameters.scope("last"), 7, 2);
             const models::BatchNorm norm(parameters.scope("norm"), 7);
             return [=](const Tensor& x, const Tensor& y) {
               const Tensor hidden = norm(first(x), Phase::training);
               return mse(last(dropout(hidden, kDropped, Phase::training)), y);
             };
           }}};
}

}  // namespace ebb::tests
