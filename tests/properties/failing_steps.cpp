#include "ebb/tests/properties/failing_steps.h"

#include <random>

#include "ebb/core/autodiff/attempt.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/ops/loss.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/shape.h"
#include "ebb/models/classifier.h"
#include "ebb/models/forecaster.h"
#include "ebb/models/mlp.h"
#include "ebb/optim/accumulator.h"
#include "ebb/optim/adam.h"
#include "ebb/tests/bytes.h"
#include "ebb/tests/optim/rules.h"

namespace ebb::tests {
namespace {

constexpr std::int64_t kFeatures = 5, kClasses = 3, kTime = 4;

Shape with_rows(const Spec& sample, std::int64_t rows) {
  InlineVector<std::int64_t, kMaxRank> dims;
  dims.push_back(rows);
  for (const std::int64_t dim : sample.shape.dims()) dims.push_back(dim);
  return Shape(std::span(dims.data(), dims.size()));
}

Tensor values(const Spec& sample, std::int64_t rows, const Device& device) {
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
      return optim::Accumulator(adam, {.samples = 2 * kFailingRows})
          .minimize(loss, parameters, rows(x));
    case Method::backward:
      break;
  }
  loss.backward();
  adam.step(parameters);
  parameters.zero_grad();
  return loss;
}

// The session's pool is among the figures of the device.
void add_figures(HeldMemory& held, const memory::Stats& stats) {
  held.bytes.insert(held.bytes.end(), {stats.requested.current, stats.allocated.current,
                                       stats.reserved.current, stats.allocations});
  for (const memory::Figure& figure : stats.by_category) held.bytes.push_back(figure.current);
}

HeldMemory held_on(const Device& device) {
  device.runtime().allocator().release_cached();
  HeldMemory held;
  add_figures(held, device.runtime().allocator().stats());
  return held;
}

std::optional<float> number(const Tensor& loss) {
  if (loss.device().is_simulated()) return {};
  return loss.item<float>();
}

class EagerTraining final : public FailingTraining {
 public:
  EagerTraining(const BundledModel& model, Method method, const Device& device)
      : model_(model),
        method_(method),
        parameters_(device, Seed{7}),
        loss_(model.make(parameters_)) {
    set_seed(Seed{3});
  }
  std::optional<float> step(std::int64_t rows) override {
    const Device device = parameters_.device();
    const Tensor x = values(model_.input, rows, device), y = values(model_.target, rows, device);
    return number(attempt([&] { return train(method_, loss_(x, y), x, parameters_); }));
  }
  TrainingState state() override {
    TrainingState state{.random_key = detail::generator().key,
                        .random_counter = detail::generator().counter};
    for (const auto* list : {&parameters_.entries(), &parameters_.slots()})
      for (const auto& [name, tensor] : *list) {
        state.names.push_back(name + (tensor.grad().defined() ? " and its gradient" : ""));
        if (!tensor.device().is_simulated()) state.bits.push_back(bytes_of(tensor));
      }
    return state;
  }
  HeldMemory held() override { return held_on(parameters_.device()); }

 private:
  const BundledModel model_;
  const Method method_;
  const Parameters parameters_;
  const std::function<Tensor(const Tensor&, const Tensor&)> loss_;
};

class GraphTraining final : public FailingTraining {
 public:
  GraphTraining(const BundledModel& model, Method method, bool prepared, const Device& device)
      : model_(model),
        x_(graph_.placeholder("x", model.input.dtype, with_rows(model.input, -1))),
        y_(graph_.placeholder("y", model.target.dtype, with_rows(model.target, -1))),
        parameters_(graph_, Seed{7}),
        train_(train(method, model.make(parameters_)(x_, y_), x_, parameters_)),
        session_(graph_, {.device = device, .seed = Seed{3}}) {
    session_.initialize(parameters_);
    if (prepared) step_.emplace(session_.prepare(train_, {x_, y_}));
  }
  std::optional<float> step(std::int64_t rows) override {
    const Tensor x = values(model_.input, rows, session_.device()),
                 y = values(model_.target, rows, session_.device());
    return number(step_ ? (*step_)(x, y) : session_.run(train_, {{x_, x}, {y_, y}}));
  }
  // The session's random state is one of its variables, which the next loss tells of.
  TrainingState state() override {
    TrainingState state{.random_key = detail::generator().key,
                        .random_counter = detail::generator().counter};
    const bool has_slots = session_.memory().optimizer_state_bytes > 0;
    for (const auto* list : {&parameters_.entries(), &parameters_.slots()})
      for (const auto& [name, tensor] : *list) {
        if (list == &parameters_.slots() && !has_slots) continue;  // reading them makes them
        state.names.push_back(name);
        const Tensor value = session_.value(tensor);
        if (!value.device().is_simulated()) state.bits.push_back(bytes_of(value));
      }
    return state;
  }
  HeldMemory held() override {
    HeldMemory held = held_on(session_.device());
    add_figures(held, session_.stats());
    const memory::Breakdown of = session_.memory();
    held.bytes.insert(held.bytes.end(),
                      {of.parameter_bytes, of.optimizer_state_bytes, of.arena_bytes});
    held.plans = session_.plans();
    return held;
  }

 private:
  const BundledModel model_;
  Graph graph_;
  const Tensor x_, y_;
  const Parameters parameters_;
  const Tensor train_;
  Session session_;
  std::optional<PreparedStep> step_;
};

}  // namespace

std::vector<BundledModel> bundled_models() {
  std::vector<BundledModel> all;
  for (const double probability : {0.0, 0.4}) {
    const std::string suffix = probability > 0 ? " with dropout" : "";
    all.push_back({"mlp" + suffix,
                   {DType::f32, {kFeatures}},
                   {DType::f32, {2}},
                   [=](const Parameters& parameters) {
                     const models::Mlp mlp(parameters, {kFeatures, 7, 2});
                     return [=](const Tensor& x, const Tensor& y) {
                       return mse(mlp(dropout(x, probability, Phase::training)), y);
                     };
                   }});
    all.push_back({"forecaster" + suffix,
                   {DType::f32, {kTime, 2}},
                   {DType::f32, {1}},
                   [=](const Parameters& parameters) {
                     const models::Forecaster forecaster(
                         parameters, 2, {.hidden = 4, .layers = 2, .dropout = probability});
                     return [=](const Tensor& x, const Tensor& y) {
                       return mse(forecaster(x, Phase::training), y);
                     };
                   }});
    all.push_back({"classifier" + suffix,
                   {DType::f32, {kFeatures}},
                   {DType::i32, {}},
                   [=](const Parameters& parameters) {
                     const models::Classifier classifier(parameters, kFeatures, kClasses,
                                                         {.hidden = 8});
                     return [=](const Tensor& x, const Tensor& y) {
                       const Tensor scores = dropout(classifier(x), probability, Phase::training);
                       return softmax_cross_entropy(scores, y);
                     };
                   }});
  }
  return all;
}

const char* name(Method method) noexcept {
  switch (method) {
    case Method::minimize:
      return "minimize";
    case Method::minimize_own_rule:
      return "minimize by a rule of one's own";
    case Method::accumulate:
      return "accumulate";
    case Method::backward:
      return "backward";
  }
  return "";
}

MakeTraining eager_training(const BundledModel& model, Method method) {
  return
      [=](const Device& device) { return std::make_unique<EagerTraining>(model, method, device); };
}

MakeTraining graph_training(const BundledModel& model, Method method, bool prepared) {
  return [=](const Device& device) {
    return std::make_unique<GraphTraining>(model, method, prepared, device);
  };
}

}  // namespace ebb::tests
