#include "ebb/tests/properties/failing_steps.h"

#include "ebb/core/autodiff/attempt.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/random/random.h"
#include "ebb/tests/bytes.h"

namespace ebb::tests {
namespace {

// Appends the figures. A device's include its sessions' pools.
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
    const Tensor x = batch_of(model_.input, rows, device),
                 y = batch_of(model_.target, rows, device);
    return number(attempt([&] { return train(method_, loss_(x, y), x, parameters_); }));
  }
  TrainingState state() override {
    TrainingState state{.random_key = detail::generator().key,
                        .random_counter = detail::generator().counter};
    for (const auto* list : {&parameters_.entries(), &parameters_.states(), &parameters_.slots()})
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
  const Loss loss_;
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
    const Tensor x = batch_of(model_.input, rows, session_.device()),
                 y = batch_of(model_.target, rows, session_.device());
    return number(step_ ? (*step_)(x, y) : session_.run(train_, {{x_, x}, {y_, y}}));
  }
  // Leaves out the session's random state, which shows in the next loss.
  TrainingState state() override {
    TrainingState state{.random_key = detail::generator().key,
                        .random_counter = detail::generator().counter};
    const bool has_slots = session_.memory().optimizer_state_bytes > 0;
    for (const auto* list : {&parameters_.entries(), &parameters_.states(), &parameters_.slots()})
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
